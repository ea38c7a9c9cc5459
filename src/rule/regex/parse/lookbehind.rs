//! How long the text of a look-behind can be, by Java's own reckoning.
//!
//! Java adds lengths in 32 bits and takes an overflow for what it is in some places and for a
//! missing maximum in others; both are kept, since both decide what is a pattern.

use crate::rule::regex::ast::{Ast, Mode, Repeat};

/// The least and the most characters so far; the most only as long as Java sees one.
#[derive(Clone, Copy, Default)]
struct Lengths {
    least: i32,
    most: i32,
    unbounded: bool,
}

/// Returns the least and the most characters of a part; `None` if there is no obvious maximum.
pub(super) fn lengths(ast: &Ast) -> Option<(i32, i32)> {
    let mut lengths = Lengths::default();
    lengths.add(ast);
    (!lengths.unbounded).then_some((lengths.least, lengths.most))
}

impl Lengths {
    fn of(ast: &Ast) -> Self {
        let mut lengths = Self::default();
        lengths.add(ast);
        lengths
    }

    fn grow(&mut self, least: i32, most: i32) {
        self.least = self.least.wrapping_add(least);
        self.most = self.most.wrapping_add(most);
    }

    fn add(&mut self, ast: &Ast) {
        match ast {
            Ast::Empty | Ast::Look(_) | Ast::Assert(_) => {}
            Ast::Set(_) => self.grow(1, 1),
            Ast::LineBreak => self.grow(1, 2),
            // Java forgets to count a cluster here, so that the look-behind never matches.
            Ast::Grapheme => self.grow(1, 0),
            Ast::Reference(_) => self.unbounded = true,
            Ast::Capture(_, body) | Ast::Atomic(body) => self.add(body),
            Ast::Sequence(parts) => parts.iter().for_each(|part| self.add(part)),
            Ast::Choice(parts) => {
                let all: Vec<Self> = parts.iter().map(Self::of).collect();
                let least = all.iter().map(|it| it.least).min().unwrap_or(0);
                let most = all.iter().map(|it| it.most).max().unwrap_or(0);
                self.unbounded |= all.iter().any(|it| it.unbounded);
                self.grow(least, most);
            }
            Ast::Repeat(repeat) => self.add_repeated(repeat),
        }
    }

    fn add_repeated(&mut self, repeat: &Repeat) {
        let times = |count: u32| i32::try_from(count).unwrap_or(i32::MAX);
        let (least, most) = (times(repeat.least), repeat.most.map_or(i32::MAX, times));
        if (repeat.least, repeat.most) == (0, Some(1)) {
            let before = self.least;
            self.add(&repeat.body);
            self.least = before;
            return;
        }
        // A greedy `*` or `+` of one character has no check of the sum.
        if repeat.most.is_none()
            && repeat.least <= 1
            && repeat.mode == Mode::Greedy
            && matches!(repeat.body, Ast::Set(_))
        {
            return self.grow(least, most);
        }
        let body = Self::of(&repeat.body);
        self.least = body.least.wrapping_mul(least).wrapping_add(self.least);
        // A loop over what can match in several ways has no maximum that Java sees.
        if body.unbounded || has_choice(&repeat.body) {
            self.unbounded = true;
            return;
        }
        let sum = body.most.wrapping_mul(most).wrapping_add(self.most);
        self.unbounded |= sum < self.most;
        self.most = sum;
    }
}

/// Returns whether a grouped body lets Java decide only while matching.
fn has_choice(body: &Ast) -> bool {
    match body {
        Ast::Choice(_) => true,
        Ast::Sequence(parts) => parts.iter().any(has_choice),
        Ast::Capture(_, inner) | Ast::Atomic(inner) => has_choice(inner),
        Ast::Repeat(repeat) => repeat.least != repeat.most.unwrap_or(u32::MAX),
        _ => false,
    }
}
