//! Layout and policy of a repository.

use super::schema_settings::SchemaSettings;
use super::source::{FileKind, SourceContent, SourceFile};
use crate::diagnostic::Severity;
use crate::model::Interpolation;

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
    /// Whether facts are put into values.
    pub interpolation: Interpolation,
    /// The schemas that values are held to.
    pub schemas: SchemaSettings,
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
    /// What groups of an estate that works should not have.
    pub groups: GroupPolicy,
}

/// Policies of groups: what is valid, but what a team may not want. All are off unless `clade.yaml`
/// says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupPolicy {
    /// Groups that no known node matches.
    pub unmatched_groups: Strictness,
    /// Values that are equal to what is inherited.
    pub redundant_values: Strictness,
    /// Rules that repeat conditions of ancestors.
    pub repeated_rules: Strictness,
    /// Groups that no test expects.
    pub untested_groups: Strictness,
    /// Pins to nodes that were not seen for [`stale_pin_days`](Self::stale_pin_days).
    pub stale_pins: Strictness,
    /// After how many days without a sign of a node a pin to it is stale.
    pub stale_pin_days: u32,
    /// Groups that pin more nodes than [`max_pins`](Self::max_pins).
    pub too_many_pins: Strictness,
    /// How many nodes a group may pin.
    pub max_pins: u32,
    /// Classes that are used in environments whose catalogues declare them differently.
    pub catalogue_mismatches: Strictness,
}

impl Default for GroupPolicy {
    fn default() -> Self {
        Self {
            unmatched_groups: Strictness::Off,
            redundant_values: Strictness::Off,
            repeated_rules: Strictness::Off,
            untested_groups: Strictness::Off,
            stale_pins: Strictness::Off,
            stale_pin_days: 30,
            too_many_pins: Strictness::Off,
            max_pins: 10,
            catalogue_mismatches: Strictness::Off,
        }
    }
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

impl Strictness {
    /// Returns the severity of a finding; `None` if it is not looked for.
    pub fn severity(self) -> Option<Severity> {
        match self {
            Self::Error => Some(Severity::Error),
            Self::Warn => Some(Severity::Warning),
            Self::Off => None,
        }
    }
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
                groups: GroupPolicy::default(),
            },
            allow_empty: false,
            interpolation: Interpolation::Off,
            schemas: SchemaSettings::default(),
        }
    }
}

impl Layout {
    /// Returns what a file is for; `None` for one that has no part in the repository.
    pub fn kind_of(&self, file: &SourceFile) -> Option<FileKind> {
        // A link or submodule may stand for a whole directory, and then has no extension.
        let followed = matches!(file.content, SourceContent::Link | SourceContent::Submodule);
        let path = file.path.as_ref();
        if !followed && !is_yaml(path) {
            return None;
        }
        let is_one = |part: &str| followed && part == path;
        let (part, kind) = self.innermost(|it| below(path, it).is_some() || is_one(it))?;
        // Only what is directly in it is a catalogue.
        let is_deeper = below(path, part).is_some_and(|it| it.contains('/'));
        (kind != FileKind::Environment || followed || !is_deeper).then_some(kind)
    }

    /// Returns what a file that is read is for; `None` for the settings.
    pub(super) fn kind_at(&self, path: &str) -> Option<FileKind> {
        let is_one = |part: &str| part == path || below(path, part).is_some();
        self.innermost(is_one).map(|(_, kind)| kind)
    }

    /// Returns each directory with what its files are for, in the order in which they are asked.
    pub(super) fn parts(&self) -> [(&str, FileKind); 4] {
        [
            (self.environments.as_str(), FileKind::Environment),
            (self.nodes.as_str(), FileKind::Node),
            (self.tests.as_str(), FileKind::Tests),
            (self.groups.as_str(), FileKind::Groups),
        ]
    }

    /// Returns the innermost of some directories: one may lie in another.
    pub(super) fn innermost(&self, is_one: impl Fn(&str) -> bool) -> Option<(&str, FileKind)> {
        let found = self.parts().into_iter().filter(|(part, _)| is_one(part));
        // Of two that are the same, the first counts.
        found.rev().max_by_key(|(part, _)| part.len())
    }
}

/// Returns the rest of a path that lies below a directory.
pub(super) fn below<'p>(path: &'p str, directory: &str) -> Option<&'p str> {
    path.strip_prefix(directory)?.strip_prefix('/')
}

/// Returns whether a file is one of YAML by its name.
pub fn is_yaml(path: &str) -> bool {
    let extension = path.rsplit_once('.').map(|(_, extension)| extension);
    matches!(extension, Some("yaml" | "yml"))
}
