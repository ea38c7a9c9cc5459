//! The file of tokens: a list of names with hashes, roles, and where they may write.
//!
//! ```yaml
//! - name: ci
//!   sha256: 2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824
//!   roles: [classify, read]
//! ```

use sha2::{Digest as _, Sha256};
use std::collections::BTreeSet;
use subtle::ConstantTimeEq as _;

use super::roles::{Role, Roles};
use crate::amend::Scope;
use crate::document::{self, Content, Limits, Node};
use crate::model::GroupId;

/// The tokens that are known.
#[derive(Debug, Default)]
pub(crate) struct Tokens(Vec<Token>);

/// A token: nobody can tell from this what it is.
#[derive(Debug)]
pub(super) struct Token {
    pub(super) name: String,
    hash: [u8; 32],
    pub(super) roles: Roles,
    pub(super) scope: Option<Scope>,
}

/// A file of tokens or certificates cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TokensError {
    /// It cannot be read.
    #[error("it cannot be read")]
    Unreadable(#[source] std::io::Error),
    /// It says something that it should not.
    #[error("line {line}, column {column}: {message}")]
    Malformed {
        /// The line, from 1.
        line: u32,
        /// The column, from 1.
        column: u32,
        /// What is wrong.
        message: String,
    },
}

impl Tokens {
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, TokensError> {
        entries(bytes)?.iter().map(token).collect::<Result<_, _>>().map(Self)
    }

    /// Finds a token, in a time that does not depend on which or how much of it is right.
    pub(super) fn find(&self, token: &str) -> Option<&Token> {
        let hash: [u8; 32] = Sha256::digest(token.as_bytes()).into();
        let mut found = None;
        for it in &self.0 {
            if bool::from(it.hash.ct_eq(&hash)) {
                found = Some(it);
            }
        }
        found
    }
}

fn token(node: &Node) -> Result<Token, TokensError> {
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
            node,
            "`sha256` must be the SHA-256 of the token, 64 hexadecimal digits",
        ));
    }
    if bytes == <[u8; 32]>::from(Sha256::digest(b"")) {
        return Err(fault(node, "`sha256` is that of an empty token: hash the token itself"));
    }
    Ok(Token {
        name: fields.name("name")?,
        hash: bytes,
        roles: fields.roles()?,
        scope: fields.scope()?,
    })
}

/// Reads the entries of a list in a YAML file.
pub(super) fn entries(bytes: &[u8]) -> Result<Vec<Node>, TokensError> {
    let contents = document::read(bytes, &Limits::DEFAULT);
    if let Some(fault) = contents.faults.into_iter().next() {
        return Err(TokensError::Malformed {
            line: fault.span.start.line,
            column: fault.span.start.column,
            message: fault.message,
        });
    }
    match contents.documents.into_iter().next() {
        None => Ok(Vec::new()),
        Some(Node { content: Content::Sequence(items), .. }) => Ok(items),
        Some(node) if node.is_null() => Ok(Vec::new()),
        Some(node) => Err(fault(&node, "there must be a list")),
    }
}

pub(super) fn fault(node: &Node, message: impl Into<String>) -> TokensError {
    let start = node.span.start;
    TokensError::Malformed { line: start.line, column: start.column, message: message.into() }
}

/// The keys of one entry.
pub(super) struct Fields<'a>(&'a Node);

impl<'a> Fields<'a> {
    pub(super) fn of(node: &'a Node, known: &[&str]) -> Result<Self, TokensError> {
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

    pub(super) fn maybe_text(&self, key: &str) -> Option<String> {
        self.get(key)?.as_str().map(str::to_owned)
    }

    pub(super) fn text(&self, key: &str) -> Result<String, TokensError> {
        let missing = || fault(self.0, format!("`{key}` must be a string"));
        self.maybe_text(key).ok_or_else(missing)
    }

    /// Reads a name, which logs and commit messages show.
    fn name(&self, key: &str) -> Result<String, TokensError> {
        let name = self.text(key)?;
        if name.trim().is_empty() || name.chars().any(char::is_control) {
            let message = format!("`{key}` must be text without control characters");
            return Err(fault(self.0, message));
        }
        Ok(name)
    }

    fn list(&self, key: &str) -> Result<Option<Vec<String>>, TokensError> {
        let Some(node) = self.get(key) else { return Ok(None) };
        let wrong = || fault(node, format!("`{key}` must be a list of strings"));
        match &node.content {
            Content::Sequence(items) => items
                .iter()
                .map(|it| it.as_str().map(str::to_owned).ok_or_else(wrong))
                .collect::<Result<_, _>>()
                .map(Some),
            _ => Err(wrong()),
        }
    }

    pub(super) fn roles(&self) -> Result<Roles, TokensError> {
        let names = self.list("roles")?.unwrap_or_default();
        let read = |name: &String| name.parse::<Role>();
        let roles: Result<Vec<Role>, String> = names.iter().map(read).collect();
        Ok(Roles::of(&roles.map_err(|error| fault(self.0, error))?))
    }

    pub(super) fn scope(&self) -> Result<Option<Scope>, TokensError> {
        let Some(groups) = self.list("groups")? else { return Ok(None) };
        let read =
            |id: &String| id.parse::<GroupId>().map_err(|error| fault(self.0, error.to_string()));
        let groups = groups.iter().map(read).collect::<Result<_, _>>()?;
        let keys = self.list("keys")?.map(|it| it.into_iter().collect::<BTreeSet<_>>());
        Ok(Some(Scope { groups, keys }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // The token is `hello`.
    const HASH: &str = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";

    fn read(text: &str) -> Result<Tokens, TokensError> {
        entries(text.as_bytes())?.iter().map(token).collect::<Result<_, _>>().map(Tokens)
    }

    #[test]
    fn a_token_is_found_by_itself_alone() {
        let tokens =
            read(&format!("- name: ci\n  sha256: {HASH}\n  roles: [classify, read]\n")).unwrap();
        let found = tokens.find("hello").unwrap();
        assert_eq!(
            (found.name.as_str(), found.roles),
            ("ci", Roles::of(&[Role::Classify, Role::Read]))
        );
        assert!(tokens.find("Hello").is_none());
        assert!(tokens.find(HASH).is_none());
        assert!(tokens.find("").is_none());
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        for (text, message) in [
            ("a: b\n", "line 1, column 1: there must be a list"),
            ("- name: ci\n  sha256: abc\n", "line 1, column 3: `sha256` must be the SHA-256"),
            (
                &format!("- name: \"ci\\nClade-Actor: root\"\n  sha256: {HASH}\n"),
                "line 1, column 3: `name` must be text without control characters",
            ),
            (&format!("- name: ' '\n  sha256: {HASH}\n"), "line 1, column 3: `name` must be text"),
            (
                "- name: x\n  sha256: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\n",
                "line 1, column 3: `sha256` is that of an empty token",
            ),
            ("- token: hello\n", "line 1, column 10: unknown key `token`"),
            (
                &format!("- name: x\n  sha256: {HASH}\n  roles: [root]\n"),
                "line 1, column 3: `root` is no role",
            ),
            (&format!("- name: x\n  sha256: {HASH}\n  groups: [x]\n"), "line 1, column 3: "),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
        }
    }
}
