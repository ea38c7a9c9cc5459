//! A pattern, and how it is searched for.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError, Weak};

use super::ast::Ast;
use super::effort::count_linear;
use super::error::{Overrun, PatternError};
use super::ledger::{AUTOMATONS, CACHE_BYTES, Charge, PATTERN_BYTES};
use super::one_pass::OnePass;
use super::program::{self, Program};
use super::required::{self, Required, SubjectKind};
use super::translate::{self, Subjects};
use super::{backtrack, parse, postgres};

/// A pattern of Java 17's `java.util.regex`, searched unanchored.
///
/// Two patterns are equal if they are written the same. A pattern is compiled when it is first
/// looked for; equal patterns share that.
///
/// ```
/// use clade::Pattern;
///
/// let pattern = Pattern::parse(r"^web\d+$")?;
/// // As in Java, `$` also matches before a final line break, and `\d` is ASCII.
/// assert_eq!(pattern.is_found_in("web01\n"), Ok(true));
/// assert_eq!(pattern.is_found_in("web٣"), Ok(false));
/// assert!(Pattern::parse("web[").is_err());
/// # Ok::<(), clade::PatternError>(())
/// ```
#[derive(Clone)]
pub struct Pattern(Arc<SharedPattern>);

struct SharedPattern {
    text: Box<str>,
    /// How many steps the pattern compiles to.
    steps: usize,
    /// What a subject must contain.
    required: Option<Required>,
    /// The matcher for subjects of one line in ASCII that needs no automaton, if there is one.
    one_pass: Option<OnePass>,
    /// The matcher in linear time, and the subjects it may be asked about; none for a pattern whose
    /// meaning cannot be kept, or that is too large. Then it is backtracked: the answer is the same, or an
    /// error where the steps do not suffice.
    linear: OnceLock<Option<Linear>>,
    /// The backtracker, made only for a subject that needs it.
    program: OnceLock<Option<Program>>,
}

/// A matcher in linear time.
struct Linear {
    regex: ::regex::Regex,
    subjects: Subjects,
    _charge: Charge<'static>,
}

/// Every pattern in use, by its text: snapshots share what is compiled.
static IN_USE: LazyLock<Mutex<HashMap<Box<str>, Weak<SharedPattern>>>> =
    LazyLock::new(Mutex::default);

impl Pattern {
    /// Reads a pattern.
    ///
    /// # Errors
    ///
    /// Returns what Java would say of it, or why it cannot be evaluated safely.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        let known = {
            let in_use = IN_USE.lock().unwrap_or_else(PoisonError::into_inner);
            in_use.get(text).and_then(Weak::upgrade)
        };
        if let Some(inner) = known {
            return Ok(Self(inner));
        }
        let (ast, program) = program_of(text)?;
        let required = required::required(&ast, &program);
        let one_pass = OnePass::of(&ast);
        let steps = program.code.len();
        let (linear, program) = (OnceLock::new(), OnceLock::new());
        let text_of = text.into();
        let inner =
            Arc::new(SharedPattern { text: text_of, steps, required, one_pass, linear, program });
        let mut in_use = IN_USE.lock().unwrap_or_else(PoisonError::into_inner);
        if in_use.len() >= 1024 && in_use.len().is_power_of_two() {
            in_use.retain(|_, it| it.strong_count() > 0);
        }
        in_use.insert(text.into(), Arc::downgrade(&inner));
        Ok(Self(inner))
    }

    /// Returns the pattern as written.
    pub fn as_str(&self) -> &str {
        &self.0.text
    }

    /// Returns how many steps the pattern compiles to: what it costs to keep.
    pub fn steps(&self) -> usize {
        self.0.steps
    }

    /// Returns what must be in a subject for the pattern to be found in it; `None` if nothing can
    /// be said, or asking the pattern may fail.
    pub fn required(&self) -> Option<&Required> {
        self.0.required.as_ref()
    }

    /// Returns the pattern as code for subjects of one line in ASCII, if it is simple enough.
    pub fn one_pass(&self) -> Option<&OnePass> {
        self.0.one_pass.as_ref()
    }

    /// Writes the pattern as `PostgreSQL` would have to be asked for the same.
    ///
    /// # Errors
    ///
    /// Returns what `PostgreSQL` does not have, as the end of a sentence.
    pub fn to_postgres(&self) -> Result<String, &'static str> {
        // What was read once is read again the same.
        let parsed = parse::parse(&self.0.text).map_err(|_| "it is not a pattern")?;
        postgres::write(&parsed.ast)
    }

    /// Returns whether the pattern is found anywhere in the subject.
    ///
    /// # Errors
    ///
    /// Returns [`Overrun`] if that could not be found out within the step budget.
    pub fn is_found_in(&self, subject: &str) -> Result<bool, Overrun> {
        self.is_found_in_kind(subject, SubjectKind::of(subject))
    }

    /// The same, for a subject of a kind that is known; many patterns ask about few subjects.
    ///
    /// # Errors
    ///
    /// Returns [`Overrun`] if that could not be found out within the step budget.
    pub fn is_found_in_kind(&self, subject: &str, kind: SubjectKind) -> Result<bool, Overrun> {
        let one_pass = self.0.one_pass.as_ref().filter(|_| kind == SubjectKind::AsciiLine);
        if let Some(is_found) = one_pass.and_then(|it| it.is_found_in(subject)) {
            return Ok(is_found);
        }
        // A matcher takes kilobytes: none is made for a subject in which it would find nothing.
        // Also where the ledger refused one: the answer must not depend on what was asked before.
        if !matches!(self.0.linear.get(), Some(Some(_))) && self.0.is_lacking(subject, kind) {
            return Ok(false);
        }
        match self.0.linear_for(kind) {
            Some(linear) => {
                count_linear(subject.len());
                Ok(linear.is_match(subject))
            }
            None => Ok(self.0.backtrack(subject)?.is_some()),
        }
    }

    /// Returns the bytes of the first match in the subject.
    ///
    /// # Errors
    ///
    /// Returns [`Overrun`] if that could not be found out within the step budget.
    pub fn find(&self, subject: &str) -> Result<Option<Range<usize>>, Overrun> {
        match self.0.linear_for(SubjectKind::of(subject)) {
            Some(linear) => Ok(linear.find(subject).map(|found| found.range())),
            None => self.0.backtrack(subject),
        }
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.0.text == other.0.text
    }
}

impl Eq for Pattern {}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pattern({:?})", &self.0.text)
    }
}

/// Reads a pattern into instructions.
fn program_of(text: &str) -> Result<(Ast, Program), PatternError> {
    let parsed = parse::parse(text)?;
    let too_large = |program::TooLarge| PatternError {
        message: "the pattern is too large: its repetitions expand to over 50,000 steps".to_owned(),
        offset: 0,
    };
    let program = program::compile(&parsed.ast, parsed.captures).map_err(too_large)?;
    Ok((parsed.ast, program))
}

impl SharedPattern {
    /// Returns whether a subject is known to lack what the pattern requires.
    fn is_lacking(&self, subject: &str, kind: SubjectKind) -> bool {
        self.required.as_ref().is_some_and(|it| it.is_missing_in(subject, kind))
    }

    /// Returns the matcher in linear time, if it may be asked about the subject.
    fn linear_for(&self, kind: SubjectKind) -> Option<&::regex::Regex> {
        let linear = self.linear.get_or_init(|| {
            let parsed = parse::parse(&self.text).ok()?;
            let (text, subjects) = translate::translate(&parsed.ast)?;
            let charge = AUTOMATONS.charge(self.steps)?;
            let mut builder = ::regex::RegexBuilder::new(&text);
            builder.size_limit(PATTERN_BYTES).dfa_size_limit(CACHE_BYTES).nest_limit(2000);
            let regex = builder.build().ok()?;
            Some(Linear { regex, subjects, _charge: charge })
        });
        let Linear { regex, subjects, .. } = linear.as_ref()?;
        let easy = match subjects {
            Subjects::OneLine => kind >= SubjectKind::Line,
            Subjects::OneLineAscii => kind == SubjectKind::AsciiLine,
        };
        easy.then_some(regex)
    }

    fn backtrack(&self, subject: &str) -> Result<Option<Range<usize>>, Overrun> {
        let program = self.program.get_or_init(|| Some(program_of(&self.text).ok()?.1));
        // What was read once is read again the same; without a program nothing would be known.
        let program = program.as_ref().ok_or(Overrun)?;
        let characters: Vec<char> = subject.chars().collect();
        let found = backtrack::find(program, &characters)?;
        let offset =
            |place: usize| -> usize { characters.iter().take(place).map(|it| it.len_utf8()).sum() };
        Ok(found.map(|(start, end)| offset(start)..offset(end)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_patterns_share_what_is_compiled() {
        let (a, b) =
            (Pattern::parse("shared pattern").unwrap(), Pattern::parse("shared pattern").unwrap());
        assert!(Arc::ptr_eq(&a.0, &b.0));
        assert!(
            a.0.linear.get().is_none() && a.0.program.get().is_none(),
            "nothing is compiled before it is looked for"
        );
    }

    #[test]
    fn a_matcher_is_made_for_subjects_that_have_what_the_pattern_requires() {
        for (pattern, without, with) in [
            ("^web01[a-z]+x$", "db01ax", "web01ax"),
            (r"(?:web|app)\d+\.ams", "web1.nyc", "app1.ams"),
            (r"\w+\.ams", "été.nyc", "a.ams"),
        ] {
            let parsed = Pattern::parse(pattern).unwrap();
            assert_eq!(parsed.is_found_in(without), Ok(false), "{pattern}");
            assert!(parsed.0.linear.get().is_none(), "{pattern} is not compiled");
            assert_eq!(parsed.find(without), Ok(None), "{pattern}: its matcher says the same");
            assert!(parsed.0.linear.get().is_some(), "{pattern} is compiled");
            assert_eq!(parsed.is_found_in(with), Ok(true), "{pattern}");
            assert_eq!(parsed.is_found_in(without), Ok(false), "{pattern}");
        }
    }
}
