//! Layout and policy of a repository.

use super::source::{FileKind, SourceContent, SourceFile};

/// Which directory holds what, and how strict validation is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The directory of node groups.
    pub groups: String,
    /// The directory of individual classifications.
    pub nodes: String,
    /// The directory of class catalogues.
    pub environments: String,
    /// The directory of classification tests.
    pub tests: String,
    /// How strict validation is.
    pub policy: ValidationPolicy,
    /// Whether a repository without node groups is valid.
    pub allow_empty: bool,
}

/// How strict validation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValidationPolicy {
    /// Classes and parameters that the catalogue does not have.
    pub missing_referents: Strictness,
    /// Groups that could conflict.
    pub potential_conflicts: Strictness,
    /// Whether every group must have an `id`.
    pub require_ids: bool,
    /// Whether every group must have a `description`.
    pub require_description: bool,
}

/// What becomes of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strictness {
    /// It is an error.
    Error,
    /// It is a warning.
    Warn,
    /// It is not looked for.
    Off,
}

impl Default for Layout {
    fn default() -> Self {
        Self {
            groups: "groups".to_owned(),
            nodes: "nodes".to_owned(),
            environments: "environments".to_owned(),
            tests: "tests".to_owned(),
            policy: ValidationPolicy {
                missing_referents: Strictness::Error,
                potential_conflicts: Strictness::Warn,
                require_ids: false,
                require_description: false,
            },
            allow_empty: false,
        }
    }
}

impl Layout {
    /// Returns what a file is for; `None` for one that has no part in the repository.
    pub fn kind_of(&self, file: &SourceFile) -> Option<FileKind> {
        // A link or submodule may stand for a whole directory, and then has no extension.
        let followed = matches!(file.content, SourceContent::Link | SourceContent::Submodule);
        let path = file.path.as_ref();
        let below = |directory: &str| {
            let rest = path.strip_prefix(directory)?;
            rest.strip_prefix('/').or(Some("").filter(|_| rest.is_empty() && followed))
        };
        if !followed && !is_yaml(path) {
            return None;
        }
        if let Some(file) = below(&self.environments) {
            return (followed || !file.contains('/')).then_some(FileKind::Environment);
        }
        let directories = [
            (&self.nodes, FileKind::Node),
            (&self.tests, FileKind::Tests),
            (&self.groups, FileKind::Groups),
        ];
        let found = directories.into_iter().find(|(directory, _)| below(directory).is_some());
        found.map(|(_, kind)| kind)
    }
}

pub(super) fn is_yaml(path: &str) -> bool {
    let extension = path.rsplit_once('.').map(|(_, extension)| extension);
    matches!(extension, Some("yaml" | "yml"))
}
