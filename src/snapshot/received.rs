//! The facts of a request that values mention, as they stand in its body.

use std::sync::Arc;

use serde_json::Value;

use super::paths::{ValuePath, ValuePathId};
use crate::model::{MASKED, Map, Node, Segment};

/// The facts and trusted data of a request that values mention. They are parsed when they are put into a value:
/// most answers need few of them or none.
#[derive(Clone, Debug, Default)]
pub(super) struct ReceivedFacts<'b> {
    /// In order; none where values mention nothing: all threads count the users of these, which takes them time.
    paths: Option<Arc<[ValuePath]>>,
    /// The JSON text at each path, by number.
    texts: Vec<Option<&'b str>>,
}

impl<'b> ReceivedFacts<'b> {
    /// Returns the facts of a request of which nothing is read yet.
    pub(super) fn none_of(paths: &Arc<[ValuePath]>) -> Self {
        match paths.len() {
            0 => Self::default(),
            count => Self { paths: Some(Arc::clone(paths)), texts: vec![None; count] },
        }
    }

    /// Notes what is at a path.
    pub(super) fn put(&mut self, path: ValuePathId, text: Option<&'b str>) {
        if let Some(place) = self.texts.get_mut(path as usize) {
            *place = text;
        }
    }

    /// Returns what a fact becomes in a string, if that can be told from its JSON text: a plain string, a number, a
    /// boolean, or nothing.
    pub(super) fn plain(&self, path: &[Segment]) -> Option<&'b str> {
        let at = self.paths.as_ref()?.binary_search_by(|it| (**it).cmp(path)).ok()?;
        let Some(text) = *self.texts.get(at)? else { return Some("") };
        match text.as_bytes().first()? {
            b'"' => {
                let inside = text.strip_prefix('"')?.strip_suffix('"')?;
                (!inside.contains('\\') && inside != MASKED).then_some(inside)
            }
            b't' | b'f' => Some(text),
            b'n' => Some(""),
            // The JSON library writes exponents in its own way.
            b'0'..=b'9' if !text.contains(['e', 'E']) => Some(text),
            _ => None,
        }
    }

    /// Returns a node that has these facts and no others; `None` if one cannot be parsed.
    pub(super) fn node(&self, name: &str) -> Option<Node> {
        let mut node = Node::named(name);
        for (path, text) in self.paths.iter().flat_map(|it| it.iter()).zip(&self.texts) {
            let (Some(text), Some((Segment::Key(root), keys))) = (text, path.split_first()) else {
                continue;
            };
            let map = if root.as_ref() == "fact" { &mut node.fact } else { &mut node.trusted };
            insert(map, keys, serde_json::from_str(text).ok()?);
        }
        Some(node)
    }
}

/// Puts a value where keys lead. Null counts as nothing.
fn insert(map: &mut Map<String, Value>, keys: &[Segment], value: Value) {
    match keys {
        _ if value.is_null() => {}
        [Segment::Key(key)] => {
            map.insert(key.as_ref().to_owned(), value);
        }
        [Segment::Key(key), rest @ ..] => {
            let below = map.entry(key.as_ref()).or_insert_with(|| Map::new().into());
            if let Value::Object(below) = below {
                insert(below, rest, value);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classification::{Expander, Template, WithheldFacts};
    use crate::table::each_row;

    #[test]
    fn what_is_plain_is_what_comes_out() {
        let rows = [
            (Some(r#""a $b é""#), Some("a $b é")),
            (Some(r#""""#), Some("")),
            (Some(r#""a\nb""#), None),
            (Some(r#""[masked]""#), None),
            (Some("true"), Some("true")),
            (Some("false"), Some("false")),
            (Some("null"), Some("")),
            (None, Some("")),
            (Some("0"), Some("0")),
            (Some("12.50"), Some("12.50")),
            (Some("123456789012345678901234567890"), Some("123456789012345678901234567890")),
            (Some("-1"), None),
            (Some("1e3"), None),
            (Some("[1, 2]"), None),
            (Some(r#"{"a": 1}"#), None),
        ];
        each_row(rows, |(text, plain)| {
            let path = |of: &[&str]| of.iter().map(|it| Segment::Key((*it).into())).collect();
            let paths: [ValuePath; 2] = [path(&["fact", "os", "name"]), path(&["fact", "other"])];
            let received =
                ReceivedFacts { paths: Some(paths.into()), texts: vec![text, Some("\"other\"")] };
            let template = Template::parse("${os[name]}").unwrap();
            let reference = template.references().next().unwrap();
            let found = received.plain(reference.segments());
            assert_eq!(found, plain);
            let node = received.node("n").unwrap();
            let written = Expander::new(&node, WithheldFacts::Refuse).text(&template);
            assert!(found.is_none() || written.as_deref() == Ok(found.unwrap()), "{written:?}");
        });
        let path = [Segment::Key("fact".into()), Segment::Key("os".into())];
        assert_eq!(
            ReceivedFacts::default().plain(&path),
            None,
            "it is not among those that were read"
        );
    }
}
