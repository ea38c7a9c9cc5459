//! The source files of the library: what each of them defines, imports and names.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, Item, UseTree, Visibility};

/// The path of a module below the root of the crate, which is empty.
pub(super) type ModulePath = Vec<String>;

/// A module with a file of its own.
#[derive(Default)]
pub(super) struct Module {
    /// The path below `src`, with `/` between its parts.
    pub(super) file: String,
    /// The modules it declares.
    pub(super) children: BTreeSet<String>,
    /// The names of the items it defines.
    pub(super) items: BTreeSet<String>,
    pub(super) imports: Vec<Import>,
    /// Every path in its code, also those of one segment.
    pub(super) paths: BTreeSet<Vec<String>>,
}

/// One name that a `use` brings into a module.
pub(super) struct Import {
    pub(super) path: Vec<String>,
    /// The name it has here; `*` stands for all.
    pub(super) name: String,
    /// Whether it only hands the name on, as `pub use` does.
    pub(super) is_reexport: bool,
}

/// Reads the modules of a crate without what is compiled for tests alone.
pub(super) fn modules(directory: &Path) -> BTreeMap<ModulePath, Module> {
    let mut modules = BTreeMap::new();
    read(directory, "lib.rs", Vec::new(), &mut modules);
    modules
}

fn read(
    directory: &Path,
    file: &str,
    path: ModulePath,
    modules: &mut BTreeMap<ModulePath, Module>,
) {
    let text = std::fs::read_to_string(directory.join(file)).unwrap();
    let syntax = syn::parse_file(&text).unwrap_or_else(|error| panic!("{file}: {error}"));
    let mut module = Module { file: file.to_owned(), ..Module::default() };
    module.visit_file(&syntax);
    for child in &module.children {
        let child_path: ModulePath = path.iter().chain([child]).cloned().collect();
        let child_file: PathBuf = child_path.iter().collect();
        let child_file = child_file.with_extension("rs");
        read(directory, child_file.to_str().unwrap(), child_path, modules);
    }
    modules.insert(path, module);
}

impl Module {
    fn import(&mut self, tree: &UseTree, prefix: &[String], is_reexport: bool) {
        let with = |name: String| prefix.iter().cloned().chain([name]).collect::<Vec<_>>();
        let (path, name) = match tree {
            UseTree::Path(it) => {
                return self.import(&it.tree, &with(it.ident.to_string()), is_reexport);
            }
            UseTree::Group(group) => {
                for it in &group.items {
                    self.import(it, prefix, is_reexport);
                }
                return;
            }
            UseTree::Name(it) if it.ident == "self" => {
                (prefix.to_vec(), prefix.last().cloned().unwrap_or_default())
            }
            UseTree::Name(it) => (with(it.ident.to_string()), it.ident.to_string()),
            UseTree::Rename(it) => (with(it.ident.to_string()), it.rename.to_string()),
            UseTree::Glob(_) => (prefix.to_vec(), "*".to_owned()),
        };
        self.imports.push(Import { path, name, is_reexport });
    }

    /// Collects the paths of a macro call, whose syntax is its own.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut is_joined = false;
        for token in tokens {
            match token {
                TokenTree::Ident(ident) => {
                    if !is_joined {
                        self.paths.insert(std::mem::take(&mut path));
                    }
                    path.push(ident.to_string());
                    is_joined = false;
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' => is_joined = true,
                TokenTree::Group(group) => {
                    self.tokens(group.stream());
                    is_joined = false;
                }
                _ => is_joined = false,
            }
        }
        self.paths.insert(path);
    }
}

impl<'s> Visit<'s> for Module {
    fn visit_item(&mut self, item: &'s Item) {
        if is_for_tests(attributes(item)) {
            return;
        }
        match item {
            Item::Mod(it) if it.content.is_none() => {
                self.children.insert(it.ident.to_string());
            }
            Item::Use(it) => {
                let is_reexport = !matches!(it.vis, Visibility::Inherited);
                self.import(&it.tree, &[], is_reexport);
            }
            _ => {
                self.items.extend(name(item));
                visit::visit_item(self, item);
            }
        }
    }

    fn visit_path(&mut self, path: &'s syn::Path) {
        if path.leading_colon.is_none() {
            self.paths.insert(path.segments.iter().map(|it| it.ident.to_string()).collect());
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'s syn::Macro) {
        self.tokens(call.tokens.clone());
        visit::visit_macro(self, call);
    }
}

fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|it| {
        it.path().is_ident("cfg")
            && it.meta.require_list().is_ok_and(|it| it.tokens.to_string() == "test")
    })
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(it) => &it.attrs,
        Item::Enum(it) => &it.attrs,
        Item::Fn(it) => &it.attrs,
        Item::Impl(it) => &it.attrs,
        Item::Macro(it) => &it.attrs,
        Item::Mod(it) => &it.attrs,
        Item::Static(it) => &it.attrs,
        Item::Struct(it) => &it.attrs,
        Item::Trait(it) => &it.attrs,
        Item::Type(it) => &it.attrs,
        Item::Use(it) => &it.attrs,
        _ => &[],
    }
}

fn name(item: &Item) -> Option<String> {
    let ident = match item {
        Item::Const(it) => &it.ident,
        Item::Enum(it) => &it.ident,
        Item::Fn(it) => &it.sig.ident,
        Item::Macro(it) => it.ident.as_ref()?,
        Item::Mod(it) => &it.ident,
        Item::Static(it) => &it.ident,
        Item::Struct(it) => &it.ident,
        Item::Trait(it) => &it.ident,
        Item::Type(it) => &it.ident,
        _ => return None,
    };
    Some(ident.to_string())
}
