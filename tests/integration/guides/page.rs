//! The commands of a page.

use std::sync::LazyLock;

/// A piece of a page, in order.
pub(crate) enum Part {
    /// Text, and blocks that are no commands.
    Text(String),
    /// A block of commands to paste.
    Run(Block),
    /// What the block before it prints.
    Output(String),
}

/// A block of commands.
pub(crate) struct Block {
    /// Its lines with the fences, as they stand in the page.
    pub(crate) text: String,
    /// What a shell reads.
    pub(crate) code: String,
    /// What becomes of it.
    pub(crate) fate: Fate,
}

/// What becomes of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Every command must succeed.
    Succeeds,
    /// `<!-- exits N: why -->`: its last command ends with this status.
    Exits(i32),
    /// `<!-- not run: why -->`: it cannot be run in a test.
    NotRun(String),
    /// `<!-- given: command -->`: what the reader has already, which the page shows nowhere.
    Given,
}

/// Languages of blocks that would be commands or output, were they written as pages write them.
const NEARLY: [&str; 5] = ["", "console", "bash", "shell", "shell-session"];

/// Cuts a page at its blocks.
pub(crate) fn parts(page: &str) -> Result<Vec<Part>, String> {
    let mut parts = Vec::new();
    let mut fate = None;
    let mut may_print = false;
    let mut lines = page.split_inclusive('\n');
    while let Some(line) = lines.next() {
        let trimmed = line.trim();
        if let Some(comment) = trimmed.strip_prefix("<!-- ").and_then(|it| it.strip_suffix(" -->"))
        {
            match marked(comment)? {
                Some(Fate::Given) => {
                    let code = comment.split_once(": ").unwrap_or_default().1.to_owned();
                    parts.push(Part::Run(Block { text: line.to_owned(), code, fate: Fate::Given }));
                    continue;
                }
                Some(found) => fate = Some(found),
                None => {}
            }
        }
        if line.starts_with('#') {
            may_print = false;
        }
        let fence: String = trimmed.chars().take_while(|it| *it == '`').collect();
        if fence.len() < 3 {
            if fate.is_some() && !trimmed.is_empty() && !trimmed.starts_with("<!--") {
                return Err(format!("a mark without a block before: {trimmed}"));
            }
            parts.push(Part::Text(line.to_owned()));
            continue;
        }
        let indentation = line.len() - line.trim_start().len();
        let language = trimmed.trim_start_matches('`');
        let (mut text, mut code) = (line.to_owned(), String::new());
        loop {
            let Some(line) = lines.next() else {
                return Err(format!("a block that never ends: {text}"));
            };
            text += line;
            if line.trim() == fence {
                break;
            }
            code += line.get(indentation..).unwrap_or("\n");
        }
        match language {
            "sh" => {
                let fate = fate.take().unwrap_or(Fate::Succeeds);
                can_be_pasted(&code)?;
                may_print = !matches!(fate, Fate::NotRun(_));
                parts.push(Part::Run(Block { text, code, fate }));
            }
            "text" if may_print => {
                may_print = false;
                parts.push(Part::Output(text));
            }
            it if NEARLY.contains(&it) => {
                return Err(format!("commands are in blocks of `sh`, output of `text`: {text}"));
            }
            _ => parts.push(Part::Text(text)),
        }
    }
    Ok(parts)
}

/// Reads a comment that says what becomes of the next block.
fn marked(comment: &str) -> Result<Option<Fate>, String> {
    let Some((mark, why)) = comment.split_once(": ") else { return Ok(None) };
    match mark.split_once(' ') {
        _ if mark == "given" => Ok(Some(Fate::Given)),
        _ if mark == "not run" => Ok(Some(Fate::NotRun(why.to_owned()))),
        Some(("exits", status)) => {
            let status = status.parse().map_err(|_| format!("`{mark}` names no status"))?;
            Ok(Some(Fate::Exits(status)))
        }
        _ => Ok(None),
    }
}

/// Refuses what cannot be pasted into a terminal. An interactive zsh takes `#` for an argument.
pub(crate) fn can_be_pasted(code: &str) -> Result<(), String> {
    let prompt = |it: &&str| it.starts_with("$ ") || it.starts_with("# ") && it.contains("$ ");
    if let Some(line) = code.lines().find(prompt) {
        return Err(format!("a prompt cannot be pasted: {line}"));
    }
    let comment = |it: &&str| it.starts_with("# ") || it.contains(" # ");
    if let Some(line) = code.lines().find(comment) {
        return Err(format!("a comment cannot be pasted into zsh, say it in the text: {line}"));
    }
    Ok(())
}

/// Returns whether a block printed what the page shows, where a line `...` matches any lines, and an age any
/// other.
pub(crate) fn is_as_shown(shown: &str, printed: &str) -> bool {
    let (shown, printed) = (ageless(shown), ageless(printed));
    fits(&shown.lines().collect::<Vec<_>>(), &printed.lines().collect::<Vec<_>>())
}

/// Replaces each age, such as `3 d ago` or `just now`, with the blanks before it.
fn ageless(text: &str) -> String {
    static AGE: LazyLock<regex::Regex> =
        LazyLock::new(|| regex::Regex::new(r" +(\d+ (s|min|h|d) ago|just now)").unwrap());
    AGE.replace_all(text, " N d ago").into_owned()
}

fn fits(shown: &[&str], printed: &[&str]) -> bool {
    match (shown, printed) {
        ([], []) => true,
        (["...", rest @ ..], _) => (0..=printed.len())
            .any(|skipped| printed.get(skipped..).is_some_and(|it| fits(rest, it))),
        ([first, shown @ ..], [line, printed @ ..]) => first == line && fits(shown, printed),
        _ => false,
    }
}

#[test]
fn pages_are_cut_at_their_blocks() {
    let page = "# A\n\n```sh\nclade validate\n```\n\nIt says:\n\n```text\nfine\n```\n\n<!-- exits 1: it is wrong -->\n\n   ```sh\n   false\n   ```\n<!-- not run: needs a forge -->\n```sh\ngit push\n```\n\n```text\nnot its output\n```\n<!-- given: cd groups -->\n";
    let seen: Vec<String> = parts(page)
        .unwrap()
        .iter()
        .filter_map(|part| match part {
            Part::Text(_) => None,
            Part::Run(it) => Some(format!("{:?} {}", it.fate, it.code.trim_end())),
            Part::Output(it) => Some(it.clone()),
        })
        .collect();
    let expected = [
        "Succeeds clade validate",
        "```text\nfine\n```\n",
        "Exits(1) false",
        "NotRun(\"needs a forge\") git push",
        "Given cd groups",
    ];
    assert_eq!(seen, expected);
    let whole: String = parts(page)
        .unwrap()
        .iter()
        .map(|part| match part {
            Part::Text(it) | Part::Output(it) => it.as_str(),
            Part::Run(it) => it.text.as_str(),
        })
        .collect();
    assert_eq!(whole, page, "nothing of a page is lost");
    for wrong in [
        "```console\nx\n```\n",
        "```\nx\n```\n",
        "```sh\n$ x\n```\n",
        "```sh\nx    # y\n```\n",
        "```sh\n",
        "<!-- exits x: y -->\n",
    ] {
        assert!(parts(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn dots_stand_for_any_lines() {
    for (shown, printed, fit) in [
        ("a\n", "a\n", true),
        ("a\n", "a\nb\n", false),
        ("a\n...\nc\n", "a\nc\n", true),
        ("...\nb\n", "a\nb\nb\n", true),
        ("a\n...\n", "a\nb\nc\n", true),
        ("a\n...\nd\n", "a\nb\nc\n", false),
    ] {
        assert_eq!(is_as_shown(shown, printed), fit, "{shown:?} {printed:?}");
    }
}
