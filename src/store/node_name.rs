//! The names that nodes can have in the store.

/// The bytes of the longest name that is kept; a certname has at most 64.
const LONGEST: usize = 1024;

/// No node can have such a name: PostgreSQL fails at it, or it is too long for an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImpossibleNodeName {
    /// It is too long.
    #[error("a node's name has at most {LONGEST} bytes, and this one has {0}")]
    Long(usize),
    /// It has a NUL character.
    #[error("a node's name has no NUL character")]
    Nul,
}

/// Checks that a text is a name that a node can have, or a part of one.
///
/// # Errors
///
/// Returns an error for a text that no database can hold or compare.
pub(crate) fn check_node_name(text: &str) -> Result<(), ImpossibleNodeName> {
    if text.len() > LONGEST {
        Err(ImpossibleNodeName::Long(text.len()))
    } else if text.contains('\0') {
        Err(ImpossibleNodeName::Nul)
    } else {
        Ok(())
    }
}
