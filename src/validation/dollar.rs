//! Values with a `$`, as written.
//!
//! Whether one is worth a finding depends on `interpolate` in `clade.yaml`, which the reader of one file does
//! not know.

use super::element::part_of;
use super::file_reader::FileReader;
use super::rule::terms_of_path;
use crate::classification::{IllegalReason, Template};
use crate::diagnostic::{Diagnostic, Kind, Place, Severity};
use crate::document::{Node, Span};
use crate::model::{BudgetItem, Interpolation};

/// How many values of a document are kept.
const VALUES: usize = 1_000;

/// How many characters of a value are shown.
const SHOWN: usize = 60;

/// A value with a `$`, and what that means.
#[derive(Clone, Debug)]
pub(super) struct DollarValue {
    place: Place,
    meaning: DollarMeaning,
}

/// What a `$` in a value means.
#[derive(Clone, Debug)]
enum DollarMeaning {
    /// Another value comes out where facts are put into values.
    Changes {
        /// The value, shortened.
        text: String,
    },
    /// A form is not legal, and stays as it is.
    Illegal {
        reason: IllegalReason,
        /// The form, shortened.
        text: String,
        /// How many more there are in the value.
        more: usize,
    },
}

/// Finds the values of classes and variables that have a `$`, and counts the references in them; `None` if these are
/// more than the budget allows.
pub(super) fn find(document: &Node, reader: &mut FileReader) -> Option<Vec<DollarValue>> {
    let mut found = Vec::new();
    let classes = document.get("classes").map(Node::entries).unwrap_or_default();
    let variables = document.get("variables").map(Node::entries).unwrap_or_default();
    for entry in classes.iter().flat_map(|class| class.value.entries()).chain(variables) {
        search(&entry.value, reader, &mut found)?;
    }
    Some(found)
}

fn search(node: &Node, reader: &mut FileReader, found: &mut Vec<DollarValue>) -> Option<()> {
    for entry in node.entries() {
        search(&entry.value, reader, found)?;
    }
    for element in node.elements() {
        search(element, reader, found)?;
    }
    let Some(text) = node.as_str().filter(|it| it.contains('$')) else { return Some(()) };
    if let Some(template) = Template::parse(text) {
        let terms = template.references().map(|it| terms_of_path(it.segments())).sum();
        reader.charge(BudgetItem::RuleTerms, terms)?;
    }
    let mut add = |span: Span, meaning: DollarMeaning| {
        // The rest of so many would not be shown.
        let is_error =
            matches!(meaning, DollarMeaning::Illegal { reason, .. } if is_refused(reason));
        if found.len() < VALUES || is_error {
            found.push(DollarValue { place: reader.place(span), meaning });
        }
    };
    if Template::changes(text) {
        add(node.span, DollarMeaning::Changes { text: shortened(text) });
    }
    let forms = Template::illegal_forms(text);
    // What makes the commit invalid is said before what does not.
    let worst = forms.iter().find(|it| is_refused(it.reason)).or(forms.first());
    if let Some(form) = worst {
        let characters = |bytes: usize| text.get(..bytes).unwrap_or_default().chars().count();
        let (from, to) = (characters(form.bytes.start), characters(form.bytes.end));
        let span = part_of(node, reader.content(), from, to);
        let text = shortened(text.get(form.bytes.clone()).unwrap_or_default());
        add(span, DollarMeaning::Illegal { reason: form.reason, text, more: forms.len() - 1 });
    }
    Some(())
}

/// Returns whether a value with such a form makes a commit invalid.
fn is_refused(reason: IllegalReason) -> bool {
    matches!(reason, IllegalReason::TooMany | IllegalReason::TooDeep)
}

fn shortened(text: &str) -> String {
    let mut characters = text.chars().map(|it| if it.is_control() { ' ' } else { it });
    let mut short: String = characters.by_ref().take(SHOWN).collect();
    if characters.next().is_some() {
        short.push('…');
    }
    short
}

impl DollarValue {
    /// Returns what is wrong with the value under a setting.
    pub(super) fn finding(&self, setting: Interpolation) -> Option<Diagnostic> {
        let place = self.place.clone();
        match (&self.meaning, setting) {
            (DollarMeaning::Changes { text }, Interpolation::Off) => {
                let message = format!("facts are not put into values, so `{text}` stays as it is");
                let help = "for facts in values as in Puppet Enterprise, write `interpolate: true` into \
                            `clade.yaml`; if the text is meant as it stands, write `# clade: ignore \
                            uninterpolated-value` on the line above";
                Some(Diagnostic::new(Kind::UninterpolatedValue, place, message).with_help(help))
            }
            (DollarMeaning::Illegal { reason, text, more }, Interpolation::On) => {
                let kind = match reason {
                    reason if is_refused(*reason) => Kind::SchemaViolation,
                    _ => Kind::SuspiciousValue,
                };
                let more = match more {
                    0 => String::new(),
                    more => format!(" (and {more} more in this value)"),
                };
                let message = match kind.severity() {
                    Severity::Error => reason.message().to_owned(),
                    Severity::Warning => {
                        format!("`{text}` stays as it is: {}{more}", reason.message())
                    }
                };
                Some(Diagnostic::new(kind, place, message).with_help(reason.help()))
            }
            (DollarMeaning::Changes { .. }, Interpolation::On)
            | (DollarMeaning::Illegal { .. }, Interpolation::Off) => None,
        }
    }
}
