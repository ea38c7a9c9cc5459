//! Where the comparisons of rules are written.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::element::TextParts;
use crate::diagnostic::Place;
use crate::document::{Limits, Node, Span, read};
use crate::rule::comparison_ranges;

/// Returns where the comparisons of each group's `rule` are written, in the order of the rule, by the place
/// of the group; without pinned nodes, which have places of their own.
///
/// The text is that of a file in which validation has found no error.
pub fn comparison_places(file: &Arc<str>, text: &[u8]) -> BTreeMap<Place, Vec<Place>> {
    let place = |span: Span| Place { file: Arc::clone(file), span };
    let of_group = |document: &Node| {
        let mut spans = Vec::new();
        collect(document.get("rule")?, text, &mut spans);
        Some((place(document.name_span()), spans.into_iter().map(place).collect()))
    };
    read(text, &Limits::DEFAULT).documents.iter().filter_map(of_group).collect()
}

fn collect(rule: &Node, file: &[u8], spans: &mut Vec<Span>) {
    if let Some(text) = rule.as_str() {
        let mut parts = TextParts::of(rule, file);
        spans.extend(comparison_ranges(text).iter().map(|it| parts.span(it.start, it.end)));
        return;
    }
    let Some((operator, terms)) = rule.elements().split_first() else { return };
    match operator.as_str() {
        Some("and" | "or" | "not") => terms.iter().for_each(|it| collect(it, file, spans)),
        _ => spans.push(rule.span),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comparisons_are_placed_in_both_notations_and_over_lines() {
        let text = "\
name: A
rule: os.family = Debian and not (x > 5 or name ~ \"w w\")
---
name: B
rule:
  - and
  - ['~', name, a]
  - [not,
     ['=', [fact, x], b]]
---
name: C
";
        let found = comparison_places(&Arc::from("g.yaml"), text.as_bytes());
        let starts: Vec<Vec<String>> = found
            .values()
            .map(|it| {
                let at = |place: &Place| {
                    let (start, end) = (place.span.start, place.span.end);
                    format!("{}:{}-{}", start.line, start.column, end.column)
                };
                it.iter().map(at).collect()
            })
            .collect();
        assert_eq!(starts, [vec!["2:7-25", "2:35-40", "2:44-56"], vec!["7:5-19", "9:6-25"]]);
    }
    /// So many comparisons in one string that to count the characters before each takes minutes.
    #[test]
    fn many_comparisons_of_one_string_are_placed() {
        const COMPARISONS: u32 = 90_000;
        let rule = vec!["é = x"; COMPARISONS as usize].join(" or ");
        let text = format!("name: A\nrule: {rule}\n");
        let found = comparison_places(&Arc::from("g.yaml"), text.as_bytes());
        let places = found.values().next().unwrap();
        assert_eq!(places.len(), COMPARISONS as usize);
        for (number, place) in (0..).zip(places) {
            let (start, end) = (place.span.start, place.span.end);
            assert_eq!((start.column, end.column), (7 + 9 * number, 12 + 9 * number));
            assert_eq!((start.offset, end.offset), (14 + 10 * number, 20 + 10 * number));
        }
    }
}
