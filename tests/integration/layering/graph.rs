//! Which file names an item of which other file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::source::{Module, ModulePath, modules};

/// The files of the crate and the names that each takes from others.
pub(super) struct Graph {
    /// File -> file that defines what it names -> the names.
    pub(super) edges: BTreeMap<String, BTreeMap<String, BTreeSet<String>>>,
}

/// What a path leads to.
enum Target {
    Module(ModulePath),
    /// An item, in the module that defines it.
    Item(ModulePath),
}

struct Names {
    modules: BTreeMap<ModulePath, Module>,
}

/// How many imports are followed from one name: more than any chain of re-exports has.
const HOPS: usize = 16;

impl Names {
    /// Finds what a name stands for in a module.
    fn find(&self, at: &ModulePath, name: &str, hops: usize) -> Option<Target> {
        let module = self.modules.get(at)?;
        if module.children.contains(name) {
            return Some(Target::Module(at.iter().cloned().chain([name.to_owned()]).collect()));
        }
        if module.items.contains(name) {
            return Some(Target::Item(at.clone()));
        }
        let hops = hops.checked_sub(1)?;
        if let Some(import) = module.imports.iter().find(|it| it.name == name) {
            return self.resolve(at, &import.path, hops);
        }
        let globs = module.imports.iter().filter(|it| it.name == "*");
        globs.filter_map(|it| self.resolve(at, &it.path, hops)).find_map(|it| match it {
            Target::Module(inner) => self.find(&inner, name, hops),
            Target::Item(_) => None,
        })
    }

    /// Finds what a path stands for in a module; `None` for what is not of this crate.
    fn resolve(&self, at: &ModulePath, path: &[String], hops: usize) -> Option<Target> {
        let mut at = at.clone();
        let mut is_inside = false;
        for segment in path {
            match segment.as_str() {
                "crate" => at = Vec::new(),
                "self" => {}
                "super" => {
                    at.pop();
                }
                name => match self.find(&at, name, hops) {
                    Some(Target::Module(module)) => at = module,
                    Some(item) => return Some(item),
                    // What a macro defines belongs to the module that calls it.
                    None => return is_inside.then_some(Target::Item(at)),
                },
            }
            is_inside = true;
        }
        Some(Target::Module(at))
    }
}

impl Graph {
    /// Reads the files below a directory.
    pub(super) fn of(directory: &Path) -> Self {
        let names = Names { modules: modules(directory) };
        let mut edges: BTreeMap<String, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
        for (path, module) in &names.modules {
            let own = edges.entry(module.file.clone()).or_default();
            let imports = module.imports.iter().filter(|it| !it.is_reexport).map(|it| &it.path);
            for used in imports.chain(&module.paths) {
                // A module that is imported is not an item yet: the paths through it are.
                let Some(Target::Item(target)) = names.resolve(path, used, HOPS) else { continue };
                let target = &names.modules[&target].file;
                if *target != module.file {
                    own.entry(target.clone()).or_default().insert(used.join("::"));
                }
            }
        }
        Self { edges }
    }

    /// Returns every file that a file reaches through what it names.
    fn reached<'g>(&'g self, from: &'g str) -> BTreeSet<&'g str> {
        let mut reached = BTreeSet::new();
        let mut open = vec![from];
        while let Some(file) = open.pop() {
            let next = self.edges.get(file).into_iter().flat_map(BTreeMap::keys);
            open.extend(next.map(String::as_str).filter(|it| reached.insert(*it)));
        }
        reached
    }

    /// Returns the largest sets of files that all reach each other.
    pub(super) fn circles(&self) -> BTreeSet<BTreeSet<&str>> {
        let reached: BTreeMap<&str, BTreeSet<&str>> =
            self.edges.keys().map(|it| (it.as_str(), self.reached(it))).collect();
        let circle = |file: &&str| -> BTreeSet<&str> {
            reached[file].iter().copied().filter(|it| reached[it].contains(file)).collect()
        };
        reached.keys().map(circle).filter(|it| !it.is_empty()).collect()
    }

    /// Writes what the files of a circle name of each other.
    pub(super) fn describe(&self, circle: &BTreeSet<&str>) -> String {
        let inside =
            |from: &str| self.edges[from].iter().filter(|(to, _)| circle.contains(to.as_str()));
        let line = |from: &str, to: &str, names: &BTreeSet<String>| {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            format!("{from} -> {to}: {}", names.join(", "))
        };
        let lines: Vec<String> = circle
            .iter()
            .flat_map(|from| inside(from).map(move |(to, names)| line(from, to, names)))
            .collect();
        lines.join("\n")
    }
}
