//! What a remote advertises before a push, without what the push does not need.

use crate::git::failure::FetchError;
use crate::model::CommitId;

/// Which refs of the remote a push needs. libgit2 reads the history behind each one that is here, and fails at a malformed
/// commit.
#[derive(Clone, Debug, Default)]
pub(in crate::git) enum NeededRefs {
    /// All: what they lead to is not sent.
    #[default]
    All,
    /// The branch that is pushed, and those that name some commits.
    Only {
        /// Its full name.
        branch: String,
        /// The commits.
        commits: Vec<CommitId>,
    },
}

impl NeededRefs {
    fn has(&self, line: &RefLine<'_>) -> bool {
        match self {
            Self::All => true,
            Self::Only { branch, commits } => {
                line.name == branch.as_bytes()
                    || commits.iter().any(|it| it.to_string().as_bytes() == line.id)
            }
        }
    }
}

/// The lines of refs that a remote advertises. Those of a shallow repository are left out: they say where its history ends,
/// and libgit2 does not understand them.
#[derive(Debug, Default)]
pub(super) struct Advertisement {
    needed: NeededRefs,
    /// What is passed on.
    ready: Vec<u8>,
    /// The beginning of a line.
    line: Vec<u8>,
    /// What stands behind the first ref, until a ref is passed on.
    capabilities: Option<Vec<u8>>,
    /// Whether the last line names the service, as over HTTP: what ends it is not the end of the refs.
    is_greeting: bool,
    is_over: bool,
}

/// The line of a ref.
struct RefLine<'l> {
    id: &'l [u8],
    name: &'l [u8],
    capabilities: Option<&'l [u8]>,
}

/// How many digits of a line say how long it is.
const DIGITS: usize = 4;

/// How many digits an id has.
const ID: usize = 40;

/// How many bytes are taken at once.
const CHUNK: usize = 4096;

impl<'l> RefLine<'l> {
    /// Reads the text of a line; none if it is not one of a ref.
    fn read(text: &'l [u8]) -> Option<Self> {
        let (id, rest) = text.split_at_checked(ID)?;
        let rest = rest.strip_prefix(b" ").filter(|_| id.iter().all(u8::is_ascii_hexdigit))?;
        let mut parts = rest.splitn(2, |it| *it == 0);
        let name = parts.next().unwrap_or_default().trim_ascii_end();
        Some(Self { id, name, capabilities: parts.next().map(<[u8]>::trim_ascii_end) })
    }

    /// Writes the line.
    fn write(&self) -> Vec<u8> {
        let capabilities = self.capabilities.map(|it| [b"\0", it].concat()).unwrap_or_default();
        let text = [self.id, b" ", self.name, &capabilities, b"\n"].concat();
        [format!("{:04x}", text.len() + DIGITS).as_bytes(), &text].concat()
    }
}

impl Advertisement {
    /// Begins one, of which the needed refs are passed on.
    pub(super) fn of(needed: NeededRefs) -> Self {
        Self { needed, ..Self::default() }
    }

    /// What comes is passed on as it is.
    pub(super) fn over() -> Self {
        Self { is_over: true, ..Self::default() }
    }

    /// Reads what is passed on next; `receive` reads what the remote says.
    ///
    /// # Errors
    ///
    /// Returns what it does.
    pub(super) fn read_from(
        &mut self,
        buffer: &mut [u8],
        mut receive: impl FnMut(&mut [u8]) -> Result<usize, FetchError>,
    ) -> Result<usize, FetchError> {
        loop {
            match self.read(buffer) {
                0 if self.is_over => return receive(buffer),
                0 => {
                    let mut bytes = [0; CHUNK];
                    let count = receive(&mut bytes)?;
                    self.take(bytes.get(..count).unwrap_or_default());
                }
                count => return Ok(count),
            }
        }
    }

    /// Takes what the remote says next; nothing is its end.
    fn take(&mut self, bytes: &[u8]) {
        self.line.extend(bytes);
        while !self.is_over && self.take_line() {}
        if self.is_over || bytes.is_empty() {
            self.is_over = true;
            self.ready.append(&mut self.line);
        }
    }

    /// Takes a whole line; returns whether there was one.
    fn take_line(&mut self) -> bool {
        let Some(digits) = self.line.get(..DIGITS) else { return false };
        let length =
            std::str::from_utf8(digits).ok().and_then(|it| usize::from_str_radix(it, 16).ok());
        match length {
            Some(length) if length >= DIGITS => {
                if self.line.len() < length {
                    return false;
                }
                let line: Vec<u8> = self.line.drain(..length).collect();
                self.pass(&line);
            }
            Some(0) if self.is_greeting => {
                self.is_greeting = false;
                self.ready.extend(self.line.drain(..DIGITS));
            }
            // The last line has no text, and what is not a line is for libgit2 to refuse.
            _ => {
                if let Some(capabilities) = self.capabilities.take() {
                    // As git says them where there is no ref.
                    let (id, name) = ([b'0'; ID], b"capabilities^{}");
                    let line = RefLine { id: &id, name, capabilities: Some(&capabilities) };
                    self.ready.extend(line.write());
                }
                self.is_over = true;
            }
        }
        true
    }

    /// Passes a line on if it is needed.
    fn pass(&mut self, line: &[u8]) {
        let text = line.get(DIGITS..).unwrap_or_default();
        self.is_greeting = text.starts_with(b"# service=");
        match RefLine::read(text) {
            None if text.starts_with(b"shallow ") => {}
            None => self.ready.extend(line),
            Some(mut found) => {
                self.capabilities =
                    found.capabilities.map(<[u8]>::to_vec).or(self.capabilities.take());
                if self.needed.has(&found) {
                    let capabilities = self.capabilities.take();
                    found.capabilities = capabilities.as_deref();
                    self.ready.extend(found.write());
                }
            }
        }
    }

    /// Moves what is passed on next to a buffer, and returns how much that is.
    fn read(&mut self, buffer: &mut [u8]) -> usize {
        let count = self.ready.len().min(buffer.len());
        for (to, from) in buffer.iter_mut().zip(self.ready.drain(..count)) {
            *to = from;
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn line(text: &str) -> String {
        format!("{:04x}{text}", text.len() + DIGITS)
    }

    #[test]
    fn lines_of_a_shallow_repository_are_left_out_however_they_arrive() {
        let [main, shallow] =
            [line("aaaa refs/heads/main\0report-status\n"), line("shallow bbbb\n")];
        let tag = line("cccc refs/tags/shallow x\n");
        let after = "0030 shallow is not a line of it";
        let all = format!("{main}{shallow}{tag}{shallow}0000{after}");
        for size in 1..all.len() {
            let (mut advertisement, mut passed) = (Advertisement::default(), Vec::new());
            let mut buffer = [0; 7];
            for bytes in all.as_bytes().chunks(size) {
                advertisement.take(bytes);
                while let count @ 1.. = advertisement.read(&mut buffer) {
                    passed.extend_from_slice(&buffer[..count]);
                }
            }
            assert!(advertisement.is_over);
            assert_eq!(String::from_utf8(passed).unwrap(), format!("{main}{tag}0000{after}"));
        }
    }

    /// Returns what is passed on of what a remote says, however it arrives.
    fn passed(needed: &NeededRefs, said: &str) -> String {
        let mut all = BTreeSet::new();
        for size in 1..=said.len() {
            let mut advertisement = Advertisement::of(needed.clone());
            let mut chunks = said.as_bytes().chunks(size);
            let mut passed = Vec::new();
            let mut receive = |to: &mut [u8]| {
                let chunk = chunks.next().unwrap_or_default();
                to[..chunk.len()].copy_from_slice(chunk);
                Ok(chunk.len())
            };
            let mut buffer = [0; CHUNK];
            while let count @ 1.. = advertisement.read_from(&mut buffer, &mut receive).unwrap() {
                passed.extend_from_slice(&buffer[..count]);
            }
            all.insert(String::from_utf8(passed).unwrap());
        }
        assert_eq!(all.len(), 1, "{all:?}");
        all.pop_first().unwrap()
    }

    #[test]
    fn refs_that_a_push_does_not_need_are_left_out() {
        let [a, b, zero] = ["a".repeat(40), "b".repeat(40), "0".repeat(40)];
        let caps = "report-status agent=git/2";
        let pull = line(&format!("{a} refs/pull/1/head\0{caps}\n"));
        let main = line(&format!("{a} refs/heads/main\n"));
        let tag = line(&format!("{b} refs/tags/v1\n"));
        let greeting = line("# service=git-receive-pack\n") + "0000";
        let only = |commits: &[u8]| NeededRefs::Only {
            branch: "refs/heads/main".to_owned(),
            commits: commits.iter().map(|it| CommitId::from_bytes([*it; 20])).collect(),
        };
        let with_caps = line(&format!("{a} refs/heads/main\0{caps}\n"));
        let none = line(&format!("{zero} capabilities^{{}}\0{caps}\n"));
        for greeting in ["", &greeting] {
            let said = format!("{greeting}{pull}{main}{tag}0000rest");
            assert_eq!(passed(&NeededRefs::All, &said), said);
            assert_eq!(passed(&only(&[]), &said), format!("{greeting}{with_caps}0000rest"));
            let with_tag = format!("{greeting}{with_caps}{tag}0000rest");
            assert_eq!(passed(&only(&[0xbb]), &said), with_tag);
            let said = format!("{greeting}{pull}{tag}0000");
            assert_eq!(passed(&only(&[]), &said), format!("{greeting}{none}0000"));
        }
    }

    #[test]
    fn what_ends_early_is_passed_on() {
        let mut advertisement = Advertisement::default();
        advertisement.take(b"00ffERR");
        let mut buffer = [0; 16];
        assert_eq!(advertisement.read(&mut buffer), 0);
        advertisement.take(b"");
        assert_eq!((advertisement.read(&mut buffer), &buffer[..7]), (7, &b"00ffERR"[..]));
    }
}
