//! A pattern in the syntax of the `regex` crate, where its meaning can be kept.

use std::fmt::Write as _;

use super::ast::{Assertion, Ast, Repeat, RepeatMode};
use super::set::CodeSet;

/// What subjects a translated pattern may be asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subjects {
    /// Those that are not empty and have no line terminator.
    OneLine,
    /// Of these only the ones in ASCII: the pattern asks for word boundaries, which Java sees
    /// differently elsewhere.
    OneLineAscii,
}

/// Writes a pattern for the `regex` crate; `None` if it has what that crate does not.
///
/// On a subject that is not empty and has no line terminator every `^` is the start and every `$`
/// the end, with or without flags, so nothing of Java's lines has to be written.
pub(super) fn translate(ast: &Ast) -> Option<(String, Subjects)> {
    let mut writer = Translator { text: String::new(), subjects: Subjects::OneLine };
    writer.part(ast)?;
    Some((writer.text, writer.subjects))
}

struct Translator {
    text: String,
    subjects: Subjects,
}

impl Translator {
    fn part(&mut self, ast: &Ast) -> Option<()> {
        match ast {
            Ast::Empty => self.text.push_str("(?:)"),
            Ast::Set(set) => self.set(set)?,
            Ast::Sequence(parts) => parts.iter().try_for_each(|part| self.part(part))?,
            Ast::Choice(parts) => {
                self.text.push_str("(?:");
                for (index, part) in parts.iter().enumerate() {
                    self.text.push_str(if index > 0 { "|" } else { "" });
                    self.part(part)?;
                }
                self.text.push(')');
            }
            Ast::Capture(_, body) => {
                self.text.push_str("(?:");
                self.part(body)?;
                self.text.push(')');
            }
            Ast::Repeat(repeat) => self.repeat(repeat)?,
            Ast::Assert(assertion) => self.assertion(*assertion)?,
            Ast::Atomic(_) | Ast::Look(_) | Ast::Reference(_) | Ast::LineBreak | Ast::Grapheme => {
                return None;
            }
        }
        Some(())
    }

    fn assertion(&mut self, assertion: Assertion) -> Option<()> {
        self.text.push_str(match assertion {
            Assertion::Start | Assertion::LineStart(_) => r"\A",
            Assertion::End | Assertion::BeforeFinal(_) | Assertion::LineEnd(_) => r"\z",
            Assertion::WordBoundary { negative, .. } => {
                self.subjects = Subjects::OneLineAscii;
                if negative { r"(?-u:\B)" } else { r"(?-u:\b)" }
            }
            Assertion::GraphemeBoundary => return None,
        });
        Some(())
    }

    fn repeat(&mut self, repeat: &Repeat) -> Option<()> {
        // Java leaves a loop at an iteration that matches nothing, the crate goes on.
        let loops = repeat.most.is_none_or(|most| most > 1);
        if repeat.mode == RepeatMode::Possessive || (loops && repeat.body.is_nullable()) {
            return None;
        }
        self.text.push_str("(?:");
        self.part(&repeat.body)?;
        self.text.push(')');
        let (least, most) = (repeat.least, repeat.most);
        let _infallible = match (least, most) {
            (0, Some(1)) => write!(self.text, "?"),
            (0, None) => write!(self.text, "*"),
            (1, None) => write!(self.text, "+"),
            (_, None) => write!(self.text, "{{{least},}}"),
            (_, Some(most)) => write!(self.text, "{{{least},{most}}}"),
        };
        if repeat.mode == RepeatMode::Lazy {
            self.text.push('?');
        }
        Some(())
    }

    fn set(&mut self, set: &CodeSet) -> Option<()> {
        // Most sets of most patterns are one of these, which stand for themselves anywhere.
        if let Some(only) = set.only()
            && (only.is_ascii_alphanumeric() || matches!(only, '-' | '_'))
        {
            self.text.push(only);
            return Some(());
        }
        self.text.push('[');
        let mut empty = true;
        for (first, last) in set.ranges() {
            // Surrogates are in no subject, and in no class of the crate.
            let pieces = [(*first, (*last).min(0xd7ff)), ((*first).max(0xe000), *last)];
            for (first, last) in pieces.into_iter().filter(|(first, last)| first <= last) {
                empty = false;
                let _infallible = write!(self.text, r"\x{{{first:x}}}-\x{{{last:x}}}");
            }
        }
        // A class of nothing has a form of its own.
        self.text.push_str(if empty { r"&&[^\s\S]]" } else { "]" });
        (!empty).then_some(())
    }
}
