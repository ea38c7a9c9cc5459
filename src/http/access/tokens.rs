//! The file of tokens: a list of names with hashes, roles, and the scope of their writes.
//!
//! ```yaml
//! - name: ci
//!   sha256: 2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824
//!   roles: [classify, read]
//! ```

use std::collections::HashMap;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use super::grant::Grant;
use super::roles::{Role, Roles};
use crate::changeset::Scope;
use crate::document::{self, Content, Limits, Node};
use crate::hierarchy::GroupKey;
use crate::model::GroupId;

/// The known tokens, by their hashes.
#[derive(Debug, Default)]
pub(crate) struct Tokens(HashMap<[u8; 32], Arc<Token>>);

/// A token, by its hash: the token itself is not stored.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) name: Arc<str>,
    hash: [u8; 32],
    pub(super) grant: Arc<Grant>,
}

/// A file of grants cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TokensError {
    /// It cannot be read.
    #[error("`{}` cannot be read", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// An entry is malformed.
    #[error("{}:{fault}", .path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        fault: GrantFault,
    },
}

/// What is wrong with a list of grants.
#[derive(Debug, thiserror::Error)]
#[error("{line}:{column}: {message}")]
pub struct GrantFault {
    line: u32,
    column: u32,
    message: String,
}

impl Tokens {
    /// Reads the tokens of a file. Two entries may share a name, so that a token can be replaced while the
    /// old one is in use; they may not share a hash, since the caller would have two names.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, GrantFault> {
        let mut tokens: HashMap<[u8; 32], Arc<Token>> = HashMap::new();
        for node in &entries(bytes)? {
            let token = token(node)?;
            if let Some(other) = tokens.get(&token.hash) {
                let message = format!("the entry `{}` has this `sha256` already", other.name);
                return Err(fault(Fields(node).value("sha256"), message));
            }
            tokens.insert(token.hash, Arc::new(token));
        }
        Ok(Self(tokens))
    }

    /// Returns the names of entries that allow nothing.
    pub(super) fn without_roles(&self) -> impl Iterator<Item = &str> {
        let idle = self.0.values().filter(|it| it.grant.roles == Roles::default());
        idle.map(|it| &*it.name)
    }

    /// Returns the roles of each token.
    pub(super) fn roles(&self) -> impl Iterator<Item = Roles> {
        self.0.values().map(|it| it.grant.roles)
    }

    /// Finds a token. How long that takes tells nothing of how much of a token is correct: its hash is looked up by a
    /// keyed hash of that, and compared as a whole.
    pub(super) fn find(&self, token: &[u8]) -> Option<&Arc<Token>> {
        let hash: [u8; 32] = Sha256::digest(token).into();
        self.0.get(&hash).filter(|it| it.hash.ct_eq(&hash).into())
    }

    /// Returns whether a token is still one of them, with the same grant.
    pub(super) fn has(&self, token: &Token) -> bool {
        self.0.get(&token.hash).is_some_and(|it| **it == *token)
    }
}

fn token(node: &Node) -> Result<Token, GrantFault> {
    let fields = Fields::of(node, &["name", "sha256", "roles", "groups", "keys"])?;
    let hash = fields.text("sha256")?;
    let mut bytes = [0; 32];
    let digits = hash.len() == 64 && hash.bytes().all(|it| it.is_ascii_hexdigit());
    for (byte, pair) in bytes.iter_mut().zip(hash.as_bytes().chunks(2)) {
        let pair = std::str::from_utf8(pair).unwrap_or_default();
        *byte = u8::from_str_radix(pair, 16).unwrap_or_default();
    }
    if !digits {
        return Err(fault(
            fields.value("sha256"),
            "`sha256` must be the SHA-256 of the token, 64 hexadecimal digits",
        ));
    }
    if bytes == <[u8; 32]>::from(Sha256::digest(b"")) {
        let message = "`sha256` is that of an empty token: hash the token itself";
        return Err(fault(fields.value("sha256"), message));
    }
    Ok(Token { name: fields.name("name")?.into(), hash: bytes, grant: Arc::new(fields.grant()?) })
}

/// What a file of entries may take: about 100,000 tokens.
const LIMITS: Limits = Limits { file_bytes: 16 << 20, ..Limits::DEFAULT };

/// Reads the entries of a list in a YAML file.
pub(super) fn entries(bytes: &[u8]) -> Result<Vec<Node>, GrantFault> {
    let contents = document::read(bytes, &LIMITS);
    if let Some(fault) = contents.faults.into_iter().next() {
        return Err(GrantFault {
            line: fault.span.start.line,
            column: fault.span.start.column,
            message: fault.message,
        });
    }
    let mut documents = contents.documents.into_iter();
    let first = documents.next();
    if let Some(other) = documents.find(|it| !it.is_null()) {
        return Err(fault(&other, "the entries are one document, here is another"));
    }
    match first {
        None => Ok(Vec::new()),
        Some(Node { content: Content::Sequence(items), .. }) => Ok(items),
        Some(node) if node.is_null() => Ok(Vec::new()),
        Some(node) => Err(fault(&node, "expected a list")),
    }
}

pub(super) fn fault(node: &Node, message: impl Into<String>) -> GrantFault {
    let start = node.span.start;
    GrantFault { line: start.line, column: start.column, message: message.into() }
}

/// The keys of one entry.
pub(super) struct Fields<'a>(&'a Node);

impl<'a> Fields<'a> {
    pub(super) fn of(node: &'a Node, known: &[&str]) -> Result<Self, GrantFault> {
        for entry in node.entries() {
            if !known.contains(&entry.key.as_str()) {
                let message = format!("unknown key `{}`: one of {}", entry.key, known.join(", "));
                return Err(fault(&entry.value, message));
            }
        }
        Ok(Self(node))
    }

    fn get(&self, key: &str) -> Option<&'a Node> {
        self.0.entries().iter().find(|it| it.key == key).map(|it| &it.value)
    }

    /// Returns the value of a key, or the entry where the key is missing.
    pub(super) fn value(&self, key: &str) -> &'a Node {
        self.get(key).unwrap_or(self.0)
    }

    /// Reads a name, which logs and commit messages show.
    fn name(&self, key: &str) -> Result<String, GrantFault> {
        let name = self.text(key)?;
        if name.chars().any(char::is_control) {
            let message = format!("`{key}` must be text without control characters");
            return Err(fault(self.value(key), message));
        }
        Ok(name)
    }

    /// Returns a text that is not blank, if the key is there.
    pub(super) fn maybe_text(&self, key: &str) -> Result<Option<String>, GrantFault> {
        let Some(node) = self.get(key) else { return Ok(None) };
        let text = node.as_str().filter(|text| !text.trim().is_empty());
        let wrong = || fault(node, format!("`{key}` must be a string that is not empty"));
        text.map(|text| Some(text.to_owned())).ok_or_else(wrong)
    }

    fn text(&self, key: &str) -> Result<String, GrantFault> {
        let missing = || fault(self.0, format!("`{key}` is missing"));
        self.maybe_text(key)?.ok_or_else(missing)
    }

    /// Returns the roles and the scope. Without `groups` every group is in the scope, without `keys`
    /// every key; an empty list has none of them. Without `roles` the entry allows nothing.
    pub(super) fn grant(&self) -> Result<Grant, GrantFault> {
        let roles: Vec<Role> = self.parsed("roles")?.unwrap_or_default();
        let groups: Option<Vec<GroupId>> = self.parsed("groups")?;
        let keys: Option<Vec<GroupKey>> = self.parsed("keys")?;
        let scope = Scope {
            groups: groups.map(|it| it.into_iter().collect()),
            keys: keys.map(|it| it.into_iter().collect()),
        };
        Ok(Grant { roles: Roles::of(&roles), scope })
    }

    /// Returns the items of a list, each parsed.
    fn parsed<T: FromStr<Err: std::fmt::Display>>(
        &self,
        key: &str,
    ) -> Result<Option<Vec<T>>, GrantFault> {
        let Some(node) = self.get(key) else { return Ok(None) };
        let wrong = |at: &Node| fault(at, format!("`{key}` must be a list of strings"));
        let Content::Sequence(items) = &node.content else { return Err(wrong(node)) };
        let parse = |item: &Node| {
            let text = item.as_str().ok_or_else(|| wrong(item))?;
            text.parse().map_err(|error: T::Err| fault(item, error.to_string()))
        };
        items.iter().map(parse).collect::<Result<_, _>>().map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // The token is `hello`.
    const HASH: &str = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";

    fn read(text: &str) -> Result<Tokens, GrantFault> {
        Tokens::parse(text.as_bytes())
    }

    #[test]
    fn a_token_is_found_by_itself_alone() {
        let tokens =
            read(&format!("- name: ci\n  sha256: {HASH}\n  roles: [classify, read]\n")).unwrap();
        let found = tokens.find(b"hello").unwrap();
        let grant = Grant::everywhere(Roles::of(&[Role::Classify, Role::Read]));
        assert_eq!((found.name.as_ref(), found.grant.as_ref()), ("ci", &grant));
        assert!(tokens.find(b"Hello").is_none());
        assert!(tokens.find(HASH.as_bytes()).is_none());
        assert!(tokens.find(b"").is_none());
    }

    #[test]
    fn groups_and_keys_limit_a_scope_each_by_itself() {
        let group = "58463036-0efa-4365-b367-b5401c0711d3";
        let some = |groups: &[&str], keys: &[GroupKey]| Scope {
            groups: Some(groups.iter().map(|it| it.parse().unwrap()).collect()),
            keys: Some(keys.iter().copied().collect()),
        };
        let both = some(&[group], &[GroupKey::Pinned]);
        for (text, scope) in [
            ("", Scope::default()),
            (", keys: [pinned]", Scope { groups: None, ..both.clone() }),
            (&format!(", groups: [{group}]"), Scope { keys: None, ..both.clone() }),
            (&format!(", groups: [{group}, {group}], keys: [pinned]"), both),
            (", groups: [], keys: []", some(&[], &[])),
        ] {
            let tokens = read(&format!("- {{name: ci, sha256: {HASH}, roles: [write]{text}}}\n"));
            assert_eq!(tokens.unwrap().find(b"hello").unwrap().grant.scope, scope, "{text}");
        }
    }

    #[test]
    fn an_entry_without_roles_allows_nothing() {
        for roles in ["", ", roles: []"] {
            let tokens = read(&format!("- {{name: ci, sha256: {HASH}{roles}}}\n")).unwrap();
            assert_eq!(tokens.find(b"hello").unwrap().grant.roles, Roles::default());
        }
    }

    #[test]
    fn two_tokens_may_share_a_name_but_not_a_hash() {
        let other = HASH.replace('2', "3");
        let text = format!("- {{name: a, sha256: {HASH}}}\n- {{name: a, sha256: {other}}}\n");
        assert!(read(&text).is_ok());
        let text = format!("- {{name: a, sha256: {HASH}}}\n- {{name: b, sha256: {HASH}}}\n");
        let error = read(&text).unwrap_err().to_string();
        assert_eq!(error, "2:21: the entry `a` has this `sha256` already");
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        for (text, message) in [
            ("a: b\n", "1:1: expected a list"),
            ("- 1\n---\n- 2\n", "3:1: the entries are one document"),
            ("- name: ci\n  sha256: abc\n", "2:11: `sha256` must be the SHA-256"),
            (
                &format!("- name: \"ci\\nClade-Actor: root\"\n  sha256: {HASH}\n"),
                "1:9: `name` must be text without control characters",
            ),
            (&format!("- name: ' '\n  sha256: {HASH}\n"), "1:9: `name` must be a string"),
            (
                "- name: x\n  sha256: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\n",
                "2:11: `sha256` is that of an empty token",
            ),
            ("- token: hello\n", "1:10: unknown key `token`"),
            (
                &format!("- name: x\n  sha256: {HASH}\n  roles: [root]\n"),
                "3:11: unknown role `root`: expected one of `classify`, `check-in`, ",
            ),
            (&format!("- name: x\n  sha256: {HASH}\n  groups: [x]\n"), "3:12: "),
            (&format!("- name: x\n  sha256: {HASH}\n  groups:\n"), "3:"),
            (
                &format!("- name: x\n  sha256: {HASH}\n  keys: [clases]\n"),
                "3:10: unknown key `clases`: expected one of `name`, ",
            ),
            (&format!("- name: ''\n  sha256: {HASH}\n"), "1:9: `name` must be"),
            (&format!("- sha256: {HASH}\n"), "1:3: `name` is missing"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
        }
    }
}
