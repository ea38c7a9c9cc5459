//! Reading of a request what rules look at.
//!
//! The body is checked as a whole, and nothing is made of what no rule mentions. What is rare or
//! wrong is declined: then the body is read in full, which alone decides what is an error. What is
//! not declined means the same in both.

use serde_json::Value;

use super::index::Index;
use super::paths::{Seen, Sight, Trie, put};

/// A request for a node's classification.
#[derive(Clone, Debug)]
pub struct Request<'b> {
    /// What the node has where rules look.
    pub sight: Sight<'b>,
    /// Which of its keys has the facts: `fact`, `facts`, or else `trusted` or `other`.
    pub shape: &'static str,
    /// The id of the agent's run.
    pub transaction: Option<String>,
    /// The facts as they stand in the body.
    pub fact: &'b str,
    /// The trusted data as they stand in the body.
    pub trusted: &'b str,
}

impl Index {
    /// Reads a body; `None` if it must be read in full.
    pub fn read<'b>(&self, name: &'b str, body: &'b [u8]) -> Option<Request<'b>> {
        let paths = self.paths();
        let mut seen = vec![Seen::Missing; paths.len()];
        put(&mut seen, paths.name, || Seen::Text(name.into()));
        let text = std::str::from_utf8(body).ok()?;
        let mut scanner = Scanner { text, bytes: body, at: 0, depth: 0, seen };
        let mut found = Found::default();
        let mut more = scanner.open()?;
        while more {
            let key = scanner.key()?;
            scanner.blanks();
            let start = scanner.at;
            match key {
                "fact" | "facts" => {
                    let key = if key == "fact" { "fact" } else { "facts" };
                    let shape = scanner.object(&paths.fact)?;
                    if found.facts.is_some_and(|it| it.key != key) || shape == Shape::Envelope {
                        return None;
                    }
                    let text = shape.text(text, start, scanner.at)?;
                    found.facts = Some(Facts { key, text, is_null: shape == Shape::Null });
                }
                "trusted" => {
                    let shape = scanner.object(&paths.trusted)?;
                    found.trusted = Some(shape.text(text, start, scanner.at)?);
                }
                "transaction_uuid" => {
                    scanner.skip()?;
                    let value: Value = serde_json::from_str(text.get(start..scanner.at)?).ok()?;
                    found.transaction = value.as_str().map(str::to_owned);
                }
                _ => scanner.skip()?,
            }
            more = scanner.next(b'}')?;
        }
        scanner.blanks();
        (scanner.at == body.len()).then(|| Request {
            sight: Sight(scanner.seen),
            shape: found.shape(),
            transaction: found.transaction,
            fact: found.facts.map_or("{}", |it| it.text),
            trusted: found.trusted.unwrap_or("{}"),
        })
    }
}

#[derive(Default)]
struct Found<'b> {
    facts: Option<Facts<'b>>,
    trusted: Option<&'b str>,
    transaction: Option<String>,
}

#[derive(Clone, Copy)]
struct Facts<'b> {
    key: &'static str,
    text: &'b str,
    is_null: bool,
}

impl Found<'_> {
    fn shape(&self) -> &'static str {
        match (self.facts, self.trusted) {
            (Some(facts), _) if !facts.is_null => facts.key,
            (_, Some(_)) => "trusted",
            (_, None) => "other",
        }
    }
}

/// What stands where facts or trusted data should.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Null,
    Object,
    /// An object that may be facts in Puppet's envelope.
    Envelope,
}

impl Shape {
    fn text(self, text: &str, start: usize, end: usize) -> Option<&str> {
        if self == Self::Null { Some("{}") } else { text.get(start..end) }
    }
}

/// How deep values may lie in each other; what is deeper is read in full.
const DEPTH: u32 = 100;

struct Scanner<'b> {
    text: &'b str,
    bytes: &'b [u8],
    at: usize,
    depth: u32,
    seen: Vec<Seen<'b>>,
}

impl<'b> Scanner<'b> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn blanks(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    /// Takes a byte that must be there.
    fn take(&mut self, wanted: u8) -> Option<()> {
        (self.peek()? == wanted).then(|| self.at += 1)
    }

    /// Opens an object; returns whether it has an entry.
    fn open(&mut self) -> Option<bool> {
        self.blanks();
        self.take(b'{')?;
        self.enter(b'}')
    }

    /// Goes behind the bracket that opens; returns whether something is in there.
    fn enter(&mut self, end: u8) -> Option<bool> {
        self.depth += 1;
        if self.depth > DEPTH {
            return None;
        }
        self.blanks();
        if self.peek()? == end {
            self.at += 1;
            self.depth -= 1;
            return Some(false);
        }
        Some(true)
    }

    /// Goes on behind an entry or element; returns whether there is another.
    fn next(&mut self, end: u8) -> Option<bool> {
        self.blanks();
        let found = self.peek()?;
        self.at += 1;
        if found == b',' {
            self.blanks();
            return Some(true);
        }
        self.depth -= 1;
        (found == end).then_some(false)
    }

    /// Takes a key with its colon. Keys that are escaped, or have a meaning to the JSON library,
    /// are declined.
    fn key(&mut self) -> Option<&'b str> {
        let (start, end, plain) = self.string()?;
        self.blanks();
        self.take(b':')?;
        let key = self.text.get(start..end)?;
        (plain && !key.starts_with('$')).then_some(key)
    }

    /// Takes a string; returns where its inside starts and ends, and whether nothing is escaped.
    fn string(&mut self) -> Option<(usize, usize, bool)> {
        self.take(b'"')?;
        let start = self.at;
        let mut plain = true;
        loop {
            self.at += plain_prefix(self.bytes.get(self.at..)?);
            match self.peek()? {
                b'"' => break,
                b'\\' => {
                    plain = false;
                    self.at += 1;
                    match self.peek()? {
                        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => self.at += 1,
                        b'u' => {
                            let digits = self.bytes.get(self.at + 1..self.at + 5)?;
                            let surrogate = matches!(
                                digits,
                                [b'd' | b'D', b'8'..=b'9' | b'a'..=b'f' | b'A'..=b'F', ..]
                            );
                            if surrogate || !digits.iter().all(u8::is_ascii_hexdigit) {
                                return None;
                            }
                            self.at += 5;
                        }
                        _ => return None,
                    }
                }
                // A control character.
                _ => return None,
            }
        }
        let end = self.at;
        self.at += 1;
        Some((start, end, plain))
    }

    fn digits(&mut self) -> Option<()> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        (self.at > start).then_some(())
    }

    fn number(&mut self) -> Option<()> {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        match self.peek()? {
            b'0' => self.at += 1,
            _ => self.digits()?,
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        // Nothing but these may follow; `01` is no number.
        let ends =
            matches!(self.peek(), None | Some(b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t'));
        ends.then_some(())
    }

    fn word(&mut self, word: &str) -> Option<()> {
        let end = self.at + word.len();
        (self.bytes.get(self.at..end)? == word.as_bytes()).then(|| self.at = end)
    }

    /// Takes a value that nobody looks at.
    fn skip(&mut self) -> Option<()> {
        // What is open, the innermost in the lowest bit: an object, or a list. One more bit marks
        // the end; there is room, since depth is limited.
        let mut open = 1_u128;
        loop {
            match self.peek()? {
                b'"' => {
                    self.string()?;
                }
                b'{' => {
                    self.at += 1;
                    if self.enter(b'}')? {
                        open = open << 1 | 1;
                        self.skip_key()?;
                        continue;
                    }
                }
                b'[' => {
                    self.at += 1;
                    if self.enter(b']')? {
                        open <<= 1;
                        continue;
                    }
                }
                b't' => self.word("true")?,
                b'f' => self.word("false")?,
                b'n' => self.word("null")?,
                _ => self.number()?,
            }
            // Behind a value.
            loop {
                if open == 1 {
                    return Some(());
                }
                let is_object = open & 1 == 1;
                if self.next(if is_object { b'}' } else { b']' })? {
                    if is_object {
                        self.skip_key()?;
                    }
                    break;
                }
                open >>= 1;
            }
        }
    }

    /// Takes a key that nobody looks at, with its colon and the blanks behind.
    fn skip_key(&mut self) -> Option<()> {
        let (start, _, plain) = self.string()?;
        if !plain || self.bytes.get(start) == Some(&b'$') {
            return None;
        }
        self.blanks();
        self.take(b':')?;
        self.blanks();
        Some(())
    }

    /// Reads facts or trusted data, or null in their place.
    fn object(&mut self, trie: &Trie) -> Option<Shape> {
        self.clear(trie);
        if self.peek()? == b'n' {
            self.word("null")?;
            return Some(Shape::Null);
        }
        let (mut name, mut values, mut others) = (false, false, false);
        let mut more = self.open()?;
        while more {
            let key = self.key()?;
            match key {
                "name" => name = true,
                "values" => values = true,
                "timestamp" | "expiration" => {}
                _ => others = true,
            }
            self.entry(trie, key)?;
            more = self.next(b'}')?;
        }
        Some(if name && values && !others { Shape::Envelope } else { Shape::Object })
    }

    fn entry(&mut self, trie: &Trie, key: &str) -> Option<()> {
        self.blanks();
        match trie.keys.get(key) {
            Some(trie) => {
                // The last of several entries of one key stays.
                self.clear(trie);
                self.read(trie)
            }
            None => self.skip(),
        }
    }

    /// Forgets what was seen below a place.
    fn clear(&mut self, trie: &Trie) {
        for path in &trie.below {
            put(&mut self.seen, Some(*path), || Seen::Missing);
        }
    }

    /// Reads a value that rules look at, or into.
    fn read(&mut self, trie: &Trie) -> Option<()> {
        let start = self.at;
        match self.peek()? {
            b'"' => {
                let (start, end, plain) = self.string()?;
                let text = self.text;
                let seen = if plain {
                    Seen::Text(text.get(start..end)?.into())
                } else {
                    // Only with its quotes it is a value.
                    let text: String = serde_json::from_str(text.get(start - 1..=end)?).ok()?;
                    Seen::Text(text.into())
                };
                put(&mut self.seen, trie.here, || seen);
            }
            b'{' => {
                put(&mut self.seen, trie.here, || Seen::Object);
                let mut more = self.open()?;
                while more {
                    let key = self.key()?;
                    self.entry(trie, key)?;
                    more = self.next(b'}')?;
                }
            }
            b'[' => {
                self.at += 1;
                let mut more = self.enter(b']')?;
                let mut index = 0;
                while more {
                    match trie.elements.iter().find(|(it, _)| *it == index) {
                        Some((_, trie)) => self.read(trie)?,
                        None => self.skip()?,
                    }
                    index += 1;
                    more = self.next(b']')?;
                }
                self.whole(trie, start)?;
            }
            _ => {
                self.skip()?;
                self.whole(trie, start)?;
            }
        }
        Some(())
    }

    /// Notes the value that ends here, as the JSON library reads it.
    fn whole(&mut self, trie: &Trie, start: usize) -> Option<()> {
        if trie.here.is_some() {
            let value: Value = serde_json::from_str(self.text.get(start..self.at)?).ok()?;
            put(&mut self.seen, trie.here, || value.into());
        }
        Some(())
    }
}

/// Returns how many bytes at the start stand for themselves in a string: no quote, no backslash,
/// no control character.
fn plain_prefix(bytes: &[u8]) -> usize {
    const LOW: u64 = u64::MAX / 255;
    const HIGH: u64 = LOW << 7;
    let (words, rest) = bytes.as_chunks::<8>();
    for (at, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let zero = |it: u64| it.wrapping_sub(LOW) & !it & HIGH;
        let special = zero(word ^ (LOW * u64::from(b'"')))
            | zero(word ^ (LOW * u64::from(b'\\')))
            | (word.wrapping_sub(LOW * 0x20) & !word & HIGH);
        if special != 0 {
            // The lowest mark is never a false one.
            return at * 8 + special.trailing_zeros() as usize / 8;
        }
    }
    let special = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..0x20);
    bytes.len() - rest.len() + rest.iter().position(special).unwrap_or(rest.len())
}
