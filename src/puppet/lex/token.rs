//! The tokens of Puppet code.

/// A token with the bytes it stands at.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::puppet) struct Lexeme<'t> {
    pub(in crate::puppet) sort: Sort<'t>,
    pub(in crate::puppet) start: usize,
    pub(in crate::puppet) end: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub(in crate::puppet) enum Sort<'t> {
    /// A name or keyword, such as `class` or `profile::base`.
    Word(&'t str),
    /// A capitalised name, such as `Stdlib::Port`.
    Type(&'t str),
    /// A variable, without its `$`.
    Variable(&'t str),
    /// A string; nothing if it depends on an expression.
    Text(Option<String>),
    /// A number as written, without sign.
    Number(&'t str),
    /// A regular expression, without its slashes.
    Pattern(&'t str),
    /// Any other character.
    Mark(char),
}
