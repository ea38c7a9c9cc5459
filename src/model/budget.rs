//! What one commit may cost, and what has been counted of it.
//!
//! A push can be small and what it says enormous: trees that repeat each other, one blob under
//! thousands of names. So everything that reads a commit or a working tree counts what it is about
//! to build, and stops before it builds too much.

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

/// One of the limits of a [`Budget`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BudgetItem {
    /// Files and directories.
    Entries,
    /// Directories within each other.
    Depth,
    /// Bytes of the path of one entry.
    PathLength,
    /// Bytes of the paths of all entries.
    PathBytes,
    /// Bytes of all documents; the same content under two names counts once.
    DistinctBytes,
    /// Bytes of all documents; the same content under two names counts twice.
    DocumentBytes,
    /// YAML values of all documents; keys count, too.
    YamlNodes,
    /// Node groups.
    Groups,
    /// Comparisons in rules, and references to facts in values; a pattern counts once more for every 64 steps it compiles
    /// to, a path for every 4 segments behind its root.
    RuleTerms,
    /// Findings that are kept; what is found beyond is only counted.
    Findings,
}

/// How many limits there are.
const ITEMS: usize = 10;

impl BudgetItem {
    /// Every limit.
    pub const ALL: [Self; ITEMS] = [
        Self::Entries,
        Self::Depth,
        Self::PathLength,
        Self::PathBytes,
        Self::DistinctBytes,
        Self::DocumentBytes,
        Self::YamlNodes,
        Self::Groups,
        Self::RuleTerms,
        Self::Findings,
    ];

    /// Returns the name, as settings have it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Entries => "entries",
            Self::Depth => "depth",
            Self::PathLength => "path-length",
            Self::PathBytes => "path-bytes",
            Self::DistinctBytes => "distinct-bytes",
            Self::DocumentBytes => "document-bytes",
            Self::YamlNodes => "yaml-nodes",
            Self::Groups => "groups",
            Self::RuleTerms => "rule-terms",
            Self::Findings => "findings",
        }
    }

    /// Returns what is counted, as the end of a sentence such as `more than 3 …`.
    fn words(self) -> &'static str {
        match self {
            Self::Entries => "files and directories",
            Self::Depth => "directories within each other",
            Self::PathLength => "bytes in the path of a file",
            Self::PathBytes => "bytes of paths",
            Self::DistinctBytes => "bytes of distinct documents",
            Self::DocumentBytes => "bytes of documents",
            Self::YamlNodes => "YAML values",
            Self::Groups => "groups",
            Self::RuleTerms => "rule terms",
            Self::Findings => "findings",
        }
    }

    /// Returns whether it bounds the largest of something, rather than a sum.
    fn is_peak(self) -> bool {
        matches!(self, Self::Depth | Self::PathLength)
    }
}

impl fmt::Display for BudgetItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A number for each limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts([u64; ITEMS]);

impl Counts {
    /// Returns the number of a limit.
    pub fn get(&self, item: BudgetItem) -> u64 {
        self.0.get(item as usize).copied().unwrap_or_default()
    }

    /// Returns the same with another number for a limit.
    #[must_use]
    pub fn with(mut self, item: BudgetItem, number: u64) -> Self {
        if let Some(slot) = self.0.get_mut(item as usize) {
            *slot = number;
        }
        self
    }

    /// Counts some more of something.
    pub fn add(&mut self, item: BudgetItem, more: u64) {
        if let Some(slot) = self.0.get_mut(item as usize) {
            *slot = slot.saturating_add(more);
        }
    }
}

impl Counts {
    /// Returns the difference to what was counted of a part.
    #[must_use]
    pub fn without(mut self, part: &Self) -> Self {
        for (slot, gone) in self.0.iter_mut().zip(part.0) {
            *slot = slot.saturating_sub(gone);
        }
        self
    }
}

impl Default for Counts {
    fn default() -> Self {
        Self([0; ITEMS])
    }
}

/// What one commit may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget(Counts);

impl Budget {
    /// The limits that hold unless settings say otherwise: an estate of 10,000 groups takes half of each at
    /// most. With 1,000 groups live and a commit at 97 % of one limit, the daemon held at most 226 MiB
    /// (180,000 regular expressions).
    pub const DEFAULT: Self = Self(Counts([
        250_000,   // entries
        128,       // depth
        4_096,     // path length
        32 << 20,  // bytes of paths
        24 << 20,  // bytes of distinct documents
        32 << 20,  // bytes of documents
        1_000_000, // YAML values
        20_000,    // groups
        200_000,   // rule terms
        5_000,     // findings
    ]));

    /// Returns a limit.
    pub fn limit(&self, item: BudgetItem) -> u64 {
        self.0.get(item)
    }

    /// Returns every limit.
    pub fn limits(&self) -> [BudgetOverride; ITEMS] {
        BudgetItem::ALL.map(|item| BudgetOverride { item, limit: self.limit(item) })
    }

    /// Returns the same with some limits replaced.
    #[must_use]
    pub fn with(self, overrides: &[BudgetOverride]) -> Self {
        overrides.iter().fold(self, |budget, it| Self(budget.0.with(it.item, it.limit)))
    }

    /// Returns the same with one limit replaced.
    #[must_use]
    pub fn with_limit(self, item: BudgetItem, limit: u64) -> Self {
        Self(self.0.with(item, limit))
    }

    /// Returns the budget of a commit that was not reviewed: what a commit that answers has, and a
    /// tenth of the budget more.
    #[must_use]
    pub fn for_unreviewed(self, live: Option<&Counts>) -> Self {
        let limit = |item: BudgetItem| {
            let (whole, known) = (self.limit(item), live.map_or(0, |it| it.get(item)));
            let limit = if item.is_peak() || item == BudgetItem::Findings {
                whole
            } else {
                whole.min(known.saturating_add(whole / 10))
            };
            (item, limit)
        };
        let limits = BudgetItem::ALL.map(limit);
        Self(limits.into_iter().fold(self.0, |all, (item, limit)| all.with(item, limit)))
    }
}

impl Default for Budget {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Another value for one limit, written `groups=50000`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct BudgetOverride {
    item: BudgetItem,
    limit: u64,
}

/// A text is not an override of a limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BudgetOverrideError {
    /// It is not of the form `NAME=NUMBER`.
    #[error("`{0}` is not of the form NAME=NUMBER, such as groups=50000")]
    Malformed(String),
    /// There is no such limit.
    #[error("unknown limit `{0}`: the limits are {names}", names = names())]
    Unknown(String),
}

fn names() -> String {
    BudgetItem::ALL.map(BudgetItem::as_str).join(", ")
}

impl FromStr for BudgetOverride {
    type Err = BudgetOverrideError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let malformed = || BudgetOverrideError::Malformed(text.to_owned());
        let (name, number) = text.split_once('=').ok_or_else(malformed)?;
        let limit = number.trim().parse().map_err(|_| malformed())?;
        let mut all = BudgetItem::ALL.into_iter();
        let item = all.find(|it| it.as_str() == name.trim());
        let item = item.ok_or_else(|| BudgetOverrideError::Unknown(name.trim().to_owned()))?;
        Ok(Self { item, limit })
    }
}

impl TryFrom<String> for BudgetOverride {
    type Error = BudgetOverrideError;

    fn try_from(text: String) -> Result<Self, BudgetOverrideError> {
        text.parse()
    }
}

impl From<BudgetOverride> for String {
    fn from(it: BudgetOverride) -> Self {
        it.to_string()
    }
}

impl fmt::Display for BudgetOverride {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.item, self.limit)
    }
}

/// A commit costs more than it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it has more than {limit} {}: {counted} were counted before reading stopped", .item.words())]
pub struct Exceeded {
    /// The limit.
    pub item: BudgetItem,
    /// How much it allows.
    pub limit: u64,
    /// What was counted so far.
    pub counted: u64,
}

/// Counts what one commit costs; several threads share it.
#[derive(Debug)]
pub struct Meter {
    budget: Budget,
    counted: [AtomicU64; ITEMS],
    dropped: [AtomicU64; 2],
    errors: AtomicU64,
}

/// How many findings were not kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Errors among them.
    pub errors: u64,
    /// Warnings among them.
    pub warnings: u64,
}

/// How bad a finding is, as far as counting goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// It makes the commit invalid.
    Error,
    /// It does not.
    Warning,
}

/// Whether something is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// It is.
    Kept,
    /// It is only counted.
    Dropped,
}

impl Meter {
    /// Starts counting.
    pub fn new(budget: Budget) -> Self {
        Self::from(budget, Counts::default())
    }

    /// Goes on counting from what has been counted before.
    pub fn from(budget: Budget, counted: Counts) -> Self {
        Self {
            budget,
            counted: counted.0.map(AtomicU64::new),
            dropped: [AtomicU64::new(0), AtomicU64::new(0)],
            errors: AtomicU64::new(0),
        }
    }

    /// Returns the budget.
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Counts some more of something.
    ///
    /// # Errors
    ///
    /// Returns an error if that is more than the budget allows.
    pub fn charge(&self, item: BudgetItem, more: u64) -> Result<(), Exceeded> {
        let Some(slot) = self.counted.get(item as usize) else { return Ok(()) };
        let counted = if item.is_peak() {
            slot.fetch_max(more, Ordering::Relaxed).max(more)
        } else {
            slot.fetch_add(more, Ordering::Relaxed).saturating_add(more)
        };
        let limit = self.budget.limit(item);
        if counted > limit { Err(Exceeded { item, limit, counted }) } else { Ok(()) }
    }

    /// Counts everything that a part costs.
    ///
    /// # Errors
    ///
    /// Returns an error if that is more than the budget allows.
    pub fn charge_all(&self, part: &Counts) -> Result<(), Exceeded> {
        BudgetItem::ALL.into_iter().try_for_each(|item| self.charge(item, part.get(item)))
    }

    /// Counts a finding. At least one error is kept if there are any, so that what was found decides
    /// whether the commit is valid.
    pub fn finding(&self, weight: Weight) -> Room {
        let fits = self.charge(BudgetItem::Findings, 1).is_ok();
        let is_first = weight == Weight::Error && self.errors.fetch_add(1, Ordering::Relaxed) == 0;
        if fits || is_first {
            return Room::Kept;
        }
        let [errors, warnings] = &self.dropped;
        let slot = if weight == Weight::Error { errors } else { warnings };
        slot.fetch_add(1, Ordering::Relaxed);
        Room::Dropped
    }

    /// Returns how many findings were not kept.
    pub fn dropped(&self) -> Dropped {
        let [errors, warnings] = &self.dropped;
        let load = |it: &AtomicU64| it.load(Ordering::Relaxed);
        Dropped { errors: load(errors), warnings: load(warnings) }
    }

    /// Returns what was counted.
    pub fn counts(&self) -> Counts {
        Counts(self.counted.each_ref().map(|it| it.load(Ordering::Relaxed)))
    }
}

impl Dropped {
    /// Returns whether all were kept.
    pub fn is_none(self) -> bool {
        self == Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_add_up_and_peaks_do_not() {
        let overrides = ["entries=3".parse().unwrap(), "depth=3".parse().unwrap()];
        let meter = Meter::new(Budget::DEFAULT.with(&overrides));
        for _ in 0..3 {
            meter.charge(BudgetItem::Entries, 1).unwrap();
            meter.charge(BudgetItem::Depth, 3).unwrap();
        }
        let exceeded = meter.charge(BudgetItem::Entries, 7).unwrap_err();
        assert_eq!(exceeded, Exceeded { item: BudgetItem::Entries, limit: 3, counted: 10 });
        assert_eq!(
            exceeded.to_string(),
            "it has more than 3 files and directories: 10 were counted before reading stopped"
        );
        assert_eq!(meter.charge(BudgetItem::Depth, 4).unwrap_err().counted, 4);
    }

    #[test]
    fn an_error_is_kept_whatever_was_found_before() {
        let meter = Meter::new(Budget::DEFAULT.with(&["findings=2".parse().unwrap()]));
        let warning = || meter.finding(Weight::Warning);
        let error = || meter.finding(Weight::Error);
        assert_eq!([warning(), warning(), warning()], [Room::Kept, Room::Kept, Room::Dropped]);
        assert_eq!([error(), error()], [Room::Kept, Room::Dropped]);
        assert_eq!(meter.dropped(), Dropped { errors: 1, warnings: 1 });
    }

    #[test]
    fn overrides_name_a_limit_and_a_number() {
        let parse = |text: &str| text.parse::<BudgetOverride>().map_err(|it| it.to_string());
        assert_eq!(parse("groups=5").unwrap().to_string(), "groups=5");
        for (text, error) in [
            ("groups", "`groups` is not of the form NAME=NUMBER, such as groups=50000"),
            ("groups=-1", "`groups=-1` is not of the form NAME=NUMBER, such as groups=50000"),
            (
                "group=1",
                "unknown limit `group`: the limits are entries, depth, path-length, path-bytes, distinct-bytes, document-bytes, yaml-nodes, groups, rule-terms, findings",
            ),
        ] {
            assert_eq!(parse(text).unwrap_err(), error);
        }
    }

    #[test]
    fn a_commit_that_was_not_reviewed_gets_a_tenth_beyond_what_answers() {
        let tenth = Budget::DEFAULT.for_unreviewed(None);
        assert_eq!(tenth.limit(BudgetItem::Groups), 2_000);
        assert_eq!(tenth.limit(BudgetItem::Depth), 128);
        let live = Counts::default().with(BudgetItem::Groups, 10_000);
        assert_eq!(Budget::DEFAULT.for_unreviewed(Some(&live)).limit(BudgetItem::Groups), 12_000);
        let live = live.with(BudgetItem::Groups, 19_000);
        assert_eq!(Budget::DEFAULT.for_unreviewed(Some(&live)).limit(BudgetItem::Groups), 20_000);
    }
}
