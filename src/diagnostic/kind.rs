//! What can be found, by stable name.

use std::fmt;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The commit is not valid and never answers.
    Error,
    /// The commit is valid; an author should check it.
    Warning,
}

impl Severity {
    /// Returns the name used in every machine format.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Where the pages about the kinds are.
const PAGES: &str =
    "https://github.com/clade-classifier/clade/blob/main/docs/reference/diagnostics";

macro_rules! kinds {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal, $severity:ident;)+) => {
        /// The kind of a finding; its name is stable and has a page in
        /// `docs/reference/diagnostics/`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Kind {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl Kind {
            /// Every kind, errors first.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// Returns the stable name.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }

            /// Returns the severity that a finding of this kind has unless policy says otherwise.
            pub fn severity(self) -> Severity {
                match self { $(Self::$variant => Severity::$severity,)+ }
            }

            /// Returns the address of the page about the kind.
            pub fn page(self) -> String {
                format!("{PAGES}/{self}.md")
            }

            /// Returns the page about the kind.
            #[cfg(feature = "cli")]
            pub fn text(self) -> &'static str {
                match self {
                    $(Self::$variant => include_str!(concat!(
                        env!("CARGO_MANIFEST_DIR"), "/docs/reference/diagnostics/", $name, ".md"
                    )),)+
                }
            }

            /// Returns one sentence on what the kind means.
            pub fn summary(self) -> &'static str {
                match self { $(Self::$variant => concat!($($doc),+).trim_ascii_start(),)+ }
            }
        }
    };
}

kinds! {
    /// The file is not YAML that the reader accepts.
    MalformedYaml = "malformed-yaml", Error;
    /// A key stands twice in one mapping.
    DuplicateKey = "duplicate-key", Error;
    /// A plain scalar means different things to different YAML readers.
    AmbiguousScalar = "ambiguous-scalar", Error;
    /// A document does not have the form that its schema asks for.
    SchemaViolation = "schema-violation", Error;
    /// A JSON Schema that `clade.yaml` names cannot be used.
    InvalidSchema = "invalid-schema", Error;
    /// An id is not a UUID.
    MalformedUuid = "malformed-uuid", Error;
    /// A rule is not one of the forms of the rule grammar.
    InvalidRule = "invalid-rule", Error;
    /// A pattern is not a regular expression that Java 17 accepts, or too large to be evaluated safely.
    InvalidRegex = "invalid-regex", Error;
    /// A group names a parent that does not exist.
    MissingParent = "missing-parent", Error;
    /// A group names its parent by a name that several groups have.
    AmbiguousParent = "ambiguous-parent", Error;
    /// The parents of some groups form a cycle.
    InheritanceCycle = "inheritance-cycle", Error;
    /// Two groups share an id, or a name within one environment; or two files describe one node or environment.
    UniquenessViolation = "uniqueness-violation", Error;
    /// The root group was changed in a way that is not allowed.
    RootGroup = "root-group", Error;
    /// A group sets a class that its environment does not have.
    MissingClass = "missing-class", Error;
    /// A group sets a parameter that its class does not have.
    MissingParameter = "missing-parameter", Error;
    /// A file is larger than the reader accepts.
    FileTooLarge = "file-too-large", Error;
    /// No file below the directory of groups has a node group.
    NoGroups = "no-groups", Error;
    /// A commit costs more to read than its budget allows.
    CommitTooLarge = "commit-too-large", Error;
    /// A symbolic link or submodule stands where a file is expected; it is not followed.
    NotAFile = "not-a-file", Warning;
    /// A file looks as if it were meant, but has no effect.
    UnreadFile = "unread-file", Warning;
    /// Two groups that can match the same node set a value differently.
    PotentialConflict = "potential-conflict", Warning;
    /// A rule can match no node.
    NeverMatches = "never-matches", Warning;
    /// A rule is valid but most likely not what its author meant.
    SuspiciousRule = "suspicious-rule", Warning;
    /// A pattern is valid but most likely not what its author meant.
    SuspiciousRegex = "suspicious-regex", Warning;
    /// A value is valid but most likely not what its author meant: nothing has it, reads it or describes it.
    SuspiciousValue = "suspicious-value", Warning;
    /// A value has facts in it as Puppet Enterprise writes them, but facts are not put into values here.
    UninterpolatedValue = "uninterpolated-value", Warning;
    /// A parameter's value does not have the type that the class declares.
    ParameterType = "parameter-type", Warning;
    /// No known node is in a group; a policy that is off by default.
    UnmatchedGroup = "unmatched-group", Warning;
    /// A group sets a value that it would inherit all the same; a policy that is off by default.
    RedundantValue = "redundant-value", Warning;
    /// A rule repeats what the rules of ancestors demand; a policy that is off by default.
    RepeatedRule = "repeated-rule", Warning;
    /// No test expects a group; a policy that is off by default.
    UntestedGroup = "untested-group", Warning;
    /// A pinned node was not seen for a long time; a policy that is off by default.
    StalePin = "stale-pin", Warning;
    /// A group pins more nodes than the policy allows; a policy that is off by default.
    TooManyPins = "too-many-pins", Warning;
    /// A class is used in environments whose catalogues declare it differently; a policy that is off by default.
    CatalogueMismatch = "catalogue-mismatch", Warning;
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
