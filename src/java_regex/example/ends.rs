//! How all texts of a kind begin and end: most patterns of names that exclude each other differ in
//! that, which is seen without a walk.

/// What people would write first comes first.
pub(super) const ALPHABET: &[u8] = b"abcdefghijklmnopqrstuvwxyz0123456789-._ABCDEFGHIJKLMNOPQRSTUVWXYZ/:@+, !\"#$%&'()*;<=>?[\\]^`{|}~";

/// How many letters of either end are known.
pub(super) const LONGEST: usize = 64;

/// How all texts begin and end in which a pattern is found, or that are in a list. They are texts
/// over the alphabet of examples.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ends {
    pub(super) beginning: Vec<u8>,
    pub(super) ending: Vec<u8>,
}

impl Ends {
    /// Returns whether some text may begin and end as both demand. If not, no text does.
    pub fn fit(&self, other: &Self) -> bool {
        let begin = self.beginning.iter().zip(&other.beginning).all(|(a, b)| a == b);
        begin && self.ending.iter().rev().zip(other.ending.iter().rev()).all(|(a, b)| a == b)
    }

    /// Returns what is shared by all of some texts; nothing of ones beyond the alphabet, for
    /// which the ends of patterns do not hold.
    pub fn of_texts<'t>(texts: impl IntoIterator<Item = &'t str>) -> Self {
        let mut shared: Option<Self> = None;
        for text in texts {
            let text = text.as_bytes();
            if !text.iter().all(|it| ALPHABET.contains(it)) {
                return Self::default();
            }
            let Some(Self { beginning, ending }) = &mut shared else {
                shared = Some(Self { beginning: text.to_vec(), ending: text.to_vec() });
                continue;
            };
            let same = beginning.iter().zip(text).take_while(|(a, b)| a == b).count();
            beginning.truncate(same);
            let same = ending.iter().rev().zip(text.iter().rev()).take_while(|(a, b)| a == b);
            let same = same.count();
            ending.drain(..ending.len() - same);
        }
        shared.unwrap_or_default()
    }

    /// Demands what another demands too, as far as one text shows both: the longer of each end.
    pub fn join(&mut self, other: &Self) {
        if other.beginning.len() > self.beginning.len() {
            self.beginning.clone_from(&other.beginning);
        }
        if other.ending.len() > self.ending.len() {
            self.ending.clone_from(&other.ending);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::java_regex::{Examples, Pattern};
    use crate::table::each_row;

    fn shown(ends: &Ends) -> (&str, &str) {
        let text = |it| std::str::from_utf8(it).unwrap();
        (text(&ends.beginning), text(&ends.ending))
    }

    #[test]
    fn the_ends_of_patterns_are_what_all_texts_begin_and_end_with() {
        let mut examples = Examples::default();
        let rows = [
            ("^web", "web", ""),
            ("^web$", "web", "web"),
            ("web", "", ""),
            (r"^web\d+\.example\.com$", "web", ".example.com"),
            (r"(eu|us)\.s01$", "", ".s01"),
            (r"(eu|du)\.s01$", "", "u.s01"),
            ("^(web|west)x", "we", ""),
            ("^a*b$", "", "b"),
            ("^ab*$", "a", ""),
            ("^a|b", "", ""),
            ("^(a|aa)$", "a", "a"),
            ("^$", "", ""),
            (".*", "", ""),
            ("(?i)^web$", "", ""),
            ("^a^b", "", ""),
        ];
        each_row(rows, |(pattern, beginning, ending)| {
            let pattern = Pattern::parse(pattern).unwrap();
            let ends = examples.ends(&pattern).unwrap();
            assert_eq!(shown(&ends), (beginning, ending), "{pattern:?}");
        });
        assert_eq!(examples.ends(&Pattern::parse("a(?=b)").unwrap()), None);
    }

    #[test]
    fn the_ends_of_texts_are_what_they_share() {
        let rows = [
            (&["web01"][..], "web01", "web01"),
            (&["web01.com", "web02.com"], "web0", ".com"),
            (&["aa", "aaa"], "aa", "aa"),
            (&["a", "b"], "", ""),
            (&["é1", "é2"], "", ""),
            (&["", "a"], "", ""),
            (&[], "", ""),
        ];
        each_row(rows, |(texts, beginning, ending)| {
            assert_eq!(shown(&Ends::of_texts(texts.iter().copied())), (beginning, ending));
        });
    }
}
