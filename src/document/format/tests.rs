use proptest::prelude::*;
use serde_json::Map;

use super::super::ValueLayout;
use super::super::edit_documents;
use super::*;

const ORDER: &[&str] = &["name", "parent", "rule", "classes"];

#[test]
fn keys_are_put_in_order_with_their_comments() {
    let text = "\u{feff}# yaml-language-server: $schema=x\n# why\nrule:   name = x   # now\n\n\n\nclasses:\n      # tuned\n      b: {x:   1,y: [a,b]}\n      # last of classes\n# who\nname: A  \nother: 1\nparent:\n    B\n";
    insta::assert_snapshot!(format(text, ORDER).unwrap(), @r##"
    # yaml-language-server: $schema=x
    # who
    name: A
    parent:
        B
    # why
    rule: name = x   # now

    classes:
      # tuned
      b: {x: 1, y: ["a", "b"]}
      # last of classes
    other: 1
    "##);
}

#[expect(clippy::disallowed_methods, reason = "the time is measured")]
#[test]
fn comments_above_the_first_key_are_each_seen_once() {
    let text = format!("{}name: A\n", "# x\n".repeat(40_000));
    let began = std::time::Instant::now();
    assert_eq!(format(&text, ORDER).unwrap(), text);
    // Half a second in a debug build; with a look at each from each it was more than a minute.
    assert!(began.elapsed().as_secs() < 30, "{:?}", began.elapsed());
}

#[test]
fn every_blank_of_a_text_counts() {
    let text = "classes:\n    a:\n        t: |\n            x  \n\n\n              y\n        u: >-\n          z\nname: A\n---\nname: B\n";
    insta::assert_snapshot!(format(text, ORDER).unwrap(), @r##"
    name: A
    classes:
      a:
        t: |
            x  


              y
        u: >-
          z
    ---
    name: B
    "##);
}

#[test]
fn lists_are_indented_below_their_keys() {
    let text = "pinned:\n- a\n-   b: 1\n    c: 2\nclasses:\n x:\n  y:\n  - z\n";
    insta::assert_snapshot!(format(text, ORDER).unwrap(), @r##"
    classes:
      x:
        y:
          - z
    pinned:
      - a
      -   b: 1
          c: 2
    "##);
    assert_eq!(format("a: [", ORDER), Err(EditError::Unreadable));
}

/// What a comment of a [`Draft`] was written for.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Meant {
    Top,
    Above,
    Ignore,
    Beside,
    Within,
    Ends,
    End,
}

/// Writes values with comments in every place; each comment names a number, for which is noted what it
/// was meant for.
#[derive(Debug)]
struct Draft {
    choices: Vec<u8>,
    at: usize,
    text: String,
    notes: Vec<(Meant, Vec<String>)>,
}

impl Draft {
    fn choose(&mut self, below: u8) -> u8 {
        self.at += 1;
        let step = self.at / self.choices.len();
        let number = self.choices[self.at % self.choices.len()];
        number.wrapping_add(u8::try_from(step % 7).unwrap()) % below
    }

    fn note(&mut self, meant: Meant, path: &[String]) -> String {
        self.notes.push((meant, path.to_vec()));
        let number = self.notes.len() - 1;
        if meant == Meant::Ignore {
            format!("# clade: ignore kind-{number}.")
        } else {
            format!("# note {number}. it's \"so")
        }
    }

    fn line(&mut self, indent: usize, text: &str) {
        self.text.extend([" ".repeat(indent).as_str(), text, "\n"]);
    }

    fn blank(&mut self) {
        if self.choose(5) == 0 {
            self.text += "\n";
        }
    }

    fn document(&mut self, value: &Value, indent: usize, number: usize) {
        let path = [number.to_string()];
        if self.choose(4) == 0 {
            let note = self.note(Meant::Top, &path);
            self.line(0, &format!("{note}\n"));
        }
        self.parts(value, indent, &path);
        if self.choose(4) == 0 {
            self.blank();
            let note = self.note(Meant::End, &path);
            let column = usize::from(self.choose(2)) * indent;
            self.line(column, &note);
        }
    }

    fn parts(&mut self, value: &Value, indent: usize, path: &[String]) {
        let parts: Vec<(String, String, &Value)> = match value {
            Value::Object(fields) => {
                fields.iter().map(|(key, it)| (key.clone(), format!("{key}:"), it)).collect()
            }
            Value::Array(elements) => {
                let parts = elements.iter().enumerate();
                parts.map(|(at, it)| (at.to_string(), "-".to_owned(), it)).collect()
            }
            _ => Vec::new(),
        };
        for (name, mark, part) in parts {
            let path = [path, &[name]].concat();
            for _ in 0..self.choose(3) {
                let ignores = self.choose(3) == 0;
                let meant = if ignores { Meant::Ignore } else { Meant::Above };
                let note = self.note(meant, &path);
                let column = if ignores { usize::from(self.choose(6)) } else { indent };
                self.line(column, &note);
            }
            self.part(&mark, part, (value, indent), &path);
            let is_first = path.len() == 2;
            if !is_first || self.choose(2) == 0 {
                self.blank();
            }
        }
    }

    /// Writes a part on the line of its dash.
    fn behind_dash(&mut self, part: &Value, indent: usize, path: &[String]) {
        let before = self.text.len();
        self.parts(part, indent + 2, path);
        let inside = self.text.split_off(before);
        if inside.trim_start().starts_with('#') {
            // The first line is a comment, so it cannot be.
            self.text.extend([" ".repeat(indent).as_str(), "-\n", &inside]);
        } else {
            self.text.extend([" ".repeat(indent).as_str(), "- ", inside.trim_start()]);
        }
    }

    /// Writes a part that has no parts of its own.
    fn plain(&mut self, mark: &str, part: &Value, indent: usize, beside: &str) {
        match (part, self.choose(3)) {
            (Value::String(text), 0) if text.contains('\n') => {
                let lines = text.trim_end().replace('\n', &format!("\n{}", " ".repeat(indent + 3)));
                let sign = if text.ends_with('\n') { "|" } else { "|-" };
                self.line(indent, &format!("{mark} {sign}{beside}"));
                self.line(indent + 3, &lines);
            }
            (Value::String(text), 1) if text.contains(" # ") && !text.contains('\n') => {
                let lines = text.replace(" # ", &format!("\n{}# ", " ".repeat(indent + 1)));
                self.line(indent, &format!("{mark} '{lines}'{beside}"));
            }
            (Value::Null, 0 | 1) => self.line(indent, &format!("{mark}{beside}")),
            _ => self.line(indent, &format!("{mark}  {}{beside}", inline(part))),
        }
    }

    fn part(
        &mut self,
        mark: &str,
        part: &Value,
        (around, indent): (&Value, usize),
        path: &[String],
    ) {
        let beside = if self.choose(4) == 0 {
            format!("  {}", self.note(Meant::Beside, path))
        } else {
            String::new()
        };
        let is_nested = match part {
            Value::Object(fields) => !fields.is_empty(),
            Value::Array(elements) => !elements.is_empty(),
            _ => false,
        };
        if !is_nested {
            return self.plain(mark, part, indent, &beside);
        }
        match self.choose(5) {
            0 => self.line(indent, &format!("{mark} {}{beside}", inline(part))),
            1 => {
                // Brackets over several lines, with a comment inside.
                let flow = inline(part);
                let (open, rest) = flow.split_at(1);
                self.line(indent, &format!("{mark} {open}{beside}"));
                let note = self.note(Meant::Within, path);
                let column = indent + usize::from(self.choose(4)) + 1;
                self.line(column, &note);
                self.line(indent + 4, rest);
            }
            choice => {
                let is_list = part.is_array() && around.is_object();
                let step = if is_list && choice == 2 {
                    0
                } else {
                    [2, 4, 1, 3][usize::from(self.choose(4))]
                };
                if mark == "-" && step == 2 && beside.is_empty() && self.choose(2) == 0 {
                    self.behind_dash(part, indent, path);
                } else {
                    self.line(indent, &format!("{mark}{beside}"));
                    self.parts(part, indent + step, path);
                }
                if step > 0 && self.choose(4) == 0 {
                    let note = self.note(Meant::Ends, path);
                    self.line(indent + step, &note);
                }
            }
        }
    }
}

/// Returns the lines, from 0, of the key or dash at a path and of the end of its value, and the column.
fn place(text: &str, documents: &[Node], path: &[String]) -> Option<(usize, usize, usize)> {
    let mut node = documents.get(path.first()?.parse::<usize>().ok()?)?;
    let mut found = None;
    for name in path.iter().skip(1) {
        if let Some(entry) = node.entry(name) {
            let start = entry.key_span.start;
            let end = entry.value.span.end.max(entry.key_span.end);
            found =
                Some((start.line as usize - 1, end.line as usize - 1, start.column as usize - 1));
            node = &entry.value;
        } else {
            let number = name.parse::<usize>().ok()?;
            let mut at = node.span.start.offset as usize;
            for element in node.elements().iter().take(number) {
                at = (element.span.end.offset as usize).max(token::skip(text, at, |_| false) + 1);
            }
            let dash = token::skip(text, at, |_| false);
            node = node.elements().get(number)?;
            let line = text.get(..dash)?.matches('\n').count();
            let end = (node.span.end.line as usize - 1).max(line);
            found = Some((line, end, dash - line_start(text, dash)));
        }
    }
    found
}

/// Says which comment is no longer where it was meant to be; `is_gone` are the paths that were taken out.
fn misplaced(
    text: &str,
    notes: &[(Meant, Vec<String>)],
    is_gone: &dyn Fn(&[String]) -> bool,
) -> Option<String> {
    let plain = text.strip_prefix('\u{feff}').unwrap_or(text);
    let plain = plain.replace("\r\n", "\n").replace('\r', "\n");
    let contents = read(plain.as_bytes(), &Limits::DEFAULT);
    let lines: Vec<&str> = plain.lines().collect();
    let is_content = |line: &usize| {
        let line = lines[*line].trim();
        !(line.is_empty() || line.starts_with("# note") || line.starts_with("# clade:"))
    };
    for (number, (meant, path)) in notes.iter().enumerate() {
        let word = if *meant == Meant::Ignore { "ignore kind" } else { "note" };
        let separator = if *meant == Meant::Ignore { "-" } else { " " };
        let wanted = format!(
            "# {}{word}{separator}{number}.",
            if *meant == Meant::Ignore { "clade: " } else { "" }
        );
        let at = lines.iter().position(|it| it.contains(&wanted));
        if is_gone(path) {
            if *meant == Meant::Ignore && at.is_some() {
                return Some(format!("{wanted} is left behind"));
            }
            continue;
        }
        let Some(at) = at else { return Some(format!("{wanted} is lost")) };
        let next = (at + 1..lines.len()).find(is_content);
        let previous = (0..at).rev().find(is_content);
        let is_marker = |line: Option<usize>| line.is_none_or(|it| lines[it].starts_with("---"));
        let fine = match meant {
            Meant::Top => is_marker(previous),
            Meant::End => is_marker(next),
            _ => {
                let Some((start, end, column)) = place(&plain, &contents.documents, path) else {
                    return Some(format!("{path:?} is lost"));
                };
                let margin = lines[at].len() - lines[at].trim_start().len();
                match meant {
                    Meant::Above => next == Some(start) && margin == column,
                    Meant::Ignore => {
                        next == Some(start)
                            && contents.ignores.iter().any(|it| {
                                it.line as usize == start + 1
                                    && it.kinds == [format!("kind-{number}.")]
                            })
                    }
                    Meant::Beside => start <= at && at <= end,
                    Meant::Within => start < at && at < end,
                    _ => previous == Some(end) && next.is_none_or(|it| it > end) && margin > column,
                }
            }
        };
        if !fine {
            return Some(format!("{wanted} was {meant:?} {path:?}"));
        }
    }
    None
}

fn any_part() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        (0..9).prop_map(Value::from),
        prop::sample::select(
            &["x", "yes", "l\nm\n", "# a\n\n  # b", "it # is", "ü", "{{ x }}"][..]
        )
        .prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            any_fields(inner, 0..4),
        ]
    })
}

fn any_fields(
    inner: impl Strategy<Value = Value>,
    count: std::ops::Range<usize>,
) -> impl Strategy<Value = Value> {
    prop::collection::vec(("[a-e]", inner), count)
        .prop_map(|it| Value::Object(it.into_iter().collect::<Map<_, _>>()))
}

fn any_choices() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 20..80)
}

const MIXED: &[&str] = &["c", "a", "b"];

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn comments_stay_with_what_they_belong_to(
        documents in prop::collection::vec(any_fields(any_part(), 1..5), 1..3),
        choices in any_choices(),
        indent in 0_usize..5,
        breaks in 0_usize..3,
        mark in any::<bool>(),
    ) {
        let mut draft = Draft { choices, at: 0, text: String::new(), notes: Vec::new() };
        for (number, document) in documents.iter().enumerate() {
            if number > 0 {
                draft.text += "---\n";
            }
            draft.document(document, indent, number);
        }
        let mut text = draft.text.replace('\n', ["\n", "\r\n", "\r"][breaks]);
        if mark {
            text.insert(0, '\u{feff}');
        }
        let nothing = |_: &[String]| false;
        // A comment that is drawn deeper than a block of text before it is text.
        prop_assume!(misplaced(&text, &draft.notes, &nothing).is_none());
        let formatted = format(&text, MIXED).unwrap();
        let values: Vec<Value> = super::documents(&formatted).unwrap().iter().map(Node::to_value).collect();
        prop_assert_eq!(&values, &documents, "{}\n=>\n{}", text, formatted);
        prop_assert_eq!(misplaced(&formatted, &draft.notes, &nothing), None, "{}\n=>\n{}", text, formatted);
        prop_assert_eq!(&format(&formatted, MIXED).unwrap(), &formatted, "{}", text);
        // Every step was taken.
        for document in super::documents(&formatted).unwrap() {
            let rank = |it: &Entry| MIXED.iter().position(|key| *key == it.key).unwrap_or(3);
            prop_assert!(document.entries().is_sorted_by_key(rank), "{}\n=>\n{}", text, formatted);
            prop_assert!(document.entries().iter().all(|it| it.key_span.start.column == 1), "{}\n=>\n{}", text, formatted);
        }
    }

    /// A key that is put in, taken out or written over leaves the comments of all others where they are.
    #[test]
    fn an_edit_leaves_the_comments_of_other_keys(
        document in any_fields(any_fields(any_part(), 1..4), 1..4),
        choices in any_choices(),
        indent in 0_usize..4,
        way in prop::collection::vec(0_usize..4, 1..3),
        operation in 0..3,
        fresh in any_part(),
        layout in any::<bool>(),
    ) {
        let mut draft = Draft { choices, at: 0, text: String::new(), notes: Vec::new() };
        draft.document(&document, indent, 0);
        prop_assume!(misplaced(&draft.text, &draft.notes, &|_| false).is_none());
        let mut target = document.clone();
        let mut path = vec!["0".to_owned()];
        let mut around = &mut target;
        for (depth, at) in way.iter().enumerate() {
            let Value::Object(fields) = around else { break };
            let count = fields.len().max(1);
            let Some(key) = fields.keys().nth(at % count).cloned() else { break };
            if depth + 1 < way.len() && fields[&key].as_object().is_some_and(|it| !it.is_empty()) {
                path.push(key.clone());
                around = fields.get_mut(&key).unwrap();
                continue;
            }
            match operation {
                0 => drop(fields.shift_insert(at % count, "new".to_owned(), fresh.clone())),
                1 if fields.len() > 1 => drop(fields.shift_remove(&key)),
                _ => fields[&key] = fresh.clone(),
            }
            if operation > 0 {
                path.push(key);
            }
            break;
        }
        let layout = if layout { ValueLayout::Block } else { ValueLayout::Flow };
        let targets = [(0, target.clone())].into();
        let edited = edit_documents(&draft.text, &targets, &|_| layout);
        prop_assert!(edited.is_ok(), "{:?} {}\n{}", edited, draft.text, target);
        let edited = edited.unwrap();
        let is_gone = |it: &[String]| operation > 0 && path.len() > 1 && it.starts_with(&path);
        // What is written over may keep the comments that were inside of it.
        let is_removed = place(&edited, &documents(&edited).unwrap(), &path).is_none();
        let kept: Vec<_> = draft.notes.iter().map(|(meant, it)| match meant {
            Meant::Ignore if is_gone(it) && !is_removed => (Meant::Above, it.clone()),
            _ => (*meant, it.clone()),
        }).collect();
        prop_assert_eq!(misplaced(&edited, &kept, &is_gone), None, "{:?} {}\n{}\n=>\n{}", path, operation, draft.text, edited);
    }
}

#[test]
fn lines_can_end_with_a_carriage_return() {
    let text = "b:\n    - x # of x\n# of a\na:   |\n  one\n\n  two\n---\nc: \"d\n  e\"\n";
    let formatted = format(text, ORDER).unwrap();
    for breaks in ["\r", "\r\n"] {
        assert_eq!(format(&text.replace('\n', breaks), ORDER).unwrap(), formatted);
        let marked = format!("\u{feff}{}", text.replace('\n', breaks));
        assert_eq!(format(&marked, ORDER).unwrap(), formatted);
    }
    assert_eq!(format("b: 1\r\ra: 2\r\r\nc: 3\n", ORDER).unwrap(), "b: 1\n\na: 2\n\nc: 3\n");
}

/// So many lines that to look for the beginning of the file from each takes minutes.
#[test]
fn many_lines_can_end_with_a_carriage_return() {
    let lines: Vec<String> = (0..40_000).map(|it| format!("a{it}: 1\r")).collect();
    let lines = lines.concat();
    assert_eq!(format(&lines, ORDER).unwrap(), lines.replace('\r', "\n"));
}

#[test]
fn comments_move_with_indented_keys() {
    let text = "  # header\n\n  # of b\n  b:\n      # of x\n      x: 1\n      # ends b\n  # clade: ignore missing-class\n  a: 1 # beside a\n  # the end\n";
    insta::assert_snapshot!(format(text, &["a", "b"]).unwrap(), @r##"
    # header

    # clade: ignore missing-class
    a: 1 # beside a
    # of b
    b:
      # of x
      x: 1
      # ends b
    # the end
    "##);
    // An `ignore` silences the next line, however it is indented.
    let text = "b:\n  x: 1\n  # clade: ignore missing-class\na: 1\n";
    insta::assert_snapshot!(format(text, &["a", "b"]).unwrap(), @r##"
    # clade: ignore missing-class
    a: 1
    b:
      x: 1
    "##);
}

#[test]
fn escapes_of_json_are_written_as_the_character() {
    let text =
        r#"{"name": "A \ud83d\ude00", "x\uD83D\uDE00": ["\\ud83d\\ude00", "\ud83d\ude00\n"]}"#;
    let formatted = format(text, ORDER).unwrap();
    assert_eq!(formatted, "{name: \"A 😀\", \"x😀\": [\"\\\\ud83d\\\\ude00\", \"😀\\n\"]}\n");
    let text = "name: \"\\ud83d\\ude00\" # \\ud83d\\ude00\nother: 'a \\ud83d\\ude00'\n";
    assert_eq!(format(text, ORDER).unwrap(), text.replacen("\\ud83d\\ude00", "😀", 1));
}
