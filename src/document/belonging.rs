//! Which part of a document each comment belongs to.
//!
//! A comment above a key or element belongs to it; one behind it in its line as well. A comment
//! that is indented deeper than what follows belongs to the list or mapping that it ends. A comment
//! `# clade: ignore` belongs to the next line with content, however it is indented, because
//! that is the line on which it silences warnings.

use std::collections::BTreeMap;

use super::token::line_start;
use super::token::{self, line_end};
use super::{Content, Node, comment};

/// A key or an element of a list over several lines.
#[derive(Debug)]
pub(super) struct Item {
    /// The keys and numbers that lead to it.
    path: String,
    parent: Option<usize>,
    /// The number of the top-level key or element that it is, or is inside of.
    top: usize,
    document: usize,
    pub(super) start: usize,
    pub(super) line: usize,
    pub(super) column: usize,
    /// The last line of its value, which may have other items inside.
    last_line: usize,
}

/// A comment with the lines to itself.
#[derive(Debug)]
pub(super) struct OwnLines {
    pub(super) line: usize,
    pub(super) home: Home,
}

/// What a comment belongs to; items go by their number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Home {
    /// The document: it stands at the top.
    Top(usize),
    /// The item below.
    Above(usize),
    /// The item that has it in its lines.
    Within(usize),
    /// The item whose list or mapping it ends.
    Ends(usize),
    /// The document: it stands at the end.
    End(usize),
}

/// The items and comments of a text.
#[derive(Debug)]
pub(super) struct Belonging<'t> {
    lines: Vec<&'t str>,
    pub(super) items: Vec<Item>,
    pub(super) own: Vec<OwnLines>,
    /// Comments behind something in the same line.
    beside: Vec<(Beside, &'t str)>,
}

/// What a comment stands behind: an item by its number, or a marker between documents.
#[derive(Clone, Copy, Debug)]
enum Beside {
    Item(usize),
    Marker(usize),
}

impl<'t> Belonging<'t> {
    pub(super) fn of(text: &'t str, documents: &[Node]) -> Self {
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let mut starts = Vec::with_capacity(lines.len());
        let mut at = 0;
        for line in &lines {
            starts.push(at);
            at += line.len();
        }
        let mut survey =
            ItemCollector { text, starts: &starts, items: Vec::new(), scalars: Vec::new() };
        for (number, document) in documents.iter().enumerate() {
            survey.node(document, number, None, &number.to_string());
        }
        let ItemCollector { items, mut scalars, .. } = survey;
        scalars.sort_unstable();
        let mut found = Self { lines, items, own: Vec::new(), beside: Vec::new() };
        found.comments(text, &starts, &scalars);
        found
    }

    /// Returns the document of an item, and the number of its top-level key or element.
    pub(super) fn top(&self, item: usize) -> Option<(usize, usize)> {
        self.items.get(item).map(|it| (it.document, it.top))
    }

    /// Returns every comment with what it belongs to, for comparing two texts.
    pub(super) fn summary(&self) -> BTreeMap<String, Vec<&'t str>> {
        let mut summary: BTreeMap<String, Vec<&'t str>> = BTreeMap::new();
        let path = |item: usize| self.items.get(item).map_or("", |it| it.path.as_str());
        for own in &self.own {
            let key = match own.home {
                Home::Top(segment) => format!("top {segment}"),
                Home::End(segment) => format!("end {segment}"),
                Home::Above(item) => format!("above {}", path(item)),
                Home::Within(item) => format!("within {}", path(item)),
                Home::Ends(item) => format!("ends {}", path(item)),
            };
            let text = self.lines.get(own.line).map_or("", |it| it.trim());
            summary.entry(key).or_default().push(text);
        }
        for (beside, text) in &self.beside {
            let key = match beside {
                Beside::Item(item) => format!("beside {}", path(*item)),
                Beside::Marker(segment) => format!("marker {segment}"),
            };
            summary.entry(key).or_default().push(text.trim());
        }
        summary
    }

    fn comments(&mut self, text: &'t str, starts: &[usize], scalars: &[(usize, usize)]) {
        // The lines of comments since the last line with content.
        let mut gap: Vec<usize> = Vec::new();
        let mut segment = 0;
        for (number, line) in self.lines.clone().into_iter().enumerate() {
            let start = starts.get(number).copied().unwrap_or(text.len());
            let content = line.trim();
            if content.is_empty() {
                continue;
            }
            let first = start + line.len() - line.trim_start().len();
            let is_comment = content.starts_with('#');
            let is_text = is_in(scalars, first) && (is_comment || is_marker(line));
            if is_comment && !is_text {
                gap.push(number);
                continue;
            }
            let is_marker = is_marker(line) && !is_text;
            self.settle(&gap, segment, (number, start), is_marker);
            gap.clear();
            segment += usize::from(is_marker);
            let Some(at) = comment_behind(line, start, scalars) else { continue };
            let before = self.items.partition_point(|it| it.start < at);
            let beside = match before.checked_sub(1) {
                Some(item) if !is_marker => Beside::Item(item),
                _ => Beside::Marker(segment),
            };
            self.beside.push((beside, text.get(at..line_end(text, at)).unwrap_or_default()));
        }
        self.settle(&gap, segment, (self.lines.len(), text.len()), true);
    }

    /// Notes what the comments of a gap belong to. `next` is the line that ends the gap and its
    /// first byte; `is_end` says that the document ends there.
    fn settle(&mut self, gap: &[usize], segment: usize, next: (usize, usize), is_end: bool) {
        let Some(first) = gap.first().copied() else { return };
        let (next_line, at) = next;
        let following = self.items.partition_point(|it| it.start < at);
        let below = self.items.get(following).filter(|it| !is_end && it.line == next_line);
        let is_top = below.is_some_and(|it| it.top == 0 && it.parent.is_none());
        let previous = following.checked_sub(1).filter(|it| {
            !is_top && self.items.get(*it).is_some_and(|it| self.is_one_document(it, first))
        });
        // The lines of a value, such as a list in brackets, have no items of their own.
        let around = previous.filter(|it| {
            below.is_none() && self.items.get(*it).is_some_and(|it| first < it.last_line)
        });
        let mut above = false;
        let mut homes = Vec::new();
        let touching = if is_top { self.touching(gap, next_line) } else { gap.len() };
        for (number, line) in gap.iter().copied().enumerate() {
            let text = self.lines.get(line).copied().unwrap_or_default();
            let column = text.len() - text.trim_start().len();
            above |= match below {
                None => false,
                Some(_) if comment::is_ignore(text) => true,
                Some(_) if is_top => number >= touching,
                Some(item) => column <= item.column || previous.is_none(),
            };
            homes.push(match (above, around, previous) {
                (true, ..) => Home::Above(following),
                (false, Some(item), _) => Home::Within(item),
                (false, None, None) => Home::Top(segment),
                (false, None, Some(item)) => {
                    self.ended(item, column).map_or(Home::End(segment), Home::Ends)
                }
            });
        }
        self.own.extend(gap.iter().zip(homes).map(|(line, home)| OwnLines { line: *line, home }));
    }

    /// Returns whether no marker stands between an item and a line below it.
    fn is_one_document(&self, item: &Item, line: usize) -> bool {
        let between = self.lines.get(item.last_line + 1..line).unwrap_or_default();
        !between.iter().any(|it| is_marker(it))
    }

    /// Returns from which of some comments on they stand right above a line, and none of them is for the whole file.
    fn touching(&self, comments: &[usize], next: usize) -> usize {
        let is_for_editors = |line: usize| {
            self.lines.get(line).is_some_and(|it| it.contains("yaml-language-server"))
        };
        let from_below = comments.iter().rev().zip((0..next).rev());
        let above = from_below.take_while(|(line, at)| **line == *at && !is_for_editors(**line));
        comments.len() - above.count()
    }

    /// Returns the innermost item with `previous` inside, or that item, that is indented less.
    fn ended(&self, previous: usize, column: usize) -> Option<usize> {
        let mut item = Some(previous);
        while let Some(number) = item {
            let it = self.items.get(number)?;
            if it.column < column {
                return Some(number);
            }
            item = it.parent;
        }
        None
    }
}

/// Returns whether a list or mapping stands over several lines, without brackets.
pub(super) fn is_block(text: &str, node: &Node) -> bool {
    let filled = !node.entries().is_empty() || !node.elements().is_empty();
    let first = text.as_bytes().get(node.span.start.offset as usize);
    filled && !matches!(first, Some(b'[' | b'{' | b'*' | b'&'))
}

fn is_marker(line: &str) -> bool {
    ["---", "..."].iter().any(|mark| {
        line.strip_prefix(mark)
            .is_some_and(|it| it.is_empty() || it.starts_with(char::is_whitespace))
    })
}

fn is_in(stretches: &[(usize, usize)], at: usize) -> bool {
    let before = stretches.partition_point(|(start, _)| *start <= at).checked_sub(1);
    before.and_then(|it| stretches.get(it)).is_some_and(|(_, end)| at < *end)
}

/// Returns the place of the comment in a line, behind something else or not.
fn comment_behind(line: &str, start: usize, scalars: &[(usize, usize)]) -> Option<usize> {
    let bytes = line.as_bytes();
    let begins = |at: usize| {
        at.checked_sub(1).and_then(|it| bytes.get(it)).is_none_or(u8::is_ascii_whitespace)
    };
    let all = line.match_indices('#').map(|(at, _)| at).filter(|at| begins(*at));
    all.map(|at| start + at).find(|at| !is_in(scalars, *at))
}

/// Collects items, and the stretches in which a `#` does not start a comment.
struct ItemCollector<'t> {
    text: &'t str,
    /// Where each line begins.
    starts: &'t [usize],
    items: Vec<Item>,
    scalars: Vec<(usize, usize)>,
}

impl ItemCollector<'_> {
    fn node(&mut self, node: &Node, document: usize, parent: Option<usize>, path: &str) {
        if !is_block(self.text, node) {
            return self.scalars(node);
        }
        for (number, entry) in node.entries().iter().enumerate() {
            self.scalar((entry.key_span.start.offset, entry.key_span.end.offset));
            let path = format!("{path}\u{0}{}", entry.key);
            let start = entry.key_span.start.offset as usize;
            self.part(&entry.value, (document, number, start), parent, &path);
        }
        let mut from = node.span.start.offset as usize;
        for (number, element) in node.elements().iter().enumerate() {
            let dash = token::skip(self.text, from, |_| false);
            let path = format!("{path}\u{0}{number}");
            self.part(element, (document, number, dash), parent, &path);
            from = (element.span.end.offset as usize).max(dash + 1);
        }
    }

    fn part(
        &mut self,
        value: &Node,
        (document, number, start): (usize, usize, usize),
        parent: Option<usize>,
        path: &str,
    ) {
        let end = (value.span.end.offset as usize).max(start);
        let item = Item {
            path: path.to_owned(),
            parent,
            top: parent.and_then(|it| self.items.get(it)).map_or(number, |it| it.top),
            document,
            start,
            line: self.line(start),
            column: start - line_start(self.text, start),
            last_line: self.line(end),
        };
        let number = self.items.len();
        self.items.push(item);
        self.node(value, document, Some(number), path);
    }

    /// Notes the scalars of a value; those of an alias stand elsewhere and are noted there.
    fn scalars(&mut self, node: &Node) {
        let first = self.text.as_bytes().get(node.span.start.offset as usize);
        if first == Some(&b'*') {
            return;
        }
        match &node.content {
            Content::Scalar(_) => self.scalar((node.span.start.offset, node.span.end.offset)),
            Content::Sequence(elements) => elements.iter().for_each(|it| self.scalars(it)),
            Content::Mapping(entries) => {
                for entry in entries {
                    self.scalar((entry.key_span.start.offset, entry.key_span.end.offset));
                    self.scalars(&entry.value);
                }
            }
        }
    }

    fn scalar(&mut self, (start, end): (u32, u32)) {
        let (start, end) = (start as usize, end as usize);
        let has_sign = matches!(self.text.as_bytes().get(start), Some(b'|' | b'>'));
        // A comment may follow the sign that introduces the lines of a text.
        let start = if has_sign { line_end(self.text, start) } else { start };
        if start < end {
            self.scalars.push((start, end));
        }
    }

    fn line(&self, at: usize) -> usize {
        self.starts.partition_point(|it| *it <= at).saturating_sub(1)
    }
}
