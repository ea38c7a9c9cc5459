//! The mutants that no test notices, for people and programs.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::mutants::{Mutant, MutatedPart, RuleMutation};
use super::{MutationOutcome, Reach, Survivor};
use crate::diagnostic::visible;

impl MutationOutcome<'_> {
    /// Writes the survivors, a line each, and how many mutants were tried.
    pub(in crate::cli::test) fn text(&self, prefix: &str) -> String {
        let mut text = String::new();
        for survivor in &self.survivors {
            let place = &survivor.mutant.place;
            let start = place.span.start;
            let (file, message) = (visible(&place.file), survivor.message());
            let message = visible(&message);
            let _infallible =
                writeln!(text, "{prefix}{file}:{}:{}: {message}", start.line, start.column);
        }
        if !text.is_empty() {
            text.push('\n');
        }
        let survived = self.survivors.len();
        let _infallible = write!(
            text,
            "mutants: {} tried, {} noticed, {survived} survived",
            self.tried,
            self.tried - survived
        );
        if self.tried < self.total {
            let _infallible = write!(text, ", {} not tried", self.total - self.tried);
        }
        text.push('\n');
        text
    }

    /// Returns the same for programs.
    pub(in crate::cli::test) fn to_value(&self, prefix: &str) -> Value {
        let survivor = |it: &Survivor<'_>| {
            let (place, change) = (&it.mutant.place, it.mutant.change());
            json!({
                "file": format!("{prefix}{}", place.file),
                "line": place.span.start.line,
                "column": place.span.start.column,
                "group": it.group,
                "change": change,
                "what": it.mutant.what(),
                "reached": it.reach == Reach::Reached,
                "message": it.message(),
            })
        };
        json!({
            "total": self.total,
            "tried": self.tried,
            "noticed": self.tried - self.survivors.len(),
            "survived": self.survivors.len(),
            "survivors": self.survivors.iter().map(survivor).collect::<Vec<_>>(),
        })
    }
}

impl Survivor<'_> {
    fn message(&self) -> String {
        let (what, group) = (self.mutant.what(), self.group);
        let change = match self.mutant.change() {
            "negate-condition" => format!("that `{what}` is negated"),
            "drop-value" => format!("that {what} is gone"),
            _ => format!("that `{what}` is gone"),
        };
        let reach = match self.reach {
            Reach::Reached => "",
            Reach::Unreached => "; no test reaches it",
        };
        format!("no test notices {change}, in the group `{group}`{reach}")
    }
}

impl Mutant<'_> {
    /// Names the change for programs.
    fn change(&self) -> &'static str {
        match &self.part {
            MutatedPart::Value(_) => "drop-value",
            MutatedPart::Rule(change) => match change.how {
                RuleMutation::Drop => "drop-condition",
                RuleMutation::Negate => "negate-condition",
                RuleMutation::Unpin => "drop-pin",
            },
        }
    }

    /// Names what is changed.
    fn what(&self) -> String {
        match &self.part {
            MutatedPart::Value(value) => value.describe(),
            MutatedPart::Rule(change) => change.condition.clone(),
        }
    }
}
