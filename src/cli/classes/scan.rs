//! `clade classes scan`

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use clap::Args;
use rayon::prelude::*;

use super::super::Exit;
use super::super::output::Output;
use super::catalogue::{CatalogueTarget, read_directory, report_broken, shown};
use crate::changeset::{NewCatalogue, WrittenBy};
use crate::config::{read_bounded, read_bounded_text};
use crate::puppet::{self, Code, environment_settings, missing_modules};
use crate::wording::counted;

/// Read the classes from the code of an environment: a control repository, or a `code` directory
/// with `environments`
///
/// Reads only the headers of classes, and evaluates nothing. Install the modules of the Puppetfile first,
/// for instance with `r10k puppetfile install`.
#[derive(Debug, Args)]
pub(super) struct ScanCommand {
    /// The directory of the environment's code
    #[arg(value_name = "CONTROL_REPO")]
    control: PathBuf,
    #[command(flatten)]
    target: CatalogueTarget,
    /// Module directories, separated by colons, instead of those of `environment.conf`
    #[arg(long, value_name = "PATHS")]
    modulepath: Option<String>,
    /// The value of `$basemodulepath` [default: empty]
    #[arg(long, value_name = "PATHS")]
    basemodulepath: Option<String>,
    /// Continue without modules of the Puppetfile that are not installed
    #[arg(long)]
    allow_missing_modules: bool,
}

/// A file of code: its path, the name that Puppet wants of what it declares, its content.
struct CodeFile {
    path: PathBuf,
    namespace: Option<String>,
    code: Result<Code, String>,
}

impl ScanCommand {
    pub(super) fn run(self, output: &mut Output) -> Result<Exit> {
        let root = self.root()?;
        let file = self.target.file()?;
        let settings = read_optional(&root.join("environment.conf"))?;
        let settings = environment_settings(&settings.unwrap_or_default());
        let modules = self.modules(&root, &settings.modules, output)?;
        self.check_puppetfile(&root, &modules, output)?;
        let mut paths: Vec<(PathBuf, Option<String>)> = Vec::new();
        for (name, directory) in &modules {
            for part in ["manifests", "types"] {
                let part = directory.join(part);
                code_files(&part, DirectoryLinks::Followed, &mut |path| {
                    let namespace = namespace(name, &part, &path);
                    paths.push((path, Some(namespace)));
                })?;
            }
        }
        match inside(&root, &settings.manifests) {
            Some(manifests) => {
                code_files(&manifests, DirectoryLinks::NotFollowed, &mut |path| {
                    paths.push((path, None));
                })?;
            }
            None => output.note(&format!(
                "`{}`, the manifest of environment.conf, is not in the directory and is not read",
                settings.manifests
            )),
        }
        if paths.is_empty() {
            bail!(
                "there is no Puppet code in `{}`: neither modules nor manifests",
                self.control.display()
            );
        }
        let sources: Vec<CodeFile> = paths.into_par_iter().map(read_source).collect();
        let (catalogue, broken) = collect(sources, &root, output);
        report_broken(&broken, self.target.skip_broken, output)?;
        let [classes, modules] = [(catalogue.count(), "class"), (modules.len(), "module")]
            .map(|(it, one)| counted(it, one));
        let count = format!("{classes} of {modules}");
        self.target.write(&file, &catalogue, WrittenBy::Scan, &count, output)
    }

    /// Returns the directory of the environment.
    fn root(&self) -> Result<PathBuf> {
        let environments = self.control.join("environments");
        let below = environments.join(self.target.environment.as_str());
        if below.is_dir() {
            return Ok(below);
        }
        if !self.control.is_dir() {
            bail!("`{}` is not a directory", self.control.display());
        }
        // The code of an environment may have a directory of this name, too.
        let parts = ["environment.conf", "Puppetfile", "manifests", "site-modules", "site"];
        let is_environment = parts.iter().any(|it| self.control.join(it).exists());
        // The class catalogues of a group repository are files in a directory of this name.
        let others = read_directory(&environments)?.unwrap_or_default();
        let has_others = others.iter().any(|it| it.is_dir());
        if has_others && !is_environment && self.modulepath.is_none() {
            bail!(
                "there is no environment `{}` in `{}`: name another with --environment, or the directory of its code",
                self.target.environment,
                environments.display()
            );
        }
        Ok(self.control.clone())
    }

    /// Finds the modules; of one name the first in the modulepath wins.
    fn modules(
        &self,
        root: &Path,
        of_settings: &[String],
        output: &mut Output,
    ) -> Result<BTreeMap<String, PathBuf>> {
        let list = |paths: &Option<String>| {
            let paths = paths.as_deref().unwrap_or_default();
            paths.split(':').filter(|it| !it.is_empty()).map(PathBuf::from).collect::<Vec<_>>()
        };
        let mut directories = Vec::new();
        if self.modulepath.is_some() {
            directories = list(&self.modulepath);
        } else {
            for part in of_settings {
                match inside(root, part) {
                    _ if part == "$basemodulepath" => {
                        directories.extend(list(&self.basemodulepath));
                    }
                    Some(directory) => directories.push(directory),
                    None => output.note(&format!(
                        "`{part}` of the modulepath is not in the repository and is not read; name it with --modulepath"
                    )),
                }
            }
        }
        let mut modules = BTreeMap::new();
        for directory in directories {
            let Some(entries) = read_directory(&directory)? else { continue };
            for path in entries {
                // A module may be a link to where it was unpacked.
                let Some(name) = path.file_name().and_then(|it| it.to_str()) else { continue };
                if is_module_name(name) && path.is_dir() {
                    modules.entry(name.to_owned()).or_insert(path);
                }
            }
        }
        Ok(modules)
    }

    /// A catalogue without the modules that are installed later would call their classes missing.
    fn check_puppetfile(
        &self,
        root: &Path,
        modules: &BTreeMap<String, PathBuf>,
        output: &mut Output,
    ) -> Result<()> {
        let Some(text) = read_optional(&root.join("Puppetfile"))? else { return Ok(()) };
        let missing = missing_modules(&text, |module| modules.contains_key(module));
        let (Some(first), count) = (missing.first(), missing.len()) else { return Ok(()) };
        let (what, it, its) = match count {
            1 => (format!("the module `{first}` of the Puppetfile is not installed"), "it", "its"),
            _ => {
                let what = format!(
                    "{count} modules of the Puppetfile are not installed, such as `{first}`"
                );
                (what, "them", "their")
            }
        };
        if self.allow_missing_modules {
            output.note(&format!("{what}: {its} classes are left out"));
            return Ok(());
        }
        bail!(
            "{what}: install {it} (`r10k puppetfile install`), or continue without {its} classes with --allow-missing-modules"
        )
    }
}

/// Joins what the files declare, and says what is wrong with them.
fn collect(
    sources: Vec<CodeFile>,
    root: &Path,
    output: &mut Output,
) -> (NewCatalogue, Vec<(String, String)>) {
    let mut catalogue = NewCatalogue::default();
    let mut broken = Vec::new();
    for source in sources {
        let path = shown(&source.path, root);
        let code = match source.code {
            Ok(code) => code,
            Err(reason) => {
                broken.push((path, reason));
                continue;
            }
        };
        for class in code.classes {
            let line = class.line;
            let place = source.namespace.as_deref();
            let wanted = place.filter(|place| !belongs(&class.name, place));
            let said = match wanted {
                Some(place) => Err(format!(
                    "Puppet does not look for the class `{}` here, but for `{place}`",
                    class.name
                )),
                None => catalogue.add(class),
            };
            if let Err(reason) = said {
                output.note(&format!("{path}:{line}: {reason}: left out"));
            }
        }
        catalogue.aliases.extend(code.aliases);
    }
    (catalogue, broken)
}

fn belongs(class: &str, namespace: &str) -> bool {
    class.strip_prefix(namespace).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

fn read_source((path, namespace): (PathBuf, Option<String>)) -> CodeFile {
    let code = match read_bounded(&path) {
        Err(error) => Err(error.to_string()),
        Ok(bytes) => match String::from_utf8(bytes) {
            Err(_) => Err("the file is not UTF-8".to_owned()),
            Ok(text) => puppet::read(&text).map_err(|fault| fault.to_string()),
        },
    };
    CodeFile { path, namespace, code }
}

/// Returns the name that Puppet wants of the classes in a module's file.
fn namespace(module: &str, part: &Path, file: &Path) -> String {
    let inside = file.strip_prefix(part).unwrap_or(file).with_extension("");
    let mut segments = vec![module.to_owned()];
    segments.extend(inside.iter().map(|it| it.to_string_lossy().into_owned()));
    if inside == Path::new("init") {
        segments.truncate(1);
    }
    segments.join("::")
}

/// Returns a path of `environment.conf` that leads nowhere out of the directory.
fn inside(root: &Path, path: &str) -> Option<PathBuf> {
    if path.contains('$') {
        return None;
    }
    let stays = |it: Component<'_>| matches!(it, Component::Normal(_) | Component::CurDir);
    let joined = root.join(path);
    if Path::new(path).components().all(stays) {
        return Some(joined);
    }
    // An absolute path, or one with `..`, may lead here.
    let (real, root) = (joined.canonicalize().ok()?, root.canonicalize().ok()?);
    real.starts_with(root).then_some(joined)
}

fn is_module_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|it| it.is_ascii_lowercase())
        && bytes.all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'_')
}

fn read_optional(path: &Path) -> Result<Option<String>> {
    match read_bounded_text(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).context(format!("cannot read `{}`", path.display())),
    }
}

/// Whether links to directories of code are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DirectoryLinks {
    /// Puppet looks for the file of a class of a module by its path.
    Followed,
    /// Puppet reads all files of the environment's manifests, and walks through no link.
    NotFollowed,
}

/// How many links to directories are followed in one place.
const FOLLOWED: usize = 1_000;

/// Calls a function with every file of code at a path, in order. The path itself may be a link; those below it that lead back
/// are not followed.
fn code_files(path: &Path, links: DirectoryLinks, found: &mut dyn FnMut(PathBuf)) -> Result<()> {
    let mut walk = CodeWalk { links, followed: 0, around: Vec::new(), found };
    walk.at(path)
}

struct CodeWalk<'f> {
    links: DirectoryLinks,
    followed: usize,
    /// The directories around this place, without links.
    around: Vec<PathBuf>,
    found: &'f mut dyn FnMut(PathBuf),
}

impl CodeWalk<'_> {
    fn at(&mut self, path: &Path) -> Result<()> {
        if path.extension().is_some_and(|it| it == "pp") && path.is_file() {
            (self.found)(path.to_owned());
        } else if path.is_dir() {
            let real = path.canonicalize();
            let real = real.with_context(|| format!("cannot read `{}`", path.display()))?;
            if self.around.contains(&real) {
                return Ok(());
            }
            self.around.push(real);
            for entry in read_directory(path)?.unwrap_or_default() {
                if entry.is_symlink() && entry.is_dir() {
                    if self.links == DirectoryLinks::NotFollowed {
                        continue;
                    }
                    self.followed += 1;
                    if self.followed > FOLLOWED {
                        bail!("`{}` has more than {FOLLOWED} links to directories", path.display());
                    }
                }
                self.at(&entry)?;
            }
            self.around.pop();
        }
        Ok(())
    }
}
