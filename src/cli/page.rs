//! How wide text for people may be, and its colours.

use crate::diagnostic::Colour;

/// The narrowest width that text is wrapped at.
const NARROWEST: usize = 20;

/// Red, for what does not work.
pub(super) const RED: &str = "31";

/// Green, for what does.
pub(super) const GREEN: &str = "32";

/// Yellow, for what needs attention.
pub(super) const YELLOW: &str = "33";

/// Bold, for what is to be seen first.
pub(super) const BOLD: &str = "1";

/// Writes text in a colour or style of a terminal.
pub(super) fn paint(colour: Colour, code: &str, text: &str) -> String {
    match colour {
        Colour::Ansi => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
        Colour::Plain => text.to_owned(),
    }
}

/// How wide text for people may be, and its colours.
#[derive(Clone, Copy, Debug)]
pub(super) struct Page {
    /// The characters of a line; none where lines have no end, as in a pipe.
    pub(super) width: Option<usize>,
    pub(super) colour: Colour,
}

/// Text of a table or a list, with the code of its colour.
#[derive(Clone, Debug)]
pub(super) struct Cell {
    pub(super) text: String,
    code: Option<&'static str>,
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self { text, code: None }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl Cell {
    /// Returns the text in a colour.
    pub(super) fn painted(text: impl Into<String>, code: &'static str) -> Self {
        Self { text: text.into(), code: Some(code) }
    }

    /// Returns how many characters it has.
    pub(super) fn width(&self) -> usize {
        self.text.chars().count()
    }
}

impl Page {
    /// Writes a text in the colour of a cell.
    pub(super) fn paint(self, cell: &Cell, text: &str) -> String {
        cell.code.map_or_else(|| text.to_owned(), |code| paint(self.colour, code, text))
    }

    /// Parts a text into lines that fit behind an indentation.
    pub(super) fn wrap(self, text: &str, indentation: usize) -> Vec<String> {
        let Some(width) = self.width else { return vec![text.to_owned()] };
        wrap(text, width.saturating_sub(indentation).max(NARROWEST))
    }

    /// Writes labels with their values, each value under itself where it takes several lines.
    pub(super) fn fields(self, fields: &[(&str, Cell)]) -> String {
        let label = fields.iter().map(|(label, _)| label.chars().count()).max().unwrap_or(0);
        let mut text = String::new();
        for (name, value) in fields {
            for (at, line) in self.wrap(&value.text, label + 2).iter().enumerate() {
                let name = if at == 0 { *name } else { "" };
                let line = format!("{name:<label$}  {}", self.paint(value, line));
                text.push_str(line.trim_end());
                text.push('\n');
            }
        }
        text
    }

    /// Writes rows with their columns under each other; the last column takes several lines where it has to.
    /// Where the columns do not fit beside each other, each row is a list of its cells: nothing is cut.
    pub(super) fn table<const N: usize>(self, head: [&str; N], rows: &[[Cell; N]]) -> String {
        let mut widths = head.map(|it| it.chars().count());
        for row in rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = cell.width().max(*width);
            }
        }
        let before: usize = widths.iter().rev().skip(1).map(|it| it + 2).sum();
        let last = widths.last().copied().unwrap_or(0);
        let is_narrow =
            self.width.is_some_and(|it| before + last.min(NARROWEST) > it && before > 0);
        if is_narrow {
            return self.blocks(head, rows);
        }
        let mut text = String::new();
        let head = head.map(|it| Cell::painted(it, BOLD));
        for row in std::iter::once(&head).chain(rows) {
            self.row(row, &widths, before, &mut text);
        }
        text
    }

    fn row<const N: usize>(
        self,
        row: &[Cell; N],
        widths: &[usize; N],
        before: usize,
        text: &mut String,
    ) {
        let Some((last, cells)) = row.split_last() else { return };
        let mut line = String::new();
        for (cell, width) in cells.iter().zip(widths) {
            line.push_str(&self.paint(cell, &cell.text));
            line.extend(std::iter::repeat_n(' ', width.saturating_sub(cell.width()) + 2));
        }
        for part in self.wrap(&last.text, before) {
            line.push_str(&self.paint(last, &part));
            text.push_str(line.trim_end());
            text.push('\n');
            line = " ".repeat(before);
        }
    }

    fn blocks<const N: usize>(self, head: [&str; N], rows: &[[Cell; N]]) -> String {
        let mut text = String::new();
        for row in rows {
            let Some((first, cells)) = row.split_first() else { continue };
            text.push_str(&self.paint(first, &first.text));
            text.push('\n');
            let labels = head.iter().skip(1).map(|it| format!("  {}", it.to_lowercase()));
            let labels: Vec<String> = labels.collect();
            let shown = labels.iter().map(String::as_str).zip(cells.iter().cloned());
            let shown: Vec<_> = shown.filter(|(_, cell)| !cell.text.is_empty()).collect();
            text.push_str(&self.fields(&shown));
        }
        text
    }
}

/// Parts a text at its blanks; a word that is longer than a line stays whole, so that it can be copied.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut length = 0;
    for word in text.split(' ') {
        let size = word.chars().count();
        if length > 0 && length + 1 + size > width {
            lines.push(std::mem::take(&mut line));
            length = 0;
        }
        if length > 0 {
            line.push(' ');
            length += 1;
        }
        line.push_str(word);
        length += size;
    }
    lines.push(line);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(width: Option<usize>) -> Page {
        Page { width, colour: Colour::Plain }
    }

    fn rows() -> [[Cell; 3]; 2] {
        [
            [
                "web1.example.com".into(),
                "classified".into(),
                "Webservers, Debian, Monitoring".into(),
            ],
            ["db1.example.com".into(), Cell::painted("conflict", RED), "Databases".into()],
        ]
    }

    #[test]
    fn a_table_is_as_wide_as_the_page() {
        let head = ["NODE", "STATE", "GROUPS"];
        insta::assert_snapshot!(page(None).table(head, &rows()), @r"
        NODE              STATE       GROUPS
        web1.example.com  classified  Webservers, Debian, Monitoring
        db1.example.com   conflict    Databases
        ");
        insta::assert_snapshot!(page(Some(52)).table(head, &rows()), @r"
        NODE              STATE       GROUPS
        web1.example.com  classified  Webservers, Debian,
                                      Monitoring
        db1.example.com   conflict    Databases
        ");
        insta::assert_snapshot!(page(Some(40)).table(head, &rows()), @r"
        web1.example.com
          state   classified
          groups  Webservers, Debian, Monitoring
        db1.example.com
          state   conflict
          groups  Databases
        ");
        assert_eq!(page(Some(80)).table(["A"], &[]), "A\n");
    }

    #[test]
    fn fields_are_wrapped_under_themselves_and_words_stay_whole() {
        let fields = [
            ("a", "one two three four five six".into()),
            ("long", "https://git.example.com/groups.git".into()),
        ];
        insta::assert_snapshot!(page(Some(26)).fields(&fields), @r"
        a     one two three four
              five six
        long  https://git.example.com/groups.git
        ");
    }

    #[test]
    fn colours_do_not_move_columns() {
        let page = Page { width: None, colour: Colour::Ansi };
        let text = page.table(["NODE", "STATE", "GROUPS"], &rows());
        let plain =
            text.replace("\u{1b}[31m", "").replace("\u{1b}[1m", "").replace("\u{1b}[0m", "");
        assert_ne!(plain, text);
        assert_eq!(plain, self::page(None).table(["NODE", "STATE", "GROUPS"], &rows()));
    }
}
