//! Finding the literals of patterns in a text.
//!
//! An automaton for thousands of literals goes from state to state, and each is another cache line that must be
//! there before the next is known. A literal is found by four of its bytes instead: those that the fewest literals
//! have. All places of a text can be looked up at the same time, and most are not even in a filter that stays
//! in the caches.

use std::hash::BuildHasher as _;

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use bytemuck::cast_slice;
use hashbrown::{DefaultHashBuilder, HashMap};

/// How many bytes are looked up.
const GRAM: usize = 4;

/// How many literals may be found by the same bytes, and how long they may be together; all others of these are
/// left to an automaton.
const SHARED: usize = 32;
const SHARED_BYTES: usize = 1 << 10;

/// Up to so many bytes of literals a table is made that tells the next state at once; it has some
/// hundred bytes for each.
const TABLE: usize = 32 << 10;

/// How many bits the filter has for each gram, at the least.
const BITS: usize = 16;

/// Four bytes, as one number.
type Gram = u32;

/// Finds literals, by number.
#[derive(Debug)]
pub(super) struct LiteralFinder {
    /// What hashes are multiplied with: odd, and not known to those who write rules.
    factor: u64,
    /// A bit for each hash of a gram that is there.
    filter: Box<[u64]>,
    /// By the hash of a gram, or behind; at least half of them are free.
    slots: Box<[GramSlot]>,
    /// The literals of a gram: how many, and each as [`LiteralHead`] with its bytes.
    records: Box<[u32]>,
    /// Those that have no gram, or share it with too many, and their numbers.
    others: Option<(AhoCorasick, Box<[u32]>)>,
}

#[derive(Clone, Copy, Debug)]
struct GramSlot {
    gram: Gram,
    /// Where its literals start; [`FREE`] if there are none.
    start: u32,
}

const FREE: u32 = u32::MAX;

/// What stands before the bytes of a literal: its number, its length, and where in it the gram is.
type LiteralHead = [u32; 3];

impl LiteralFinder {
    /// Takes literals; `None` if there are too many.
    pub(super) fn new(literals: &[&str]) -> Option<Self> {
        let mut counts: HashMap<Gram, u32> = HashMap::new();
        for gram in literals.iter().flat_map(|it| grams(it.as_bytes())) {
            *counts.entry(gram).or_default() += 1;
        }
        let mut by_gram: HashMap<Gram, Vec<(u32, usize)>> = HashMap::new();
        let mut others: Vec<(u32, &str)> = Vec::new();
        for (number, literal) in (0..).zip(literals) {
            let rarest = grams(literal.as_bytes())
                .enumerate()
                .min_by_key(|(_, gram)| counts.get(gram).copied().unwrap_or(0));
            let bytes = |it: &(u32, usize)| literals.get(it.0 as usize).map_or(0, |it| it.len());
            let has_room = |sharing: &[(u32, usize)]| {
                let together: usize = sharing.iter().map(bytes).sum();
                sharing.len() < SHARED && together + literal.len() <= SHARED_BYTES
            };
            let room = rarest
                .map(|(at, gram)| (at, by_gram.entry(gram).or_default()))
                .filter(|(_, sharing)| has_room(sharing));
            match room {
                Some((at, sharing)) => sharing.push((number, at)),
                None => others.push((number, literal)),
            }
        }
        let mut finder = Self {
            factor: DefaultHashBuilder::default().hash_one(literals.len()) | 1,
            filter: vec![0; (by_gram.len() * BITS).div_ceil(64).next_power_of_two()].into(),
            slots: vec![
                GramSlot { gram: 0, start: FREE };
                (by_gram.len() * 2 + 1).next_power_of_two()
            ]
            .into(),
            records: Box::default(),
            others: automaton(&others)?,
        };
        finder.fill(literals, by_gram)?;
        Some(finder)
    }

    fn fill(&mut self, literals: &[&str], by_gram: HashMap<Gram, Vec<(u32, usize)>>) -> Option<()> {
        let number = |it: usize| u32::try_from(it).ok();
        let mut by_gram: Vec<_> = by_gram.into_iter().collect();
        by_gram.sort_unstable();
        let mut records = Vec::new();
        for (gram, sharing) in by_gram {
            let start = number(records.len())?;
            records.push(number(sharing.len())?);
            for (literal, at) in sharing {
                let text = literals.get(literal as usize)?.as_bytes();
                records.extend([literal, number(text.len())?, number(at)?]);
                records.extend(text.chunks(4).map(|it| {
                    let mut word = [0; 4];
                    word.iter_mut().zip(it).for_each(|(to, from)| *to = *from);
                    u32::from_ne_bytes(word)
                }));
            }
            let bit = self.bucket(gram, self.filter.len() * 64);
            *self.filter.get_mut(bit / 64)? |= 1 << (bit % 64);
            let mut at = self.bucket(gram, self.slots.len());
            while self.slots.get(at)?.start != FREE {
                at = (at + 1) % self.slots.len();
            }
            *self.slots.get_mut(at)? = GramSlot { gram, start };
        }
        self.records = records.into();
        Some(())
    }

    /// Returns the place of a gram among so many, which are a power of two.
    #[inline]
    fn bucket(&self, gram: Gram, count: usize) -> usize {
        let hash = u64::from(gram).wrapping_mul(self.factor);
        (hash >> 32) as usize & (count - 1)
    }

    /// Calls a function with the number of each literal that is in a text, once for each time.
    pub(super) fn each(&self, text: &str, mut found: impl FnMut(u32)) {
        let (bytes, filter) = (text.as_bytes(), &*self.filter);
        for (place, gram) in grams(bytes).enumerate() {
            let bit = self.bucket(gram, filter.len() * 64);
            if filter.get(bit / 64).is_some_and(|it| it >> (bit % 64) & 1 == 1) {
                self.find_at(bytes, place, gram, &mut found);
            }
        }
        if let Some((automaton, numbers)) = &self.others {
            for it in automaton.find_overlapping_iter(text) {
                numbers.get(it.pattern().as_usize()).into_iter().copied().for_each(&mut found);
            }
        }
    }

    /// Finds the literals that have a gram at a place.
    fn find_at(
        &self,
        text: &[u8],
        place: usize,
        gram: Gram,
        found: &mut impl FnMut(u32),
    ) -> Option<()> {
        let mut at = self.bucket(gram, self.slots.len());
        let start = loop {
            let slot = self.slots.get(at)?;
            match slot.start {
                FREE => return None,
                start if slot.gram == gram => break start,
                _ => at = (at + 1) % self.slots.len(),
            }
        };
        let (count, mut rest) = self.records.get(start as usize..)?.split_first()?;
        for _ in 0..*count {
            let (&[number, length, before], behind): (&LiteralHead, _) =
                rest.split_first_chunk()?;
            let (words, behind) = behind.split_at_checked((length as usize).div_ceil(4))?;
            let literal = cast_slice::<u32, u8>(words).get(..length as usize)?;
            let here = place.checked_sub(before as usize).and_then(|it| text.get(it..));
            if here.is_some_and(|it| it.starts_with(literal)) {
                found(number);
            }
            rest = behind;
        }
        Some(())
    }
}

/// Returns an automaton for literals, if there are some; `None` if there are too many.
#[expect(clippy::option_option, reason = "there may be none to find, or too many to find them")]
fn automaton(literals: &[(u32, &str)]) -> Option<Option<(AhoCorasick, Box<[u32]>)>> {
    if literals.is_empty() {
        return Some(None);
    }
    let length: usize = literals.iter().map(|(_, it)| it.len()).sum();
    let kind = (length <= TABLE).then_some(AhoCorasickKind::DFA);
    let automaton =
        AhoCorasick::builder().kind(kind).build(literals.iter().map(|(_, it)| it)).ok()?;
    Some(Some((automaton, literals.iter().map(|(number, _)| *number).collect())))
}

/// Returns the grams of a text, in order.
fn grams(text: &[u8]) -> impl Iterator<Item = Gram> {
    text.array_windows::<GRAM>().map(|it| Gram::from_le_bytes(*it))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn literals_are_found_where_they_are() {
        let mut rng = fastrand::Rng::with_seed(11);
        let word = |rng: &mut fastrand::Rng, length: usize| -> String {
            (0..length).map(|_| ['a', 'b', '-', 'é', '1'][rng.usize(..5)]).collect()
        };
        let mut seen = 0;
        for round in 0..300 {
            let literals: BTreeSet<String> = (0..rng.usize(..400))
                .map(|_| {
                    let length = rng.usize(1..9);
                    word(&mut rng, length)
                })
                .collect();
            let literals: Vec<&str> = literals.iter().map(String::as_str).collect();
            let finder = LiteralFinder::new(&literals).unwrap();
            assert!(round > 0 || finder.others.is_some(), "some are short");
            for _ in 0..20 {
                let length = rng.usize(..30);
                let text = word(&mut rng, length);
                let mut found = BTreeSet::new();
                finder.each(&text, |it| {
                    found.insert(literals[it as usize]);
                });
                let expected: BTreeSet<&str> =
                    literals.iter().copied().filter(|it| text.contains(it)).collect();
                assert_eq!(found, expected, "{text}");
                seen += found.len();
            }
        }
        assert!(seen > 10_000, "{seen}");
    }

    #[test]
    fn literals_that_share_all_their_grams_are_left_to_an_automaton() {
        let literals: Vec<String> = (0..1_u32 << 12)
            .map(|it| format!("{it:012b}").replace('0', "a").replace('1', "b"))
            .collect();
        let literals: Vec<&str> = literals.iter().map(String::as_str).collect();
        let finder = LiteralFinder::new(&literals).unwrap();
        let left = finder.others.as_ref().unwrap().1.len();
        assert_eq!(left, literals.len() - 16 * SHARED);
        let mut found = Vec::new();
        finder.each("abbababababbba", |it| found.push(literals[it as usize]));
        found.sort_unstable();
        assert_eq!(found, ["abbababababb", "bababababbba", "bbababababbb"]);
    }

    #[test]
    fn long_literals_that_share_their_grams_are_left_to_an_automaton() {
        let literals: Vec<String> = (200..232).map(|it| "a".repeat(it)).collect();
        let literals: Vec<&str> = literals.iter().map(String::as_str).collect();
        let finder = LiteralFinder::new(&literals).unwrap();
        assert_eq!(finder.others.as_ref().unwrap().1.len(), 32 - 5);
        let mut found = 0;
        finder.each(&"a".repeat(231), |_| found += 1);
        assert_eq!(found, (200..232).map(|it| 231 - it + 1).sum::<usize>());
    }

    #[test]
    fn nothing_is_found_where_nothing_is() {
        let finder = LiteralFinder::new(&[]).unwrap();
        finder.each("a text", |_| panic!("nothing is there"));
        assert!(finder.others.is_none());
    }
}
