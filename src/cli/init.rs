//! `clade init`: a first group repository.

use std::fs::{DirBuilder, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use clap::{Args, ValueEnum};

use super::Exit;
use super::output::Output;
use super::repository::{BudgetArgs, RepositoryArgs, repository_with_part};
use super::shell::word_of_shell;
use crate::diagnostic::Severity;
use crate::git::Repository;

/// Create a group repository: the root group, one group, one test, and a pipeline that checks changes
///
/// Overwrites nothing: if one of the files exists, none is written. The example group matches only
/// `web1.example.com` and sets no class, so serving it changes no machine.
#[derive(Debug, Args)]
pub(super) struct InitCommand {
    /// The directory, created if absent
    #[arg(value_name = "DIR", default_value = ".")]
    directory: PathBuf,
    /// The pipeline that checks changes
    #[arg(long, value_enum, default_value = "github")]
    ci: Pipeline,
}

/// A pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Pipeline {
    /// A GitHub Actions workflow
    Github,
    /// A GitLab pipeline
    Gitlab,
    /// No pipeline
    None,
}

/// A file of the repository.
struct TemplateFile {
    path: &'static str,
    text: &'static str,
    mode: FileMode,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum FileMode {
    Data,
    Script,
}

const fn data(path: &'static str, text: &'static str) -> TemplateFile {
    TemplateFile { path, text, mode: FileMode::Data }
}

const fn script(path: &'static str, text: &'static str) -> TemplateFile {
    TemplateFile { path, text, mode: FileMode::Script }
}

/// The groups, their test, and the facts of the node that both are about.
const GROUPS: &[TemplateFile] = &[
    data("clade.yaml", include_str!("../../examples/first/clade.yaml")),
    data("groups/all-nodes.yaml", include_str!("../../examples/first/groups/all-nodes.yaml")),
    data("groups/webservers.yaml", include_str!("../../examples/first/groups/webservers.yaml")),
    data("tests/webservers.yaml", include_str!("../../examples/first/tests/webservers.yaml")),
    data(
        "facts/web1.example.com.json",
        include_str!("../../examples/first/facts/web1.example.com.json"),
    ),
];

const CHECK: TemplateFile = script("ci/check.sh", include_str!("../../examples/ci/check.sh"));

const IGNORED: TemplateFile = data(".gitignore", include_str!("../../examples/ci/gitignore"));

const GITHUB: &[TemplateFile] = &[
    data(".github/workflows/clade.yml", include_str!("../../examples/ci/github/clade.yml")),
    CHECK,
    script("ci/comment.sh", include_str!("../../examples/ci/comment.sh")),
    IGNORED,
];

const GITLAB: &[TemplateFile] = &[
    data(".gitlab-ci.yml", include_str!("../../examples/ci/gitlab/gitlab-ci.yml")),
    CHECK,
    IGNORED,
];

impl Pipeline {
    fn files(self) -> &'static [TemplateFile] {
        match self {
            Self::Github => GITHUB,
            Self::Gitlab => GITLAB,
            Self::None => &[],
        }
    }
}

impl TemplateFile {
    /// Returns the text without the first lines, which say where to copy the example to.
    fn text(&self) -> &'static str {
        match self.text.strip_prefix("# Copy to ").and_then(|rest| rest.split_once("\n#\n")) {
            Some((_, rest)) => rest,
            None => self.text,
        }
    }

    fn write(&self, directory: &Path) -> Result<()> {
        let path = directory.join(self.path);
        let what = || format!("cannot write `{}`", path.display());
        if let Some(parent) = path.parent() {
            DirBuilder::new().recursive(true).create(parent).with_context(what)?;
        }
        // Also a file that has appeared since the check is kept.
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        if self.mode == FileMode::Script {
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o755);
        }
        let mut file = options.open(&path).with_context(what)?;
        file.write_all(self.text().as_bytes()).with_context(what)
    }
}

impl InitCommand {
    pub(super) fn run(self, output: &mut Output) -> Result<Exit> {
        let directory = &self.directory;
        // A repository may ignore files already.
        let ignores = self.directory.join(IGNORED.path).symlink_metadata().is_ok();
        let is_new = |it: &&TemplateFile| !(ignores && it.path == IGNORED.path);
        let files = || GROUPS.iter().chain(self.ci.files()).filter(is_new);
        self.check_free(files().map(|it| it.path))?;
        for file in files() {
            file.write(directory)?;
            output.data(&format!("{}\n", directory.join(file.path).display()))?;
        }
        self.warn_below_the_top(output);
        if ignores && self.ci != Pipeline::None {
            let lines = IGNORED.text().lines().filter(|it| it.starts_with("clade-"));
            let lines: Vec<String> = lines.map(|it| format!("`{it}`")).collect();
            output.note(&format!("`.gitignore` stays as it is: add {}", lines.join(", ")));
        }
        if let Some(problem) = self.problem()? {
            output.note(&format!(
                "error: with the files that were here before, the repository is not valid: {problem}; see `clade validate`"
            ));
            return Ok(Exit::Findings);
        }
        output.note(&self.next());
        Ok(Exit::Fine)
    }

    /// Checks that no file is overwritten and that the directory is not a group repository already, or a part of one.
    fn check_free<'f>(&self, files: impl Iterator<Item = &'f str>) -> Result<()> {
        if let Some(repository) = repository_with_part(&self.directory) {
            bail!(
                "`{}` is a part of the group repository `{}`, which has all that `clade init` writes: for another repository, run it in a directory outside of that one",
                self.directory.display(),
                repository.display()
            );
        }
        let is_there = |path: &&str| self.directory.join(path).symlink_metadata().is_ok();
        let there: Vec<&str> = files.filter(is_there).collect();
        if !there.is_empty() {
            bail!(
                "`{}` has {} already, and `clade init` overwrites nothing",
                self.directory.display(),
                there.join(", ")
            );
        }
        let groups = self.directory.join("groups");
        let is_used = std::fs::read_dir(&groups).is_ok_and(|mut it| it.next().is_some());
        if is_used {
            bail!("`{}` has files already: it may be a group repository", groups.display());
        }
        Ok(())
    }

    /// Returns what to do next.
    fn next(&self) -> String {
        let word = |path: &Path| word_of_shell(&path.to_string_lossy());
        let shown = word(&self.directory);
        let is_here = shown == ".";
        let test = if is_here { "clade test".to_owned() } else { format!("clade test {shown}") };
        let real = |path: &Path| path.canonicalize().ok();
        let repository = Repository::discover(&self.directory).ok();
        let top = repository.as_ref().and_then(Repository::worktree).and_then(real);
        let (commit, serve) = match (top, real(&self.directory)) {
            (Some(top), Some(here)) if top != here => {
                let below = here.strip_prefix(&top).unwrap_or(&here);
                let serve = format!("--repo {} --path {}", word(&top), word(below));
                ("commit the files".to_owned(), serve)
            }
            (Some(_), _) => ("commit the files".to_owned(), format!("--repo {shown}")),
            (None, _) if is_here => {
                ("`git init`, commit the files".to_owned(), format!("--repo {shown}"))
            }
            (None, _) => {
                (format!("`git init {shown}`, commit the files"), format!("--repo {shown}"))
            }
        };
        format!("next: `{test}`, {commit}, then `clade serve {serve}`")
    }

    /// A forge reads pipelines at the top of a repository alone.
    fn warn_below_the_top(&self, output: &mut Output) {
        let real = |path: &Path| path.canonicalize().ok();
        let repository = Repository::discover(&self.directory).ok();
        let top = repository.as_ref().and_then(Repository::worktree).and_then(real);
        if self.ci != Pipeline::None
            && let (Some(top), Some(here)) = (top, real(&self.directory))
            && top != here
        {
            output.note(&format!(
                "warning: the pipeline is read at the top of the git repository alone: move its files to `{}`, and set CLADE_DIR and CLADE_NODES for check.sh",
                top.display()
            ));
        }
    }

    /// Returns the first error, if the repository is not valid.
    fn problem(&self) -> Result<Option<String>> {
        let directory = self.directory.clone();
        let repository =
            RepositoryArgs { directory: Some(directory), rev: None, budget: BudgetArgs::default() };
        let checked = repository.load()?.checked;
        let error = checked.diagnostics.iter().find(|it| it.severity == Severity::Error);
        Ok(error.map(|it| format!("{}: {}", it.place.file, it.message)))
    }
}

#[cfg(test)]
mod tests {
    use super::{GITHUB, GITLAB};

    #[test]
    fn pipelines_do_not_say_where_to_copy_them() {
        for file in GITHUB.iter().chain(GITLAB).filter(|it| it.path != ".gitignore") {
            let first = match file.path {
                ".github/workflows/clade.yml" => "# Actions are named by the digest of a commit, ",
                ".gitlab-ci.yml" => "# A pipeline of a merge request runs what ",
                _ => "#!/bin/sh\n",
            };
            assert!(file.text().starts_with(first), "{}: {}", file.path, file.text());
            assert!(!file.text().contains("Copy to"), "{}", file.path);
            assert!(file.text().len() > 400, "{}", file.path);
        }
    }
}
