//! Reading of a request what rules and values mention.
//!
//! The body is checked as a whole, and nothing is made of what is not mentioned. What is rare or
//! wrong is declined: then the body is read in full, which alone decides what is an error. What is
//! not declined means the same in both.

use serde_json::Value;

use super::index::Index;
use super::paths::{PathValue, ResolvedPaths, Trie, put};
use super::received::ReceivedFacts;
use crate::json::Cursor;
use crate::model::{MASKED, Node, STORED_PATHS};

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
    pub(super) received: ReceivedFacts<'b>,
}

impl Request<'_> {
    /// Returns a node that has the facts and trusted data that values mention, and no others; `None` if one cannot
    /// be parsed.
    pub fn facts_in_values(&self, name: &str) -> Option<Node> {
        self.received.node(name)
    }
}

impl Index {
    /// Reads a body; `None` if it must be read in full.
    pub fn read<'b>(&self, name: &'b str, body: &'b [u8]) -> Option<Request<'b>> {
        self.read_with_values_of(usize::MAX, name, body)
    }

    /// Reads a body as [`Self::read`] does; `None` also if values are made, now or later, of more than so many bytes of
    /// it.
    pub fn read_with_values_of<'b>(
        &self,
        most: usize,
        name: &'b str,
        body: &'b [u8],
    ) -> Option<Request<'b>> {
        let paths = self.paths();
        let mut seen = vec![PathValue::Missing; paths.len()];
        put(&mut seen, paths.name, || PathValue::Text(name.into()));
        let text = simdutf8::basic::from_utf8(body).ok()?;
        let received = ReceivedFacts::none_of(paths.values());
        let mut scanner =
            BodyScanner { cursor: Cursor::new(text), seen, received, for_values: most };
        let mut found = FoundParts::default();
        let mut more = scanner.cursor.open_object()?;
        while more {
            let key = scanner.cursor.key()?;
            let start = scanner.cursor.position();
            match key {
                "fact" | "facts" => {
                    let key = if key == "fact" { "fact" } else { "facts" };
                    let shape = scanner.object(&paths.fact)?;
                    if found.facts.is_some_and(|it| it.key != key) || shape == DataShape::Envelope {
                        return None;
                    }
                    let text = shape.text(&scanner.cursor, start)?;
                    found.facts = Some(FoundFacts { key, text, is_null: shape == DataShape::Null });
                }
                "trusted" => {
                    let shape = scanner.object(&paths.trusted)?;
                    found.trusted = Some(shape.text(&scanner.cursor, start)?);
                }
                "transaction_uuid" => {
                    scanner.cursor.skip()?;
                    let value = scanner.value_since(start)?;
                    found.transaction = value.as_str().map(str::to_owned);
                }
                _ => scanner.cursor.skip()?,
            }
            more = scanner.cursor.next_entry()?;
        }
        scanner.cursor.is_at_end().then(|| Request {
            // What may be withheld is declined.
            resolved: ResolvedPaths { values: scanner.seen, is_withheld: false },
            shape: found.shape(),
            transaction: found.transaction,
            fact: found.facts.map_or("{}", |it| it.text),
            trusted: found.trusted.unwrap_or("{}"),
            received: scanner.received,
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
    fn text<'b>(self, cursor: &Cursor<'b>, start: usize) -> Option<&'b str> {
        if self == Self::Null { Some("{}") } else { cursor.since(start) }
    }
}

/// Goes through a body.
struct BodyScanner<'b> {
    cursor: Cursor<'b>,
    seen: Vec<PathValue<'b>>,
    received: ReceivedFacts<'b>,
    /// Of how many more bytes values may be made.
    for_values: usize,
}

impl BodyScanner<'_> {
    /// Returns the value that ends here, as the JSON library reads it.
    fn value_since(&mut self, start: usize) -> Option<Value> {
        self.allow_values(start)?;
        self.cursor.value_since(start)
    }

    /// Counts the text that ends here among those that values are made of.
    fn allow_values(&mut self, start: usize) -> Option<()> {
        self.for_values = self.for_values.checked_sub(self.cursor.position() - start)?;
        Some(())
    }

    /// Reads facts or trusted data, or null in their place.
    fn object(&mut self, trie: &Trie) -> Option<DataShape> {
        self.clear(trie);
        if self.cursor.peek()? == b'n' {
            self.cursor.null()?;
            return Some(DataShape::Null);
        }
        let (mut name, mut values, mut others) = (false, false, false);
        let mut more = self.cursor.open_object()?;
        while more {
            let key = self.cursor.key()?;
            // One key that an envelope does not have is enough.
            if !others {
                match key {
                    "name" => name = true,
                    "values" => values = true,
                    "timestamp" | "expiration" => {}
                    _ => others = true,
                }
            }
            if key == STORED_PATHS {
                return None;
            }
            self.entry(trie, key)?;
            more = self.cursor.next_entry()?;
        }
        Some(if name && values && !others { DataShape::Envelope } else { DataShape::Object })
    }

    /// Reads the value of a key. Of most nothing is mentioned: these take no call more than to skip them.
    #[inline]
    fn entry(&mut self, trie: &Trie, key: &str) -> Option<()> {
        match trie.get(key) {
            Some(trie) => self.mentioned(trie),
            None => self.cursor.skip(),
        }
    }

    #[inline(never)]
    fn mentioned(&mut self, trie: &Trie) -> Option<()> {
        // The last of several entries of one key stays.
        self.clear(trie);
        self.read(trie)
    }

    /// Forgets what was seen below a place.
    fn clear(&mut self, trie: &Trie) {
        for path in &trie.below {
            put(&mut self.seen, Some(*path), || PathValue::Missing);
        }
        for path in &trie.values_below {
            self.received.put(*path, None);
        }
    }

    /// Reads a value that is mentioned, or something in it.
    fn read(&mut self, trie: &Trie) -> Option<()> {
        let Some(path) = trie.value else { return self.read_for_rules(trie) };
        let start = self.cursor.position();
        if trie.is_only_value() {
            self.cursor.skip()?;
        } else {
            self.read_for_rules(trie)?;
        }
        self.allow_values(start)?;
        self.received.put(path, Some(self.cursor.since(start)?));
        Some(())
    }

    /// Reads a value that rules look at, or into.
    fn read_for_rules(&mut self, trie: &Trie) -> Option<()> {
        let start = self.cursor.position();
        match self.cursor.peek()? {
            b'"' => {
                let text = self.cursor.string()?;
                if text == MASKED {
                    return None;
                }
                put(&mut self.seen, trie.here, || PathValue::Text(text));
            }
            b'{' => {
                put(&mut self.seen, trie.here, || PathValue::Object);
                let mut more = self.cursor.open_object()?;
                while more {
                    let key = self.cursor.key()?;
                    self.entry(trie, key)?;
                    more = self.cursor.next_entry()?;
                }
            }
            b'[' => {
                let mut more = self.cursor.open_list()?;
                let mut index = 0;
                while more {
                    match trie.elements.iter().find(|(it, _)| *it == index) {
                        Some((_, trie)) => self.read(trie)?,
                        None => self.cursor.skip()?,
                    }
                    index += 1;
                    more = self.cursor.next_element()?;
                }
                self.whole(trie, start)?;
            }
            _ => {
                self.cursor.skip()?;
                self.scalar(trie, start)?;
            }
        }
        Some(())
    }

    /// Notes the number or boolean that ends here as it stands, and null as nothing.
    fn scalar(&mut self, trie: &Trie, start: usize) -> Option<()> {
        let value = match self.cursor.since(start)? {
            "null" => PathValue::Missing,
            word @ ("true" | "false") => PathValue::Scalar(word.into()),
            // The JSON library writes exponents in its own way.
            number if number.contains(['e', 'E']) => return self.whole(trie, start),
            number => PathValue::Scalar(number.into()),
        };
        put(&mut self.seen, trie.here, || value);
        Some(())
    }

    /// Notes the value that ends here, as the JSON library reads it.
    fn whole(&mut self, trie: &Trie, start: usize) -> Option<()> {
        if trie.here.is_some() {
            let value = self.value_since(start)?;
            put(&mut self.seen, trie.here, || value.into());
        }
        Some(())
    }
}
