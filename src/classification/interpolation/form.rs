//! The forms of a reference.

use super::illegal::IllegalReason;
use super::index;
use super::reference::FactReference;
use crate::model::{FACT_DEPTH, Segment};

/// A reference and how many bytes it takes, or why there is none.
pub(super) type ReadForm = Result<(FactReference, usize), (IllegalReason, Extent)>;

/// How much of a text belongs to an illegal form, so that no reference begins there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// So many bytes.
    Bytes(usize),
    /// All up to the next `}`, if there is one.
    Braces,
}

/// The fact that Puppet Enterprise does not put into values.
const NODE_GROUPS: &str = "pe_node_groups";

/// Reads what begins with a `$`.
pub(super) fn read(text: &str) -> ReadForm {
    let rest = text.strip_prefix('$').unwrap_or(text);
    match rest.as_bytes().first() {
        Some(b'{') => braced(text),
        Some(b'a'..=b'z' | b'_') => bare(rest),
        Some(b'A'..=b'Z') => Err((IllegalReason::Name, Extent::Bytes(1 + word(rest).len()))),
        Some(b'0'..=b'9') => Err((IllegalReason::Digit, Extent::Bytes(1))),
        Some(b':') if scoped(rest) > 0 => {
            Err((IllegalReason::Scope, Extent::Bytes(1 + scoped(rest))))
        }
        _ => Err((IllegalReason::Lone, Extent::Bytes(1))),
    }
}

/// Reads `$name`, of which the name is given.
fn bare(text: &str) -> ReadForm {
    let name = word(text);
    let behind = text.get(name.len()..).unwrap_or_default();
    let length = 1 + name.len();
    match (scoped(behind), name) {
        (0, NODE_GROUPS) => Err((IllegalReason::NodeGroups, Extent::Bytes(length))),
        (0, "trusted") => Err((IllegalReason::Trusted, Extent::Bytes(length))),
        (0, name) => Ok((FactReference::new("fact", name, Vec::new()), length)),
        (more, _) => Err((IllegalReason::Scope, Extent::Bytes(length + more))),
    }
}

/// Reads `${…}`.
fn braced(text: &str) -> ReadForm {
    // All of it stays, and with it what looks like a reference in there.
    let illegal = |reason| (reason, Extent::Braces);
    let inside = text.get(2..).unwrap_or_default();
    let (sigil, inside) = match inside.strip_prefix('$') {
        Some(inside) => (Sigil::Dollar, inside),
        None => (Sigil::None, inside),
    };
    if scoped(inside) > 0 {
        return Err(illegal(IllegalReason::Scope));
    }
    let name = match inside.as_bytes().first() {
        Some(b'a'..=b'z' | b'_') => word(inside),
        Some(b'A'..=b'Z') => return Err(illegal(IllegalReason::Name)),
        _ => return Err(illegal(IllegalReason::Expression)),
    };
    let behind = inside.get(name.len()..).unwrap_or_default();
    if scoped(behind) > 0 {
        return Err(illegal(IllegalReason::Scope));
    }
    let (indexes, behind) = indexes(behind).map_err(illegal)?;
    let reference = match (name, sigil) {
        (NODE_GROUPS, _) => return Err(illegal(IllegalReason::NodeGroups)),
        ("undef", Sigil::None) => return Err(illegal(IllegalReason::Keyword)),
        ("trusted", Sigil::None) if matches!(indexes.first(), Some(Segment::Key(_))) => {
            FactReference::new("trusted", "", indexes)
        }
        ("trusted", _) => return Err(illegal(IllegalReason::Trusted)),
        (name, _) => FactReference::new("fact", name, indexes),
    };
    match behind.strip_prefix('}') {
        Some(behind) => Ok((reference, text.len() - behind.len())),
        None => Err(illegal(IllegalReason::Expression)),
    }
}

/// Whether the name in `${…}` has a `$`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sigil {
    Dollar,
    None,
}

/// Reads indexes; returns what stands behind the last of them.
fn indexes(mut text: &str) -> Result<(Vec<Segment>, &str), IllegalReason> {
    let mut all = Vec::new();
    while let Some(inside) = text.strip_prefix('[') {
        let (index, behind) = index::read(inside)?;
        if all.len() >= FACT_DEPTH {
            return Err(IllegalReason::TooDeep);
        }
        all.push(index);
        text = behind;
    }
    Ok((all, text))
}

/// Returns the letters, digits and underscores that a text begins with.
fn word(text: &str) -> &str {
    let end = text.find(|it: char| !it.is_ascii_alphanumeric() && it != '_');
    text.get(..end.unwrap_or(text.len())).unwrap_or_default()
}

/// Returns how many bytes of a text are `::` with a name behind it, and more of these.
fn scoped(text: &str) -> usize {
    let mut length = 0;
    while let Some(behind) = text.get(length..).and_then(|it| it.strip_prefix("::")) {
        match word(behind) {
            "" => break,
            name => length += 2 + name.len(),
        }
    }
    length
}
