//! Where values are written.

use std::collections::HashMap;

use crate::answer::AnswerKey;
use crate::diagnostic::Place;
use crate::document::{Entry, Limits, Node, Span, read};

/// Returns the line of each of some values in a file, given with the place of the group or node that defines
/// it: that of the nearest key around the value if it is not written itself, or that of the document if the
/// file has no such document.
pub fn lines_of(values: &[(&AnswerKey, &Place)], content: &[u8]) -> Vec<u32> {
    let documents = read(content, &Limits::DEFAULT).documents;
    let documents: HashMap<Span, &Node> = documents.iter().map(|it| (it.name_span(), it)).collect();
    let mut entries = EntryIndex::default();
    let line = |(key, place): &(&AnswerKey, &Place)| {
        let document = documents.get(&place.span);
        document.map_or(place.span.start.line, |it| line_in(it, key, place, &mut entries))
    };
    values.iter().map(line).collect()
}

fn line_in<'d>(
    document: &'d Node,
    key: &AnswerKey,
    place: &Place,
    entries: &mut EntryIndex<'d>,
) -> u32 {
    let (mut line, mut at) = (place.span.start.line, document);
    for step in key.path() {
        let Some(entry) = entries.find(at, step) else { break };
        line = entry.key_span.start.line;
        at = &entry.value;
    }
    line
}

/// The entries of mappings by key, without the leading `::` that the name of a class may be written with.
///
/// A mapping is indexed when it is first asked for: a group can have tens of thousands of values, and all of
/// them are asked for.
#[derive(Default)]
struct EntryIndex<'d>(HashMap<*const Node, HashMap<&'d str, &'d Entry>>);

impl<'d> EntryIndex<'d> {
    fn find(&mut self, mapping: &'d Node, key: &str) -> Option<&'d Entry> {
        let index = self.0.entry(std::ptr::from_ref(mapping)).or_insert_with(|| {
            let mut index = HashMap::new();
            for entry in mapping.entries() {
                let name = entry.key.strip_prefix("::").unwrap_or(&entry.key);
                index.entry(name).or_insert(entry);
            }
            index
        });
        index.get(key).copied()
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    /// So many values of one group that to look for each among all keys takes minutes.
    #[test]
    fn many_values_of_one_group_have_their_lines() {
        const VALUES: u32 = 75_000;
        let mut text = "name: Before\n---\nname: A\nvariables:\n".to_owned();
        for number in 0..VALUES {
            let _infallible = writeln!(text, "  v{number}: 1");
        }
        text.push_str("classes:\n  ::apt: {}\n  ntp:\n    server: a\n");
        let documents = read(text.as_bytes(), &Limits::DEFAULT).documents;
        let place = Place { file: "a.yaml".into(), span: documents[1].name_span() };
        let mut wanted: Vec<(AnswerKey, u32)> = (0..VALUES)
            .map(|it| (AnswerKey::Variable(format!("v{it}").parse().unwrap()), it + 5))
            .collect();
        let behind = VALUES + 5;
        let class = |name: &str| name.parse().unwrap();
        wanted.extend([
            (AnswerKey::Class(class("apt")), behind + 1),
            (AnswerKey::Class(class("ntp")), behind + 2),
            (AnswerKey::Parameter(class("ntp"), "server".parse().unwrap()), behind + 3),
            // What the group does not write has the line of what is around it.
            (AnswerKey::Parameter(class("ntp"), "other".parse().unwrap()), behind + 2),
            (AnswerKey::Environment, 3),
        ]);
        let keys: Vec<_> = wanted.iter().map(|(key, _)| (key, &place)).collect();
        let lines: Vec<u32> = wanted.iter().map(|(_, line)| *line).collect();
        assert_eq!(lines_of(&keys, text.as_bytes()), lines);
        let elsewhere = Place { file: "a.yaml".into(), span: documents[0].span };
        assert_eq!(lines_of(&[(&AnswerKey::Environment, &elsewhere)], text.as_bytes()), [1]);
    }
}
