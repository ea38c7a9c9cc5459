//! What git advertises before a push, without what libgit2 does not understand.

/// The lines of refs that git advertises, of which those of a shallow repository are left out: they say where its history
/// ends, and a push needs no more than its refs.
#[derive(Debug, Default)]
pub(super) struct Advertisement {
    /// What is passed on.
    ready: Vec<u8>,
    /// The beginning of a line.
    line: Vec<u8>,
    is_over: bool,
}

/// How many digits of a line say how long it is.
const DIGITS: usize = 4;

impl Advertisement {
    /// Returns whether all of it was taken.
    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Takes what git says next; nothing is its end.
    pub(super) fn take(&mut self, bytes: &[u8]) {
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
                let is_shallow = line.get(DIGITS..).is_some_and(|it| it.starts_with(b"shallow "));
                if !is_shallow {
                    self.ready.extend(line);
                }
            }
            // The last line has no text, and what is not a line is for libgit2 to refuse.
            _ => self.is_over = true,
        }
        true
    }

    /// Moves what is passed on next to a buffer, and returns how much that is.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> usize {
        let count = self.ready.len().min(buffer.len());
        for (to, from) in buffer.iter_mut().zip(self.ready.drain(..count)) {
            *to = from;
        }
        count
    }
}

#[cfg(test)]
mod tests {
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
            assert!(advertisement.is_over());
            assert_eq!(String::from_utf8(passed).unwrap(), format!("{main}{tag}0000{after}"));
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
