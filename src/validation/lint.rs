//! The mistakes that people make in rules.

mod legacy;
mod structure;

use super::certname;
use super::element::{element, part_of};
use super::file_reader::FileReader;
use crate::diagnostic::Kind;
use crate::document::{Node, Span, quote};
use crate::java_regex::{from_glob, suspicions};
use crate::model::{Comparison, Condition, Path, Segment, Test};
use crate::rule::opens_foreign_quote;
use structure::Structure;

/// Looks for mistakes in a rule that is valid.
pub(super) fn rule(condition: &Condition, node: &Node, reader: &mut FileReader) {
    let array_form = node.as_str().is_none();
    let mut way = Vec::new();
    walk(condition, &mut way, &mut |test, way| {
        let parts = TestParts { whole: node, test: array_form.then(|| element(node, way)) };
        check_path(test, &parts, reader);
        check_operand(test, &parts, reader);
    });
}

/// Calls `visit` for every comparison, with its way through the array form.
fn walk(condition: &Condition, way: &mut Vec<usize>, visit: &mut dyn FnMut(&Test, &[usize])) {
    let mut inside = |term: &Condition, index: usize, way: &mut Vec<usize>| {
        way.push(index);
        walk(term, way, visit);
        way.pop();
    };
    match condition {
        Condition::And(terms) | Condition::Or(terms) => {
            for (index, term) in terms.iter().enumerate() {
                inside(term, index + 1, way);
            }
        }
        Condition::Not(inner) => inside(inner, 1, way),
        Condition::Test(test) => visit(test, way),
    }
}

/// Where the parts of a comparison are written.
struct TestParts<'n> {
    whole: &'n Node,
    /// The comparison in the array form; `None` in the console's notation.
    test: Option<&'n Node>,
}

impl<'n> TestParts<'n> {
    fn part(&self, index: usize) -> &'n Node {
        self.test.and_then(|test| test.elements().get(index)).unwrap_or(self.whole)
    }

    fn path(&self) -> Span {
        self.part(1).span
    }

    /// Writes a path in the notation of the rule.
    fn show(&self, root: &str, path: Vec<Segment>) -> String {
        let path: Vec<Segment> = std::iter::once(Segment::Key(root.into())).chain(path).collect();
        match self.test {
            Some(_) => {
                let part = |it: &Segment| match it {
                    Segment::Key(key) => format!("{:?}", key.as_ref()),
                    Segment::Index(index) => index.to_string(),
                };
                format!("[{}]", path.iter().map(part).collect::<Vec<_>>().join(", "))
            }
            None => format!("`{}`", Path::Segments(path.into())),
        }
    }

    fn operand(&self) -> &'n Node {
        self.part(2)
    }
}

fn check_path(test: &Test, parts: &TestParts<'_>, reader: &mut FileReader) {
    let mut warn = |message: String, help: String| {
        reader.add(Kind::SuspiciousRule, parts.path(), message).help = Some(help);
    };
    let segments = match &test.path {
        Path::Name => return,
        Path::Bare(text) => {
            return warn(format!("nothing is ever found at the path `{text}`"), bare_help(text));
        }
        Path::Segments(segments) => segments,
    };
    let keys: Vec<&str> = segments
        .iter()
        .map(|segment| match segment {
            Segment::Key(key) => key.as_ref(),
            Segment::Index(_) => "",
        })
        .collect();
    if let [_, first, ..] = keys.as_slice()
        && (first.starts_with('$') || first.starts_with("%{"))
    {
        let message = match first.starts_with('$') {
            true => "a path does not start with `$`: a rule has no variables",
            false => "a path does not start with `%{`: a rule has no interpolation",
        };
        let message = message.to_owned();
        return warn(message, format!("write {}", without_sign(segments, first, parts)));
    }
    match keys.as_slice() {
        ["name"] => {}
        ["name", ..] => {
            warn(
                "nothing is ever found below `name`".to_owned(),
                "the certname is `name`".to_owned(),
            );
        }
        [root] => {
            let help = format!("name one of them: [\"{root}\", \"…\"]");
            warn(format!("the path leads to all of `{root}`, which nothing compares with"), help);
        }
        [root @ ("fact" | "facts"), fact, rest @ ..] => {
            if *root == "facts" {
                let help = "write `fact`".to_owned();
                warn("Puppet Enterprise never finds anything below `facts`".to_owned(), help);
            }
            check_fact(test, fact, rest, segments, parts, &mut warn);
        }
        ["trusted", field, rest @ ..] => {
            check_trusted(test, field, rest, segments, parts, &mut warn);
        }
        _ => {}
    }
}

/// Returns what to write for a path that is a bare word.
fn bare_help(text: &str) -> String {
    if matches!(text, "clientcert" | "nodename" | "certname" | "fqdn") {
        return "the certname is `name`".to_owned();
    }
    let keys: Vec<String> = text.split('.').map(|it| format!("\"{it}\"")).collect();
    format!("for a fact write [\"fact\", {}]", keys.join(", "))
}

/// Warns of a fact with dots in its name, one that Puppet 8 no longer has, or a whole mapping or list.
fn check_fact(
    test: &Test,
    fact: &str,
    rest: &[&str],
    segments: &[Segment],
    parts: &TestParts<'_>,
    warn: &mut dyn FnMut(String, String),
) {
    if let Some(split) = legacy::dotted(fact) {
        let help = format!("write {}", parts.show("fact", split));
        warn(format!("the fact `{fact}` has dots in its name; is a path meant?"), help);
    } else if let Some(modern) = legacy::replacement(fact).filter(|_| rest.is_empty()) {
        let note = modern.note.map_or(String::new(), |note| format!(", {note}"));
        let help = format!("write {}{note}", parts.show("fact", modern.path));
        warn(format!("the legacy fact `{fact}` is gone by default since Puppet 8"), help);
    } else if fact == "certname" && rest.is_empty() {
        warn("Puppet has no fact `certname`".to_owned(), "the certname is `name`".to_owned());
    } else if let ("extensions", [name]) = (fact, rest)
        && name.starts_with("pp_")
    {
        let help = format!("write {}", parts.show("trusted", extension(name)));
        warn(format!("Puppet has no fact `extensions`: `{name}` is in trusted data"), help);
    } else {
        check_structure(test, "fact", segments, parts, warn);
    }
}

/// Warns of a field of trusted data with dots in its name, an extension that is written as a field, or a whole mapping
/// or list.
fn check_trusted(
    test: &Test,
    field: &str,
    rest: &[&str],
    segments: &[Segment],
    parts: &TestParts<'_>,
    warn: &mut dyn FnMut(String, String),
) {
    if field.starts_with("pp_") && rest.is_empty() {
        let help = format!("write {}", parts.show("trusted", extension(field)));
        warn(format!("trusted data has no field `{field}`: it is an extension"), help);
    } else if let Some(split) = legacy::dotted(field) {
        let help = format!("write {}", parts.show("trusted", split));
        warn(format!("the trusted field `{field}` has dots in its name; is a path meant?"), help);
    } else {
        check_structure(test, "trusted", segments, parts, warn);
    }
}

/// Returns where trusted data has an extension.
fn extension(name: &str) -> Vec<Segment> {
    ["extensions", name].map(|it| Segment::Key(it.into())).into()
}

/// Writes a path of Puppet or Hiera, such as `$trusted.certname`, as one of a rule.
fn without_sign(segments: &[Segment], first: &str, parts: &TestParts<'_>) -> String {
    let stripped = first.trim_start_matches(['$', '%', '{']).trim_start_matches(':');
    let key = |it: &Segment| match it {
        Segment::Key(key) => Segment::Key(key.trim_end_matches('}').into()),
        index @ Segment::Index(_) => index.clone(),
    };
    let rest: Vec<Segment> = segments.iter().skip(2).map(key).collect();
    let own = Segment::Key(stripped.trim_end_matches('}').into());
    match stripped {
        "trusted" => parts.show("trusted", rest),
        "facts" | "fact" if !rest.is_empty() => parts.show("fact", rest),
        _ => parts.show("fact", std::iter::once(own).chain(rest).collect()),
    }
}

/// Warns of comparisons with a whole mapping, which never hold, and with a whole list, of which only
/// `<:` can.
fn check_structure(
    test: &Test,
    root: &str,
    segments: &[Segment],
    parts: &TestParts<'_>,
    warn: &mut dyn FnMut(String, String),
) {
    let Some(path) = segments.get(1..) else { return };
    let at = || Path::Segments(segments.into());
    match structure::structure(root, path) {
        Some(Structure::Mapping(key)) => {
            let field = path.iter().cloned().chain([Segment::Key(key.into())]).collect();
            let help = format!("compare one of its values, such as {}", parts.show(root, field));
            let at = at();
            warn(format!("`{at}` is a mapping, and nothing compares with a whole mapping"), help);
        }
        Some(Structure::List) if !matches!(test.comparison, Comparison::Contains(_)) => {
            let operator = test.comparison.operator();
            let help = "write `<:` to ask for an element, or the index of one".to_owned();
            let at = at();
            warn(format!("`{at}` is a list, with which `{operator}` never holds"), help);
        }
        _ => {}
    }
}

/// Returns whether a path leads to the certname.
fn is_certname(path: &Path) -> bool {
    let keys = |it: &Segment, key: &str| matches!(it, Segment::Key(it) if it.as_ref() == key);
    match path {
        Path::Name => true,
        Path::Bare(_) => false,
        Path::Segments(segments) => match segments.as_ref() {
            [only] => keys(only, "name"),
            [root, field] => keys(root, "trusted") && keys(field, "certname"),
            _ => false,
        },
    }
}

/// Returns the regular expression that is meant by an operand of `=`. What no certname has may stand in other values.
fn meant_pattern(path: &Path, operand: &str) -> Option<String> {
    let glob = from_glob(operand);
    match is_certname(path) {
        true => glob.or_else(|| certname::is_pattern(operand).then(|| operand.to_owned())),
        false => glob.filter(|_| operand.contains('*')),
    }
}

fn check_operand(test: &Test, parts: &TestParts<'_>, reader: &mut FileReader) {
    let operand = test.comparison.operand();
    if let Some(inside) = opens_foreign_quote(operand) {
        let message = format!("the quotes of `{operand}` are letters of the value here");
        let help = format!("write it in straight quotes: {}", quote(inside));
        reader.add(Kind::SuspiciousRule, parts.operand().span, message).help = Some(help);
    }
    let is_arrow = |rule: &str| operand.starts_with('>') && rule.contains(&format!("={operand}"));
    if parts.test.is_none() && parts.whole.as_str().is_some_and(is_arrow) {
        let message = format!("`=>` is not an operator: this asks for the text `{operand}`");
        let help = "at least is `>=`; to ask for the text, put it in quotes".to_owned();
        reader.add(Kind::SuspiciousRule, parts.operand().span, message).help = Some(help);
    }
    match &test.comparison {
        comparison if comparison.lacks_number() => {
            let operand = comparison.operand();
            let message = format!("`{operand}` is not a number, so the comparison is never true");
            let help = "numbers are decimal, without unit: 1024, 0.5, 1e3".to_owned();
            reader.add(Kind::SuspiciousValue, parts.operand().span, message).help = Some(help);
        }
        Comparison::Finds(pattern) => {
            for found in suspicions(pattern.as_str()) {
                let span = match parts.test {
                    Some(_) => {
                        let range = found.range;
                        part_of(parts.operand(), reader.content(), range.start, range.end)
                    }
                    None => parts.operand().span,
                };
                reader.add(Kind::SuspiciousRegex, span, found.message).help = Some(found.help);
            }
        }
        Comparison::Equals(text) => {
            if is_certname(&test.path) && opens_foreign_quote(operand).is_none() {
                certname::check(
                    text,
                    certname::CertnameRole::Operand,
                    parts.operand().span,
                    reader,
                );
            }
            if opens_foreign_quote(operand).is_none()
                && let Some(pattern) = meant_pattern(&test.path, text)
            {
                let message = format!("`=` compares the whole text, so `{text}` is not a pattern");
                let help = format!("write `~` with the regular expression `{pattern}`");
                reader.add(Kind::SuspiciousRule, parts.operand().span, message).help = Some(help);
            }
        }
        _ => {}
    }
}
