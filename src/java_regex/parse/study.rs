//! What Java finds out about a part of a pattern before it matches: how long its text can be, and
//! whether it can match in one way only.
//!
//! Java goes through its nodes in order and adds lengths in 32 bits. It checks some sums for an
//! overflow and not others, and begins a new sum behind a choice. All of that is kept: it decides
//! which look-behinds are valid, and where they begin to match.

use crate::java_regex::ast::{Ast, Looping, Repeat, RepeatMode};

/// What Java knows of the parts so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct Study {
    /// The least number of characters.
    pub(super) least: i32,
    /// The most characters, if that is valid.
    pub(super) most: i32,
    /// Whether Java sees a maximum.
    pub(super) is_bounded: bool,
    /// Whether the part can match in one way only at a place.
    pub(super) is_deterministic: bool,
}

/// What Java takes for the least number of characters when that overflows.
const LEAST_OVERFLOW: i32 = 0x0fff_ffff;

/// Studies a part of a pattern.
pub(super) fn study(ast: &Ast) -> Study {
    Study::EMPTY.and(ast)
}

impl Study {
    const EMPTY: Self = Self { least: 0, most: 0, is_bounded: true, is_deterministic: true };

    fn grow(&mut self, least: i32, most: i32) {
        self.least = self.least.wrapping_add(least);
        self.most = self.most.wrapping_add(most);
    }

    /// Studies a part that follows those so far.
    fn and(mut self, ast: &Ast) -> Self {
        // The sums before each choice, which are added at the end.
        let mut before: Vec<Self> = Vec::new();
        let mut rest = vec![ast];
        while let Some(part) = rest.pop() {
            match part {
                Ast::Empty | Ast::Look(_) | Ast::Assert(_) => {}
                Ast::Set(_) => self.grow(1, 1),
                Ast::LineBreak => self.grow(1, 2),
                // Java does not count a cluster here, so that the look-behind never matches.
                Ast::Grapheme => self.grow(1, 0),
                Ast::Reference(_) => self.is_bounded = false,
                Ast::Sequence(parts) => rest.extend(parts.iter().rev()),
                Ast::Capture(_, body) => rest.push(body),
                Ast::Atomic(body) => self = self.and(body),
                Ast::Choice(parts) => {
                    self.choose(parts.iter().map(study));
                    before.push(std::mem::replace(&mut self, Self::EMPTY));
                }
                Ast::Repeat(repeat) => match repeat.looping {
                    Looping::OptionalGroup => {
                        self.choose([study(&repeat.body), Self::EMPTY].into_iter());
                        before.push(std::mem::replace(&mut self, Self::EMPTY));
                    }
                    Looping::Group => {
                        // Java stops here, whatever follows.
                        self.is_bounded = false;
                        self.is_deterministic = false;
                        break;
                    }
                    _ => self.repeat(repeat),
                },
            }
        }
        while let Some(sum) = before.pop() {
            self.grow(sum.least, sum.most);
            self.is_bounded &= sum.is_bounded;
            self.is_deterministic = false;
        }
        self
    }

    fn choose(&mut self, parts: impl Iterator<Item = Self>) {
        // The bounds that Java begins with.
        let (mut least, mut most) = (i32::MAX, -1);
        for part in parts {
            least = least.min(part.least);
            most = most.max(part.most);
            self.is_bounded &= part.is_bounded;
        }
        self.grow(least, most);
    }

    fn repeat(&mut self, repeat: &Repeat) {
        let times = |count: u32| i32::try_from(count).unwrap_or(i32::MAX);
        let (least, most) = (times(repeat.least), repeat.most.map_or(i32::MAX, times));
        match repeat.looping {
            Looping::Optional => {
                let before = self.least;
                *self = self.and(&repeat.body);
                self.least = before;
                self.is_deterministic = false;
            }
            // Java does not check this sum.
            Looping::Characters => {
                self.grow(least, most);
                self.is_deterministic = false;
            }
            _ => {
                let body = study(&repeat.body);
                let sum = body.least.wrapping_mul(least).wrapping_add(self.least);
                self.least = if sum < self.least { LEAST_OVERFLOW } else { sum };
                if self.is_bounded && body.is_bounded {
                    let sum = body.most.wrapping_mul(most).wrapping_add(self.most);
                    self.is_bounded = sum >= self.most;
                    self.most = sum;
                } else {
                    self.is_bounded = false;
                }
                self.is_deterministic &= body.is_deterministic && least == most;
            }
        }
    }
}

/// Returns how Java runs a repetition of an atom.
pub(super) fn looping(
    body: &Ast,
    counts: &QuantifierCount,
    mode: RepeatMode,
    is_group: bool,
) -> Looping {
    match counts {
        QuantifierCount::Optional if is_group && mode != RepeatMode::Possessive => {
            Looping::OptionalGroup
        }
        QuantifierCount::Optional => Looping::Optional,
        QuantifierCount::AtLeast(_)
            if mode == RepeatMode::Greedy && matches!(body, Ast::Set(_)) && !is_group =>
        {
            Looping::Characters
        }
        _ if !is_group || mode == RepeatMode::Possessive => Looping::Atom,
        _ if study(body).is_deterministic => Looping::FixedGroup,
        _ => Looping::Group,
    }
}

/// How often a quantifier says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QuantifierCount {
    /// `?`, `{0,1}`
    Optional,
    /// `*`, `+`, `{n,}`
    AtLeast(u32),
    /// `{n}`, `{n,m}`
    Between(u32, u32),
}
