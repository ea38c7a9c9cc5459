//! Certnames that no node has.

use super::file_reader::FileReader;
use crate::byte_set::ByteSet;
use crate::diagnostic::Kind;
use crate::document::{Span, quote};
use crate::java_regex::from_glob;

/// The bytes of a certname as most are.
static USUAL: ByteSet = ByteSet::of(b"abcdefghijklmnopqrstuvwxyz0123456789-._");

/// Where a certname stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CertnameRole {
    /// In a list of pins.
    Pin,
    /// As what a rule compares the certname with.
    Operand,
    /// As the name of a node with values of its own.
    Node,
}

/// Warns of a certname that no node has.
pub(super) fn check(name: &str, role: CertnameRole, span: Span, reader: &mut FileReader) {
    let Some((message, help)) = suspicion(name, role) else { return };
    let kind = match role {
        CertnameRole::Pin | CertnameRole::Operand => Kind::SuspiciousRule,
        CertnameRole::Node => Kind::SuspiciousValue,
    };
    reader.add(kind, span, message).help = Some(help);
}

/// Returns whether a text is meant as a pattern and not as a certname.
pub(super) fn is_pattern(name: &str) -> bool {
    name.contains(['*', '?', '^', '$', '|', '[', '(', '\\'])
}

/// Returns why no node has a certname, and what to do.
fn suspicion(name: &str, role: CertnameRole) -> Option<(String, String)> {
    // Each name of each list of pins is asked for.
    if !name.is_empty() && name.bytes().all(|it| USUAL.has(it)) {
        return None;
    }
    if name.is_empty() {
        let help = match role {
            CertnameRole::Pin | CertnameRole::Operand => {
                "write the certname of a node, or remove it"
            }
            CertnameRole::Node => "write the certname of the node",
        };
        return Some(("no node has an empty certname".to_owned(), help.to_owned()));
    }
    if name.trim() != name {
        let message = format!("the certname {} starts or ends with a blank", quote(name));
        return Some((message, format!("write `{}`", name.trim())));
    }
    if is_pattern(name) {
        // The rule says so of its own operand.
        let what = match role {
            CertnameRole::Pin => "a pin is the certname of one node",
            CertnameRole::Node => "this is the certname of one node",
            CertnameRole::Operand => return None,
        };
        let pattern = from_glob(name).unwrap_or_else(|| name.to_owned());
        let help =
            format!("for several nodes, write a group with a rule: `name ~ {}`", quote(&pattern));
        return Some((format!("{what}, so `{name}` is not a pattern"), help));
    }
    if name.contains(|it: char| it.is_ascii_uppercase()) {
        let message = format!("certnames are lowercase, so no node has the name `{name}`");
        return Some((message, format!("write `{}`", name.to_ascii_lowercase())));
    }
    let unfit = name.chars().find(|it| !matches!(it, ' '..='.' | '0'..='~'))?;
    let message = format!("Puppet allows no {} in a certname", quote(&unfit.to_string()));
    Some((message, "write the certname of a node".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_node_is_called_is_told_with_what_to_write() {
        for (name, expected) in [
            ("", "no node has an empty certname // write the certname of a node, or remove it"),
            (" web1", "the certname \" web1\" starts or ends with a blank // write `web1`"),
            (
                "web*",
                "a pin is the certname of one node, so `web*` is not a pattern // for several nodes, write a group with a rule: `name ~ \"^web\"`",
            ),
            (
                "^web\\d",
                "a pin is the certname of one node, so `^web\\d` is not a pattern // for several nodes, write a group with a rule: `name ~ \"^web\\\\d\"`",
            ),
            (
                "Web1.example.com",
                "certnames are lowercase, so no node has the name `Web1.example.com` // write `web1.example.com`",
            ),
            ("a/b", "Puppet allows no \"/\" in a certname // write the certname of a node"),
            ("bücher", "Puppet allows no \"ü\" in a certname // write the certname of a node"),
        ] {
            let found = suspicion(name, CertnameRole::Pin)
                .map(|(message, help)| format!("{message} // {help}"));
            assert_eq!(found.as_deref(), Some(expected), "{name:?}");
        }
        for name in ["web1.example.com", "web_1", "10.0.0.1", "user@host", "a b"] {
            assert_eq!(suspicion(name, CertnameRole::Pin), None, "{name}");
        }
    }
}
