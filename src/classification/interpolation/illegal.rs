//! What looks like a reference and is not legal.

use std::ops::Range;

/// A part of a string that looks like a reference, and stays as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IllegalForm {
    /// What is wrong with it.
    pub reason: IllegalReason,
    /// Where it is in the string.
    pub bytes: Range<usize>,
}

/// Why a form is not legal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum IllegalReason {
    /// A `$` with nothing behind it that could be a name.
    Lone,
    /// A `$` before a digit.
    Digit,
    /// A name that facts do not have.
    Name,
    /// A Puppet scope.
    Scope,
    /// `$pe_node_groups`.
    NodeGroups,
    /// Trusted data in another form than `${trusted[…]}`.
    Trusted,
    /// A keyword.
    Keyword,
    /// An operator, a function or anything else behind the name.
    Expression,
    /// A `${` without its `}`.
    Unclosed,
    /// A variable in an index.
    Variable,
    /// An operator in an index.
    Operator,
    /// A hexadecimal or octal number in an index.
    Number,
    /// A regular expression in an index.
    Regex,
    /// Another index that is neither a key nor a number.
    Index,
    /// More references than a string may have.
    TooMany,
    /// More indexes than facts have levels.
    TooDeep,
}

impl IllegalReason {
    /// Says what is wrong.
    pub fn message(self) -> &'static str {
        match self {
            Self::Lone => "a `$` that begins no reference to a fact",
            Self::Digit => "a `$` before a digit begins no reference to a fact",
            Self::Name => "the names of facts begin with a lowercase letter or `_`",
            Self::Scope => "values know facts alone, and no scopes of Puppet",
            Self::NodeGroups => "`pe_node_groups` cannot be put into values",
            Self::Trusted => "trusted data have the form `${trusted[certname]}` alone",
            Self::Keyword => "`undef` is not a fact",
            Self::Expression => {
                "values know neither operators nor functions: nothing but indexes may follow the name of a fact"
            }
            Self::Unclosed => "a `${` without its `}`",
            Self::Variable => "an index cannot be a variable",
            Self::Operator => "an index cannot be computed",
            Self::Number => "a number in an index is decimal, without zeros in front",
            Self::Regex => "an index cannot be a regular expression",
            Self::Index => "an index is a key or a number",
            Self::TooMany => "a string may have 1,000 references to facts",
            Self::TooDeep => "a reference has more than 200 indexes",
        }
    }

    /// Says what to write instead.
    pub fn help(self) -> &'static str {
        match self {
            Self::Scope => {
                "write the fact alone: `${os[family]}`; for the text itself, write `\\$`"
            }
            Self::NodeGroups => {
                "name the groups where the value is read; for the text itself, write `\\$`"
            }
            Self::Trusted => {
                "write `${trusted[certname]}` or `${trusted[extensions][pp_role]}`; for the text itself, write `\\$`"
            }
            Self::Variable | Self::Operator | Self::Number | Self::Regex | Self::Index => {
                "write a key, in quotes if it has blanks, brackets or signs (`${disks['sda 1'][size]}`), or a number from 0 (`${processors[models][0]}`); for the text itself, write `\\$`"
            }
            Self::TooMany => "write several values, or less text",
            Self::TooDeep => {
                "facts are read 200 levels deep, so no node has a value there: write fewer indexes"
            }
            Self::Lone
            | Self::Digit
            | Self::Name
            | Self::Keyword
            | Self::Expression
            | Self::Unclosed => {
                "for a dollar sign, write `\\$`; for a fact, `${name}` or `${name[key]}`"
            }
        }
    }
}
