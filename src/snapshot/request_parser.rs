//! Reading of a request what rules look at.
//!
//! The body is checked as a whole, and nothing is made of what no rule mentions. What is rare or
//! wrong is declined: then the body is read in full, which alone decides what is an error. What is
//! not declined means the same in both.

use serde_json::Value;

use super::index::Index;
use super::paths::{PathValue, ResolvedPaths, Trie, put};
use super::scan::{self, DEPTH, Quoted};

/// A request for a node's classification.
#[derive(Clone, Debug)]
pub struct Request<'b> {
    /// What the node has where rules look.
    pub resolved: ResolvedPaths<'b>,
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
        let mut seen = vec![PathValue::Missing; paths.len()];
        put(&mut seen, paths.name, || PathValue::Text(name.into()));
        let text = std::str::from_utf8(body).ok()?;
        let mut scanner = BodyScanner { text, bytes: body, at: 0, depth: 0, seen };
        let mut found = FoundParts::default();
        let mut more = scanner.open()?;
        while more {
            let key = scanner.key()?;
            let start = scanner.at;
            match key {
                "fact" | "facts" => {
                    let key = if key == "fact" { "fact" } else { "facts" };
                    let shape = scanner.object(&paths.fact)?;
                    if found.facts.is_some_and(|it| it.key != key) || shape == DataShape::Envelope {
                        return None;
                    }
                    let text = shape.text(text, start, scanner.at)?;
                    found.facts = Some(FoundFacts { key, text, is_null: shape == DataShape::Null });
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
        (scan::blanks(body, scanner.at) == body.len()).then(|| Request {
            resolved: ResolvedPaths(scanner.seen),
            shape: found.shape(),
            transaction: found.transaction,
            fact: found.facts.map_or("{}", |it| it.text),
            trusted: found.trusted.unwrap_or("{}"),
        })
    }
}

#[derive(Default)]
struct FoundParts<'b> {
    facts: Option<FoundFacts<'b>>,
    trusted: Option<&'b str>,
    transaction: Option<String>,
}

#[derive(Clone, Copy)]
struct FoundFacts<'b> {
    key: &'static str,
    text: &'b str,
    is_null: bool,
}

impl FoundParts<'_> {
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
enum DataShape {
    Null,
    Object,
    /// An object that may be facts in Puppet's envelope.
    Envelope,
}

impl DataShape {
    fn text(self, text: &str, start: usize, end: usize) -> Option<&str> {
        if self == Self::Null { Some("{}") } else { text.get(start..end) }
    }
}

/// Goes through a body.
struct BodyScanner<'b> {
    text: &'b str,
    bytes: &'b [u8],
    at: usize,
    depth: u32,
    seen: Vec<PathValue<'b>>,
}

impl<'b> BodyScanner<'b> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn blanks(&mut self) {
        self.at = scan::blanks(self.bytes, self.at);
    }

    /// Opens an object; returns whether it has an entry.
    fn open(&mut self) -> Option<bool> {
        self.blanks();
        if self.peek()? != b'{' {
            return None;
        }
        self.enter(b'}')
    }

    /// Goes behind the bracket that opens; returns whether something is in there.
    fn enter(&mut self, end: u8) -> Option<bool> {
        self.at += 1;
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

    /// Takes a key, and goes to its value.
    fn key(&mut self) -> Option<&'b str> {
        let start = self.at + 1;
        let (end, value) = scan::key(self.bytes, self.at)?;
        self.at = value;
        self.text.get(start..end)
    }

    /// Skips a value that no rule reads.
    fn skip(&mut self) -> Option<()> {
        self.at = scan::value(self.bytes, self.at, self.depth)?;
        Some(())
    }

    /// Reads facts or trusted data, or null in their place.
    fn object(&mut self, trie: &Trie) -> Option<DataShape> {
        self.clear(trie);
        if self.peek()? == b'n' {
            self.at = scan::word(self.bytes, self.at, b"null")?;
            return Some(DataShape::Null);
        }
        let (mut name, mut values, mut others) = (false, false, false);
        let mut more = self.open()?;
        while more {
            let key = self.key()?;
            // One key that an envelope does not have is enough.
            if !others {
                match key {
                    "name" => name = true,
                    "values" => values = true,
                    "timestamp" | "expiration" => {}
                    _ => others = true,
                }
            }
            self.entry(trie, key)?;
            more = self.next(b'}')?;
        }
        Some(if name && values && !others { DataShape::Envelope } else { DataShape::Object })
    }

    fn entry(&mut self, trie: &Trie, key: &str) -> Option<()> {
        match trie.get(key) {
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
            put(&mut self.seen, Some(*path), || PathValue::Missing);
        }
    }

    /// Reads a value that rules look at, or into.
    fn read(&mut self, trie: &Trie) -> Option<()> {
        let start = self.at;
        match self.peek()? {
            b'"' => {
                let Quoted { end, is_plain } = scan::string(self.bytes, start)?;
                self.at = end + 1;
                let seen = if is_plain {
                    PathValue::Text(self.text.get(start + 1..end)?.into())
                } else {
                    // Only with its quotes it is a value.
                    let text: String = serde_json::from_str(self.text.get(start..=end)?).ok()?;
                    PathValue::Text(text.into())
                };
                put(&mut self.seen, trie.here, || seen);
            }
            b'{' => {
                put(&mut self.seen, trie.here, || PathValue::Object);
                let mut more = self.open()?;
                while more {
                    let key = self.key()?;
                    self.entry(trie, key)?;
                    more = self.next(b'}')?;
                }
            }
            b'[' => {
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
