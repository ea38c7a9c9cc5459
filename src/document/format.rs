//! The canonical form of a file: order of keys, indents, blanks; comments and values stay.
//!
//! Each step is taken only if the file reads as before, so no text is strange enough to be damaged.

use serde_json::Value;

use super::edit::{EditError, line_start};
use super::write::inline;
use super::{Content, Entry, Limits, Node, read, token};

/// One step towards the canonical form; none where the text cannot be read.
type Step<'s> = &'s dyn Fn(&str) -> Option<String>;

/// How often the steps are repeated until nothing changes.
const ROUNDS: usize = 4;

/// Returns the canonical form of a text; `order` is that of the keys of its documents.
///
/// # Errors
///
/// Returns an error if the text has faults.
pub fn format(text: &str, order: &[&str]) -> Result<String, EditError> {
    let wanted = values(text).ok_or(EditError::Unreadable)?;
    let plain = text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n");
    let keeps = |it: &String| values(it).is_some_and(|found| found == wanted);
    let mut best = Some(plain).filter(keeps).unwrap_or_else(|| text.to_owned());
    for _ in 0..ROUNDS {
        let before = best.clone();
        let steps: [Step<'_>; 4] = [&|text| reorder(text, order), &reindent, &respace, &tidy];
        for step in steps {
            best = step(&best).filter(keeps).unwrap_or(best);
        }
        if best == before {
            break;
        }
    }
    Ok(best)
}

fn documents(text: &str) -> Option<Vec<Node>> {
    let contents = read(text.as_bytes(), &Limits::DEFAULT);
    contents.faults.is_empty().then_some(contents.documents)
}

fn values(text: &str) -> Option<Vec<Value>> {
    Some(documents(text)?.iter().map(Node::to_value).collect())
}

/// Returns the number of a node's first and last line, from 0.
fn lines_of(node: &Node) -> (usize, usize) {
    (node.span.start.line as usize - 1, (node.span.end.line as usize).saturating_sub(1))
}

fn is_comment(line: &str) -> bool {
    line.trim_start().starts_with('#')
}

/// Returns whether a list or mapping stands over several lines, without brackets.
fn is_block(text: &str, node: &Node) -> bool {
    let filled = !node.entries().is_empty() || !node.elements().is_empty();
    let first = text.as_bytes().get(node.span.start.offset as usize);
    filled && !matches!(first, Some(b'[' | b'{' | b'*' | b'&'))
}

/// Puts the keys of each document in order, each with the comments right above it.
fn reorder(text: &str, order: &[&str]) -> Option<String> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let mut sorted = lines.clone();
    let rank = |entry: &Entry| order.iter().position(|it| *it == entry.key).unwrap_or(order.len());
    for document in documents(text)? {
        let entries = document.entries();
        if !is_block(text, &document) || entries.is_sorted_by_key(rank) {
            continue;
        }
        let mut chunks: Vec<(usize, Vec<&str>)> = Vec::new();
        let mut from: Option<usize> = None;
        let ends: Vec<usize> =
            entries.iter().map(|it| it.value.span.end.max(it.key_span.end).line as usize).collect();
        for (number, entry) in entries.iter().enumerate() {
            let key = entry.key_span.start.line as usize - 1;
            let floor = number.checked_sub(1).and_then(|it| ends.get(it).copied());
            let mut start = key;
            let above = |at: usize| lines.get(at).copied().unwrap_or_default();
            while start > floor.unwrap_or(0)
                && above(start - 1).starts_with('#')
                && !above(start - 1).contains("yaml-language-server")
            {
                start -= 1;
            }
            // What stands between two keys and belongs to neither goes with the second.
            let begin = floor.unwrap_or(start);
            from = from.or(Some(begin));
            let end = *ends.get(number)?;
            let mut chunk: Vec<&str> = lines.get(begin..end)?.to_vec();
            let deeper = |line: &&str| is_comment(line) && !line.starts_with('#');
            let leading = chunk.iter().take_while(|it| deeper(it)).count();
            // A comment that is indented belongs to the key above.
            if let Some((_, previous)) = chunks.last_mut() {
                previous.extend(chunk.drain(..leading));
            }
            chunks.push((rank(entry), chunk));
        }
        chunks.sort_by_key(|(rank, _)| *rank);
        let mut joined: Vec<&str> = chunks.into_iter().flat_map(|(_, lines)| lines).collect();
        let blank = joined.iter().take_while(|it| it.trim().is_empty()).count();
        joined.drain(..blank);
        joined.extend(std::iter::repeat_n("\n", blank));
        let from = from?;
        for (at, line) in joined.into_iter().enumerate() {
            *sorted.get_mut(from + at)? = line;
        }
    }
    // The last line of the file may have lacked its line break.
    let whole: Vec<String> = sorted
        .iter()
        .map(|it| if it.ends_with('\n') { (*it).to_owned() } else { format!("{it}\n") })
        .collect();
    Some(whole.concat())
}

/// Gives what stands inside of a key two blanks more than the key.
fn reindent(text: &str) -> Option<String> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let mut shifts = vec![0_isize; lines.len()];
    for document in documents(text)? {
        if is_block(text, &document) {
            shift((text, &lines), &document, 0, &mut shifts);
        }
    }
    let moved = lines.iter().zip(shifts).map(|(line, shift)| {
        let content = line.trim_start_matches(' ');
        let margin = (line.len() - content.len()).saturating_add_signed(shift);
        if content.trim().is_empty() { (*line).to_owned() } else { " ".repeat(margin) + content }
    });
    Some(moved.collect())
}

fn column(text: &str, at: usize) -> usize {
    at - line_start(text, at)
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

/// Notes by how much the lines of a list or mapping are to be moved so that it begins in a column.
fn shift((text, all): (&str, &[&str]), node: &Node, wanted: usize, shifts: &mut [isize]) {
    let now = column(text, node.span.start.offset as usize);
    let (first, last) = lines_of(node);
    let by = wanted.cast_signed() - now.cast_signed();
    for line in shifts.iter_mut().take(last + 1).skip(first) {
        *line = by;
    }
    let inside = |value: &Node, key_line: usize, key_column: usize, shifts: &mut [isize]| {
        if !is_block(text, value) {
            return;
        }
        let start = value.span.start.offset as usize;
        let (value_line, value_end) = lines_of(value);
        // A comment below that is indented as much belongs to it.
        let own = column(text, start);
        let below = all.iter().skip(value_end + 1);
        let comments = below.take_while(|it| is_comment(it) && indent(it) >= own).count();
        let value_end = value_end + comments;
        if value_line > key_line {
            // Comments above the first key or element move with it.
            let by = (wanted + 2).cast_signed() - own.cast_signed();
            for line in shifts.iter_mut().take(value_end + 1).skip(key_line + 1) {
                *line = by;
            }
            shift((text, all), value, wanted + 2, shifts);
        } else {
            shift((text, all), value, wanted + own - key_column, shifts);
        }
    };
    match &node.content {
        Content::Mapping(entries) => {
            for entry in entries {
                inside(&entry.value, entry.key_span.start.line as usize - 1, now, shifts);
            }
        }
        Content::Sequence(elements) => {
            let mut from = node.span.start.offset as usize;
            for element in elements {
                let dash = token::skip(text, from, |_| false);
                let line = text.get(..dash).map_or(0, |it| it.matches('\n').count());
                inside(element, line, now, shifts);
                from = (element.span.end.offset as usize).max(dash + 1);
            }
        }
        Content::Scalar(_) => {}
    }
}

/// Puts one blank between a key and its value, and writes lists and mappings in brackets in one
/// way.
fn respace(text: &str) -> Option<String> {
    let mut changes: Vec<(usize, usize, String)> = Vec::new();
    for document in documents(text)? {
        spaces(text, &document, &mut changes);
    }
    let mut spaced = String::new();
    let mut at = 0;
    for (from, to, with) in changes {
        spaced.push_str(text.get(at..from)?);
        spaced.push_str(&with);
        at = to;
    }
    spaced.push_str(text.get(at..)?);
    Some(spaced)
}

fn spaces(text: &str, node: &Node, changes: &mut Vec<(usize, usize, String)>) {
    let (start, end) = (node.span.start.offset as usize, node.span.end.offset as usize);
    let token = text.get(start..end).unwrap_or_default();
    if token.starts_with(['[', '{']) {
        // What has comments, anchors or several lines is somebody's own layout.
        if !token.contains(['\n', '#', '&', '*']) {
            changes.push((start, end, inline(&node.to_value())));
        }
        return;
    }
    if token.starts_with('*') {
        return;
    }
    for element in node.elements() {
        spaces(text, element, changes);
    }
    for entry in node.entries() {
        let key = entry.key_span.end.offset as usize;
        let value = entry.value.span.start.offset as usize;
        let between = text.get(key..value).unwrap_or_default();
        if entry.value.span.start < entry.value.span.end && between.trim() == ":" {
            let same_line = !between.contains('\n');
            if same_line {
                changes.push((key, value, ": ".to_owned()));
            }
        }
        spaces(text, &entry.value, changes);
    }
}

/// Takes out blanks at the ends of lines, and blank lines that follow each other.
fn tidy(text: &str) -> Option<String> {
    let lines: Vec<&str> = text.split('\n').collect();
    let mut kept = vec![false; lines.len()];
    for document in documents(text)? {
        keep_texts(&document, &mut kept);
    }
    let mut tidied: Vec<&str> = Vec::new();
    for (line, kept) in lines.iter().zip(kept) {
        let line = if kept { line } else { line.trim_end() };
        let blank = line.is_empty() && !kept;
        if !blank || tidied.last().is_some_and(|it| !it.is_empty()) {
            tidied.push(line);
        }
    }
    Some(format!("{}\n", tidied.join("\n").trim_end_matches('\n')))
}

/// Marks the lines of texts of several lines, in which every blank counts.
fn keep_texts(node: &Node, kept: &mut [bool]) {
    if let Content::Scalar(_) = node.content {
        let (first, last) = lines_of(node);
        for line in kept.iter_mut().take(last + 1).skip(first + 1) {
            *line = true;
        }
    }
    node.elements().iter().for_each(|it| keep_texts(it, kept));
    node.entries().iter().for_each(|it| keep_texts(&it.value, kept));
}

#[cfg(test)]
mod tests {
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

    #[test]
    fn every_blank_of_a_text_counts() {
        let text = "classes:\n    a:\n        t: |\n            x  \n\n\n              y\n        u: >-\n          z\nname: A\n---\nname: B\n";
        insta::assert_snapshot!(format(text, ORDER).unwrap(), @r"
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
        ");
    }

    #[test]
    fn lists_are_indented_below_their_keys() {
        let text = "pinned:\n- a\n-   b: 1\n    c: 2\nclasses:\n x:\n  y:\n  - z\n";
        insta::assert_snapshot!(format(text, ORDER).unwrap(), @r"
        classes:
          x:
            y:
              - z
        pinned:
          - a
          -   b: 1
              c: 2
        ");
        assert_eq!(format("a: [", ORDER), Err(EditError::Unreadable));
    }
}
