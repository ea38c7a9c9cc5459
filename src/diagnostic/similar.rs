//! What a misspelt name may have been meant to be.

/// The longest name that others are like, in characters: the distance of two costs the product of both.
const LONGEST: usize = 200;

/// The most pairs of characters that are compared for one name, behind a few candidates: thousands of names may be wrong,
/// and as many be known.
const PAIRS: usize = 20_000;

/// How many candidates are compared however long they are.
const FEW: usize = 8;

/// Returns the candidate that is most like the wanted name, if one is like it at all.
///
/// Case and the difference between `-` and `_` count little; of equals the first wins. Where very many are much like it,
/// those are compared that have the most letters in common.
pub fn closest<'c>(wanted: &str, candidates: impl Iterator<Item = &'c str>) -> Option<&'c str> {
    let wanted = WantedName::of(wanted)?;
    wanted.closest(candidates.enumerate().filter_map(|(at, name)| {
        let least = wanted.least_distance(&Letters::of(name))?;
        Some((least, at, name))
    }))
}

/// Returns what [`closest`] returns of candidates, if no more than so many letters are wrong: names that may be others on
/// purpose are compared strictly.
pub fn closest_within<'c>(
    wanted: &str,
    most: usize,
    candidates: impl Iterator<Item = &'c str>,
) -> Option<&'c str> {
    let found = closest(wanted, candidates)?;
    (distance_of(&fold(wanted), &fold(found)) <= most).then_some(found)
}

/// Names that others may have been meant to be, prepared so that many can be compared with them.
#[derive(Default)]
pub struct KnownNames<'c>(Vec<(&'c str, Letters)>);

impl<'c> KnownNames<'c> {
    /// Prepares names.
    pub fn new(names: impl Iterator<Item = &'c str>) -> Self {
        Self(names.map(|it| (it, Letters::of(it))).collect())
    }

    /// Returns what [`closest`] returns of them.
    pub fn closest(&self, wanted: &str) -> Option<&'c str> {
        let wanted = WantedName::of(wanted)?;
        wanted.closest(self.0.iter().enumerate().filter_map(|(at, (name, letters))| {
            let least = wanted.least_distance(letters)?;
            Some((least, at, *name))
        }))
    }
}

/// A name for which a similar one is looked for.
struct WantedName<'w> {
    name: &'w str,
    letters: Letters,
    /// The distance that a similar name may have.
    allowed: usize,
}

impl<'w> WantedName<'w> {
    fn of(name: &'w str) -> Option<Self> {
        let letters = Letters::of(name);
        let allowed = match letters.length {
            0..=3 => 1,
            4..=5 => 2,
            length => length / 3,
        };
        (letters.length <= LONGEST).then_some(Self { name, letters, allowed })
    }

    /// Returns a distance that a name has at least; `None` if that is more than it may be.
    fn least_distance(&self, other: &Letters) -> Option<usize> {
        let at_least = self.letters.least_distance_of_sets(other);
        if at_least > self.allowed {
            return None;
        }
        Some(self.letters.least_distance(other)).filter(|it| *it <= self.allowed)
    }

    /// Returns the closest of candidates, each with the distance that it has at least and its place.
    fn closest<'c>(&self, near: impl Iterator<Item = (usize, usize, &'c str)>) -> Option<&'c str> {
        let mut near: Vec<(usize, usize, &str)> = near.collect();
        // They are in the order of their places.
        near.sort_by_key(|(least, ..)| *least);
        let folded = fold(self.name);
        let (mut best, mut left): (Option<Near<'_>>, _) = (None, PAIRS);
        for (number, (least, at, candidate)) in near.into_iter().enumerate() {
            // Of those that could be as near at best, the ones that come first were compared before.
            if best.as_ref().is_some_and(|it| least > it.distance || it.distance == it.least) {
                break;
            }
            if number >= FEW {
                let Some(rest) = left.checked_sub(self.letters.length * candidate.len()) else {
                    break;
                };
                left = rest;
            }
            let distance = distance_of(&folded, &fold(candidate));
            if distance <= self.allowed
                && distance < self.letters.length.max(1)
                && best.as_ref().is_none_or(|it| (distance, at) < (it.distance, it.at))
            {
                best = Some(Near { distance, at, least, candidate });
            }
        }
        best.map(|it| it.candidate)
    }
}

/// The nearest of some candidates.
struct Near<'c> {
    distance: usize,
    /// The place among the candidates.
    at: usize,
    /// The distance that its letters say.
    least: usize,
    candidate: &'c str,
}

/// Returns how many letters are to be changed, added, removed or swapped; what two names have in common at their
/// beginnings and ends takes none.
fn distance_of(a: &str, b: &str) -> usize {
    fn bytes(common: impl Iterator<Item = (char, char)>) -> usize {
        common.take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8()).sum()
    }
    let begin = bytes(a.chars().zip(b.chars()));
    let [a, b] = [a, b].map(|it| it.get(begin..).unwrap_or_default());
    let end = bytes(a.chars().rev().zip(b.chars().rev()));
    let [a, b] = [a, b].map(|it| it.get(..it.len() - end).unwrap_or_default());
    strsim::damerau_levenshtein(a, b)
}

fn fold(text: &str) -> String {
    text.to_lowercase().replace('-', "_")
}

/// How often each letter is in a name, of which some count as one.
struct Letters {
    length: usize,
    counts: [u8; 64],
    /// The letters whose count is not 0, a bit each.
    set: u64,
}

impl Letters {
    fn of(text: &str) -> Self {
        let mut letters = Self { length: 0, counts: [0; 64], set: 0 };
        if text.is_ascii() {
            for byte in text.bytes() {
                letters.add(u32::from(if byte == b'-' { b'_' } else { byte.to_ascii_lowercase() }));
            }
        } else {
            fold(text).chars().for_each(|it| letters.add(u32::from(it)));
        }
        letters
    }

    fn add(&mut self, letter: u32) {
        self.length += 1;
        self.set |= 1 << (letter % 64);
        if let Some(count) = self.counts.get_mut(letter as usize % 64) {
            *count = count.saturating_add(1);
        }
    }

    /// Returns a distance that two names have at least, as [`Self::least_distance`] does, by which letters they
    /// have at all.
    fn least_distance_of_sets(&self, other: &Self) -> usize {
        let more = (self.set & !other.set).count_ones();
        let fewer = (other.set & !self.set).count_ones();
        (more.max(fewer) as usize).max(self.length.abs_diff(other.length))
    }

    /// Returns a distance that two names have at least: each change of a letter takes one away and adds one.
    fn least_distance(&self, other: &Self) -> usize {
        let pairs = || self.counts.iter().zip(&other.counts);
        // 64 times 255 fit.
        let more: u16 = pairs().map(|(a, b)| u16::from(a.saturating_sub(*b))).sum();
        let fewer: u16 = pairs().map(|(a, b)| u16::from(b.saturating_sub(*a))).sum();
        usize::from(more.max(fewer)).max(self.length.abs_diff(other.length))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn finds_what_was_meant_and_nothing_else() {
        let names = ["Production", "Webservers", "All Nodes", "environment_trumps", "db"];
        for (wanted, expected) in [
            ("Productoin", Some("Production")),
            ("webserver", Some("Webservers")),
            ("ALL NODES", Some("All Nodes")),
            ("environment-trump", Some("environment_trumps")),
            ("bd", Some("db")),
            ("zzz", None),
            ("", None),
            ("x", None),
        ] {
            assert_eq!(closest(wanted, names.into_iter()), expected, "{wanted}");
            assert_eq!(KnownNames::new(names.into_iter()).closest(wanted), expected, "{wanted}");
        }
    }

    #[test]
    fn a_strict_comparison_allows_few_wrong_letters() {
        for (wanted, most, expected) in
            [("form", 1, None), ("form", 2, Some("format")), ("formt", 1, Some("format"))]
        {
            let found = closest_within(wanted, most, ["format"].into_iter());
            assert_eq!(found, expected, "{wanted}");
        }
    }

    /// Each of them was compared with each, which took 20 s for 4,000.
    #[test]
    fn many_names_are_compared_with_many() {
        let known: Vec<String> = (0..20_000).map(|it| format!("profile::app{it:05}")).collect();
        for number in 0..50 {
            let found =
                closest(&format!("profile::apq{number:05}"), known.iter().map(String::as_str));
            assert_eq!(found, Some(known[number].as_str()));
        }
    }

    proptest! {
        #[test]
        fn no_name_is_nearer_than_its_letters_say(a in "[a-cA-CÄ_-]{0,12}", b in "[a-cA-CÄ_-]{0,12}") {
            let distance = strsim::damerau_levenshtein(&fold(&a), &fold(&b));
            prop_assert_eq!(distance_of(&fold(&a), &fold(&b)), distance);
            let (a, b) = (Letters::of(&a), Letters::of(&b));
            prop_assert!(a.least_distance(&b) <= distance);
            prop_assert!(a.least_distance_of_sets(&b) <= a.least_distance(&b));
        }
    }
}
