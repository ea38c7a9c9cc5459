//! What stands in square brackets behind the name of a fact.

use super::illegal::IllegalReason;
use crate::model::Segment;

/// Reads an index whose first bracket is read already; returns what stands behind its last one.
pub(super) fn read(text: &str) -> Result<(Segment, &str), IllegalReason> {
    let quote = text.chars().next().filter(|it| matches!(it, '\'' | '"'));
    let (segment, behind) = match quote {
        Some(quote) => quoted(text, quote)?,
        None => bare(text)?,
    };
    let behind = behind.strip_prefix(']').ok_or(IllegalReason::Index)?;
    Ok((segment, behind))
}

fn quoted(text: &str, quote: char) -> Result<(Segment, &str), IllegalReason> {
    let inside = text.get(1..).unwrap_or_default();
    let (key, behind) = inside.split_once(quote).ok_or(IllegalReason::Index)?;
    // In Puppet's double quotes it would be a variable.
    if quote == '"' && key.contains('$') {
        return Err(IllegalReason::Variable);
    }
    Ok((Segment::Key(key.into()), behind))
}

fn bare(text: &str) -> Result<(Segment, &str), IllegalReason> {
    let end = text.find(|it: char| it.is_whitespace() || "[]{}'\"$".contains(it));
    let end = end.ok_or(IllegalReason::Index)?;
    let (key, behind) = text.split_at_checked(end).ok_or(IllegalReason::Index)?;
    match behind.as_bytes().first() {
        Some(b'$') => return Err(IllegalReason::Variable),
        Some(b']') if !key.is_empty() => {}
        _ => return Err(IllegalReason::Index),
    }
    Ok((segment(key)?, behind))
}

/// Returns what a bare index means.
fn segment(key: &str) -> Result<Segment, IllegalReason> {
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    if is_digits(key) {
        return match key.strip_prefix('0') {
            Some(behind) if !behind.is_empty() => Err(IllegalReason::Number),
            // No list has so many elements.
            _ => Ok(Segment::Index(key.parse().unwrap_or(u64::MAX))),
        };
    }
    let is_hexadecimal = |digits: &str| digits.bytes().all(|it| it.is_ascii_hexdigit());
    if key.strip_prefix("0x").or(key.strip_prefix("0X")).is_some_and(is_hexadecimal) {
        return Err(IllegalReason::Number);
    }
    let is_between = |sign: char| {
        key.split_once(sign)
            .is_some_and(|(left, right)| (left.is_empty() || is_digits(left)) && is_digits(right))
    };
    let has_operator = key.contains(|it: char| "+*%<>=!?&|(),;".contains(it));
    if has_operator || is_between('-') || (is_between('/') && !key.starts_with('/')) {
        return Err(IllegalReason::Operator);
    }
    let is_regex = key.len() > 2 && key.starts_with('/') && key.ends_with('/');
    match key {
        _ if is_regex => Err(IllegalReason::Regex),
        "undef" => Err(IllegalReason::Index),
        key => Ok(Segment::Key(key.into())),
    }
}
