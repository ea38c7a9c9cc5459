//! What a remote says of its refs, as far as libgit2 does not: names that are not UTF-8, and that its history is cut.

/// The most bytes of a line that are kept.
const LINE: usize = 4096;

/// How many refs are named.
const NAMED: usize = 100;

/// How many bytes stand before the name: an id and a space.
const ID: usize = 41;

/// How the line of a shallow clone begins, of which libgit2 says that it is invalid; the id of a commit follows.
const SHALLOW: &[u8] = b"shallow ";

/// Finds refs whose names are not UTF-8, in the lines of a list.
#[derive(Debug, Default)]
pub(super) struct RefLines {
    /// Whether one said that the remote is a shallow clone.
    is_shallow: bool,
    /// The line that passes, if it is one of a ref or of a shallow clone.
    line: Vec<u8>,
    /// The names, with what is not UTF-8 replaced.
    not_utf8: Vec<String>,
}

impl RefLines {
    /// Begins a line.
    pub(super) fn begin(&mut self, first: u8) {
        self.line.clear();
        if first.is_ascii_hexdigit() || SHALLOW.first() == Some(&first) {
            self.line.push(first);
        }
    }

    /// Takes more of a line.
    pub(super) fn take(&mut self, bytes: &[u8]) {
        if !self.line.is_empty() {
            let room = LINE.saturating_sub(self.line.len());
            self.line.extend(bytes.iter().take(room));
        }
    }

    /// Ends a line.
    pub(super) fn end(&mut self) {
        self.is_shallow |= self.line.starts_with(SHALLOW);
        let Some(name) = self.line.get(ID..).filter(|_| self.line.len() < LINE) else { return };
        // Capabilities stand behind a NUL.
        let name = name.split(|it| *it == 0).next().unwrap_or_default().trim_ascii_end();
        // What a tag points to stands behind it.
        let is_ref = name.starts_with(b"refs/") && !name.ends_with(b"^{}");
        let is_odd = is_ref && std::str::from_utf8(name).is_err();
        if is_odd && self.not_utf8.len() < NAMED {
            self.not_utf8.push(String::from_utf8_lossy(name).into_owned());
        }
    }

    /// Returns whether the remote is a shallow clone.
    pub(super) fn is_shallow(&self) -> bool {
        self.is_shallow
    }

    /// Returns the names that are not UTF-8.
    pub(super) fn not_utf8(&self) -> &[String] {
        &self.not_utf8
    }
}
