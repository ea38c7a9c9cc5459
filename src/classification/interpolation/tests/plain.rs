//! A second expander, as plain as can be: character by character, from the table of the documentation.

use serde_json::Value;

use crate::model::Node;

/// What a reference has led to so far.
enum At<'n> {
    Nothing,
    Value(&'n Value),
    Pair(&'n str, &'n Value),
    Key(&'n str),
}

pub(super) fn expand(text: &str, node: &Node) -> String {
    let text: Vec<char> = text.chars().collect();
    let mut out = String::new();
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        if rest.starts_with(&['\\', '$']) {
            out.push('$');
            at += 2;
        } else if rest[0] == '$' {
            let (found, length) = reference(rest, node).unwrap_or_else(|| {
                let length = illegal(rest);
                (rest[..length].iter().collect(), length)
            });
            out.push_str(&found);
            at += length;
        } else {
            out.push(rest[0]);
            at += 1;
        }
    }
    out
}

/// Returns how much of an illegal form is text in which no reference begins.
fn illegal(rest: &[char]) -> usize {
    match rest.get(1) {
        Some('{') => rest.iter().position(|it| *it == '}').map_or(2, |it| it + 1),
        Some('A'..='Z' | 'a'..='z' | '_') => {
            let end = 1 + name(&rest[1..]);
            end + if rest[1].is_ascii_uppercase() { 0 } else { scopes(&rest[end..]) }
        }
        _ => 1 + scopes(&rest[1..]),
    }
}

fn name(rest: &[char]) -> usize {
    rest.iter().take_while(|it| it.is_ascii_alphanumeric() || **it == '_').count()
}

fn scopes(rest: &[char]) -> usize {
    let length = if rest.starts_with(&[':', ':']) { name(&rest[2..]) } else { 0 };
    if length == 0 { 0 } else { 2 + length + scopes(&rest[2 + length..]) }
}

fn reference(rest: &[char], node: &Node) -> Option<(String, usize)> {
    let is_braced = rest.get(1) == Some(&'{');
    let has_sigil = is_braced && rest.get(2) == Some(&'$');
    let start = 1 + usize::from(is_braced) + usize::from(has_sigil);
    let end = start + name(rest.get(start..)?);
    let word: String = rest[start..end].iter().collect();
    let is_name = word.starts_with(|it: char| it.is_ascii_lowercase() || it == '_');
    if !is_name || scopes(&rest[end..]) > 0 || word == "pe_node_groups" {
        return None;
    }
    if !is_braced {
        let found = node.fact.get(&word).map_or(At::Nothing, At::Value);
        return (word != "trusted").then(|| (shown(&found), end));
    }
    let mut at = end;
    let mut keys = Vec::new();
    while rest.get(at) == Some(&'[') {
        let (key, length) = index(&rest[at + 1..])?;
        keys.push(key);
        at += 1 + length;
    }
    if rest.get(at) != Some(&'}') {
        return None;
    }
    let mut found = match word.as_str() {
        "trusted" if has_sigil || keys.is_empty() => return None,
        "trusted" => match keys.remove(0) {
            Ok(first) => node.trusted.get(&first).map_or(At::Nothing, At::Value),
            Err(_) => return None,
        },
        "undef" if !has_sigil => return None,
        word => node.fact.get(word).map_or(At::Nothing, At::Value),
    };
    for key in keys {
        found = match (found, key) {
            (At::Value(Value::Object(map)), Ok(key)) => {
                map.get(&key).map_or(At::Nothing, At::Value)
            }
            (At::Value(Value::Object(map)), Err(index)) => {
                map.iter().nth(index).map_or(At::Nothing, |(key, it)| At::Pair(key, it))
            }
            (At::Value(Value::Array(list)), Err(index)) => {
                list.get(index).map_or(At::Nothing, At::Value)
            }
            (At::Pair(key, _), Err(0)) => At::Key(key),
            (At::Pair(_, value), Err(1)) => At::Value(value),
            _ => At::Nothing,
        };
    }
    Some((shown(&found), at + 1))
}

/// Reads a key or a number up to its bracket.
fn index(rest: &[char]) -> Option<(Result<String, usize>, usize)> {
    let first = *rest.first()?;
    if first == '\'' || first == '"' {
        let length = rest[1..].iter().position(|it| *it == first)?;
        let key: String = rest[1..=length].iter().collect();
        let is_closed = rest.get(length + 2) == Some(&']');
        let is_variable = first == '"' && key.contains('$');
        return (is_closed && !is_variable).then_some((Ok(key), length + 3));
    }
    let length = rest.iter().position(|it| *it == ']')?;
    let key: String = rest[..length].iter().collect();
    let is_odd = |it: char| it.is_whitespace() || "[{}'\"$+*%<>=!?&|(),;".contains(it);
    if key.is_empty() || key == "undef" || key.chars().any(is_odd) {
        return None;
    }
    let is_number = |it: &str| !it.is_empty() && it.chars().all(|it| it.is_ascii_digit());
    if is_number(&key) {
        let number = (Err(key.parse().unwrap_or(usize::MAX)), length + 1);
        return (key == "0" || !key.starts_with('0')).then_some(number);
    }
    let lower = key.to_lowercase();
    let hexadecimal = lower.strip_prefix("0x");
    let is_hexadecimal = hexadecimal.is_some_and(|it| it.chars().all(|it| it.is_ascii_hexdigit()));
    let computes = |sign: char| match key.split_once(sign) {
        Some(("", right)) => sign == '-' && is_number(right),
        Some((left, right)) => is_number(left) && is_number(right),
        None => false,
    };
    let is_regex = key.len() > 2 && key.starts_with('/') && key.ends_with('/');
    let is_key = !is_hexadecimal && !computes('-') && !computes('/') && !is_regex;
    is_key.then_some((Ok(key), length + 1))
}

fn shown(found: &At<'_>) -> String {
    match found {
        At::Nothing | At::Value(Value::Null) => String::new(),
        At::Key(text) => (*text).to_owned(),
        At::Value(Value::String(text)) => text.clone(),
        At::Value(value) => puppet(value),
        At::Pair(key, value) => format!("[{},{}]", puppet(&Value::from(*key)), puppet(value)),
    }
}

fn puppet(value: &Value) -> String {
    match value {
        Value::Null => "undef".to_owned(),
        Value::String(text) => {
            let mut quoted = text.replace('\\', "\\\\").replace('"', "\\\"");
            for (raw, escaped) in [("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t")] {
                quoted = quoted.replace(raw, escaped);
            }
            format!("\"{quoted}\"")
        }
        Value::Array(list) => {
            format!("[{}]", list.iter().map(puppet).collect::<Vec<_>>().join(","))
        }
        Value::Object(map) => {
            let pair = |(key, it): (&String, &Value)| {
                format!("{} => {}", puppet(&key.as_str().into()), puppet(it))
            };
            format!("{{{}}}", map.iter().map(pair).collect::<Vec<_>>().join(","))
        }
        other => other.to_string(),
    }
}
