//! The console's notation of rules: `trusted.certname ~ "www" and os.family = Debian`.

mod familiar;
mod fault;
mod scan;

use std::fmt;
use std::ops::Range;

use super::array_form::path_to_value;
use super::comparison::shorten;
use super::depth::{TOO_DEEP, TOO_DEEP_HELP, is_too_deep};
use super::fault::{RuleFault, RuleFaultKind};
use crate::model::{
    Comparison, Condition, Path, Segment, Test, is_bare_segment, shared_path, write_quoted,
};
pub(crate) use familiar::opens_foreign_quote;
use familiar::{dotted, join_help, no_path, operator_help};
use fault::{BoxedFault, fault};
use scan::{ConsoleScanner, ConsoleToken};

/// How deep parentheses and `not` may be nested.
const DEPTH_LIMIT: usize = 64;

/// Reads a rule in the console's notation.
///
/// `and` binds tighter than `or`; `not` binds to the next comparison or parenthesis. Facts need
/// no prefix, `name` alone is the certname. `!=`, `!~` and `/:` are `not` of `=`, `~` and `<:`.
///
/// # Errors
///
/// Returns the first fault of the grammar, or else every faulty pattern.
pub fn read_console(text: &str) -> Result<Condition, Vec<RuleFault>> {
    read_console_within(text, usize::MAX)
}

/// Reads a rule of at most so many comparisons in the console's notation.
pub(super) fn read_console_within(text: &str, most: usize) -> Result<Condition, Vec<RuleFault>> {
    if let Some(fault) = familiar::array_in_string(text) {
        return Err(vec![fault]);
    }
    let mut reader = ConsoleReader { most, ..ConsoleReader::new(text) };
    match reader.whole() {
        Ok(_) if !reader.patterns.is_empty() => Err(reader.patterns),
        Ok(condition) => Ok(condition),
        Err(fault) => Err(reader.patterns.into_iter().chain([*fault]).collect()),
    }
}

/// Returns where the comparisons of a rule in the console's notation stand: characters, counted from 0,
/// in the order of the text. None for a rule with a fault.
pub fn comparison_ranges(text: &str) -> Vec<Range<usize>> {
    let mut reader = ConsoleReader::new(text);
    match reader.whole() {
        Ok(_) => reader.comparisons,
        Err(_) => Vec::new(),
    }
}

struct ConsoleReader {
    scanner: ConsoleScanner,
    patterns: Vec<RuleFault>,
    comparisons: Vec<Range<usize>>,
    /// How many comparisons are read.
    most: usize,
    depth: usize,
}

impl ConsoleReader {
    fn new(text: &str) -> Self {
        let scanner = ConsoleScanner::new(text);
        let most = usize::MAX;
        Self { scanner, patterns: Vec::new(), comparisons: Vec::new(), most, depth: 0 }
    }

    fn whole(&mut self) -> Result<Condition, BoxedFault> {
        let condition = self.alternatives()?;
        let at = self.scanner.position();
        match self.scanner.condition_token()? {
            ConsoleToken::End => Ok(condition),
            token => {
                if let Some(oddity) = self.scanner.oddity() {
                    return Err(oddity);
                }
                let help = match &token {
                    ConsoleToken::Word(word)
                        if matches!(word.to_lowercase().as_str(), "and" | "or") =>
                    {
                        Some("write it in lower case")
                    }
                    ConsoleToken::Word(word) if join_help(word).is_some() => join_help(word),
                    ConsoleToken::Close => Some("there is no `(` before it"),
                    _ => Some(
                        "join comparisons with `and` or `or`, and put values with blanks in quotes",
                    ),
                };
                let message = format!("expected `and`, `or` or the end, found {token}");
                Err(fault(at..self.scanner.end(), message, help))
            }
        }
    }

    fn alternatives(&mut self) -> Result<Condition, BoxedFault> {
        self.chain("or", Self::conjunction, Condition::Or)
    }

    fn conjunction(&mut self) -> Result<Condition, BoxedFault> {
        self.chain("and", Self::unary, Condition::And)
    }

    fn chain(
        &mut self,
        word: &str,
        term: impl Fn(&mut Self) -> Result<Condition, BoxedFault>,
        join: impl Fn(Vec<Condition>) -> Condition,
    ) -> Result<Condition, BoxedFault> {
        let first = term(self)?;
        let mut terms = vec![first];
        while self.scanner.take_word(word) {
            terms.push(term(self)?);
        }
        Ok(if terms.len() > 1 { join(terms) } else { terms.remove(0) })
    }

    fn unary(&mut self) -> Result<Condition, BoxedFault> {
        let at = self.scanner.position();
        if self.depth >= DEPTH_LIMIT {
            return Err(fault(
                at..at + 1,
                format!("conditions are nested over {DEPTH_LIMIT} deep"),
                None,
            ));
        }
        self.depth += 1;
        let condition = if self.scanner.take_word("not") {
            self.unary().map(|inner| Condition::Not(Box::new(inner)))
        } else if self.scanner.take('(') {
            self.parenthesis(at)
        } else {
            self.test()
        };
        self.depth -= 1;
        condition
    }

    fn parenthesis(&mut self, opened: usize) -> Result<Condition, BoxedFault> {
        let condition = self.alternatives()?;
        if self.scanner.take(')') {
            return Ok(condition);
        }
        let at = self.scanner.position();
        match self.scanner.condition_token()? {
            ConsoleToken::End => Err(fault(opened..opened + 1, "this `(` is never closed", None)),
            token => {
                let message = format!("expected `and`, `or` or `)`, found {token}");
                let fault = || fault(at..self.scanner.end(), message, None);
                Err(self.scanner.oddity().unwrap_or_else(fault))
            }
        }
    }

    fn test(&mut self) -> Result<Condition, BoxedFault> {
        let at = self.scanner.position();
        if self.comparisons.len() >= self.most {
            let message = format!("the rule has more than {} comparisons", self.most);
            let kind = RuleFaultKind::Size;
            return Err(Box::new(RuleFault { kind, ..*fault(at..at + 1, message, None) }));
        }
        let path = self.path()?;
        let (negated, operator) = self.scanner.operator().map_err(|mut fault| {
            let word = fault.characters.clone().map(|it| self.scanner.slice(it));
            fault.help = word.and_then(|it| operator_help(&it, &path)).or(fault.help);
            fault
        })?;
        let start = self.scanner.position();
        let value = self.scanner.value()?;
        self.comparisons.push(at..self.scanner.end());
        let comparison = match operator.comparison(&value.content) {
            Ok(comparison) => comparison,
            Err(fault) => {
                let characters = fault.characters.filter(|_| value.verbatim).map(|range| {
                    range.start + value.inset + start..range.end + value.inset + start
                });
                let characters = characters.or(Some(start..self.scanner.end()));
                self.patterns.push(RuleFault { characters, ..fault });
                // The fault is reported; what stands in place of the pattern is never used.
                Comparison::Equals(value.content.as_str().into())
            }
        };
        let test = Condition::Test(Test { path, comparison });
        Ok(if negated { Condition::Not(Box::new(test)) } else { test })
    }

    fn path(&mut self) -> Result<Path, BoxedFault> {
        let at = self.scanner.position();
        self.segments(at).map_err(|mut fault| {
            let written = self.scanner.ahead(at);
            if let Some(message) = no_path(&written) {
                fault.message = message.into();
                fault.characters = Some(at..at + self.scanner.word_length(at));
            }
            if fault.kind != RuleFaultKind::Depth {
                fault.help = dotted(&written).map(|it| format!("write `{it}`")).or(fault.help);
            }
            fault
        })
    }

    fn segments(&mut self, at: usize) -> Result<Path, BoxedFault> {
        let mut segments = vec![self.scanner.segment()?];
        loop {
            if self.scanner.take_adjacent('.') {
                segments.push(self.scanner.segment()?);
            } else if self.scanner.take_adjacent('[') {
                segments.push(self.scanner.index()?);
            } else {
                break;
            }
            // Without its root it may be one segment longer still.
            if is_too_deep(segments.len()) {
                return Err(too_deep(at..self.scanner.end()));
            }
        }
        let root = match segments.first() {
            Some(Segment::Key(root)) if !self.scanner.was_quoted(at) => root.as_ref(),
            _ => "",
        };
        let with_root = match root {
            "name" if segments.len() == 1 => return Ok(Path::Name),
            "trusted" => true,
            "fact" | "facts" => matches!(segments.get(1), Some(Segment::Key(_))),
            _ => false,
        };
        if !with_root {
            segments.insert(0, Segment::Key("fact".into()));
        }
        if is_too_deep(segments.len()) {
            return Err(too_deep(at..self.scanner.end()));
        }
        Ok(Path::Segments(shared_path(&segments)))
    }
}

#[expect(
    clippy::unnecessary_box_returns,
    reason = "the results of the descent carry it on every level"
)]
fn too_deep(at: Range<usize>) -> BoxedFault {
    let fault = fault(at, TOO_DEEP, Some(TOO_DEEP_HELP));
    Box::new(RuleFault { kind: RuleFaultKind::Depth, ..*fault })
}

/// A rule names a path that the console's notation cannot write.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the console's notation cannot write the path `{path}`, at which no node has a value; {remedy}"
)]
pub struct NoConsoleForm {
    /// The path in the array form.
    path: String,
    remedy: String,
}

impl NoConsoleForm {
    fn of(path: &Path) -> Self {
        let remedy = match path {
            Path::Bare(text) => format!("for the fact write [\"fact\", \"{}\"]", shorten(text)),
            _ => "for a fact write [\"fact\", …]".to_owned(),
        };
        Self { path: shorten(&path_to_value(path).to_string()), remedy }
    }
}

/// Writes a rule in the console's notation; [`read_console`] reads the same meaning from it.
///
/// # Errors
///
/// Returns an error if the rule has a path that the notation cannot write.
pub fn to_console(condition: &Condition) -> Result<String, NoConsoleForm> {
    if let Some(path) = unwritable(condition) {
        return Err(NoConsoleForm::of(path));
    }
    Ok(condition.to_string())
}

/// Returns the first path of a rule that the notation cannot write.
fn unwritable(condition: &Condition) -> Option<&Path> {
    match condition {
        Condition::And(terms) | Condition::Or(terms) => terms.iter().find_map(unwritable),
        Condition::Not(inner) => unwritable(inner),
        Condition::Test(test) => Some(&test.path).filter(|it| !it.has_console_form()),
    }
}

impl fmt::Display for Condition {
    /// Writes the condition for people, in the console's notation as far as that goes;
    /// [`to_console`] writes what can be read back.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_condition(f, self, Binding::Or)
    }
}

/// How tight the surroundings bind: what is looser needs parentheses.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Binding {
    Or,
    And,
    Unary,
}

fn write_condition(
    f: &mut fmt::Formatter<'_>,
    condition: &Condition,
    around: Binding,
) -> fmt::Result {
    let (terms, word, own) = match condition {
        Condition::And(terms) => (terms, " and ", Binding::And),
        Condition::Or(terms) => (terms, " or ", Binding::Or),
        Condition::Not(inner) => {
            return match (inner.as_ref(), negated(inner)) {
                (Condition::Test(test), Some(operator)) => write_test(f, test, operator),
                _ => {
                    f.write_str("not ")?;
                    write_condition(f, inner, Binding::Unary)
                }
            };
        }
        Condition::Test(test) => return write_test(f, test, test.comparison.operator()),
    };
    if let [term] = terms.as_slice() {
        return write_condition(f, term, around);
    }
    let parentheses = own < around;
    if parentheses {
        f.write_str("(")?;
    }
    for (index, term) in terms.iter().enumerate() {
        if index > 0 {
            f.write_str(word)?;
        }
        // The same word inside keeps its parentheses: the structure is what was written.
        let inside = if own == Binding::Or { Binding::And } else { Binding::Unary };
        write_condition(f, term, inside)?;
    }
    if parentheses { f.write_str(")") } else { Ok(()) }
}

fn negated(inner: &Condition) -> Option<&'static str> {
    let Condition::Test(test) = inner else { return None };
    match test.comparison.operator() {
        "=" => Some("!="),
        "~" => Some("!~"),
        "<:" => Some("/:"),
        _ => None,
    }
}

fn write_test(f: &mut fmt::Formatter<'_>, test: &Test, operator: &str) -> fmt::Result {
    write!(f, "{} {operator} ", test.path)?;
    let operand = test.comparison.operand();
    let number = operand.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    if is_bare_segment(operand) || (number && !operand.is_empty()) {
        f.write_str(operand)
    } else {
        write_quoted(f, operand)
    }
}

/// Names a token for a message.
impl fmt::Display for ConsoleToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::End => f.write_str("the end"),
            Self::Open => f.write_str("`(`"),
            Self::Close => f.write_str("`)`"),
            Self::Word(word) => write!(f, "`{}`", shorten(word)),
        }
    }
}

#[cfg(test)]
mod tests;
