//! What a plain scalar means, and whether YAML readers agree on it.
//!
//! The YAML 1.2 core schema decides. What YAML 1.1 readers, above all Ruby's Psych behind Puppet
//! and Hiera, take for something else is refused.

use serde_json::{Number, Value};

/// A plain scalar, resolved.
#[derive(Debug, PartialEq)]
pub(super) enum Resolved {
    /// All readers agree on a string: the scalar as it is.
    Text,
    /// All readers agree on another value.
    Value(Value),
    /// Readers disagree; the text says on what.
    Ambiguous(&'static str),
}

/// The characters that end a line in YAML 1.1 and not in YAML 1.2.
const FOREIGN_BREAKS: [char; 3] = ['\u{85}', '\u{2028}', '\u{2029}'];

/// Resolves a plain scalar.
pub(super) fn resolve(text: &str) -> Resolved {
    let ambiguous = Resolved::Ambiguous;
    let Some(first) = text.bytes().next() else { return Resolved::Value(Value::Null) };
    // All words begin with one of these and are short, and most scalars are neither.
    if text.len() <= 5
        && matches!(
            first.to_ascii_lowercase(),
            b'~' | b'n' | b't' | b'f' | b'y' | b'o' | b'.' | b'+' | b'-'
        )
        && let Some(resolved) = word(text)
    {
        return resolved;
    }
    // Nearly all scalars are ASCII, which takes no time to find out.
    if !text.is_ascii() && text.contains(FOREIGN_BREAKS) {
        return ambiguous("YAML 1.1 ends a line within it");
    }
    let mut characters = text.chars();
    match characters.next() {
        Some(':') if characters.next().is_some() => ambiguous("Ruby reads a symbol"),
        Some('0'..='9' | '+' | '-' | '.') => numeric(text),
        _ => Resolved::Text,
    }
}

/// Resolves the words of the core schema, and those that are words to other readers.
fn word(text: &str) -> Option<Resolved> {
    let is_one_of = |words: &[&str]| words.iter().any(|it| text.eq_ignore_ascii_case(it));
    Some(match text {
        "~" | "null" | "Null" | "NULL" => Resolved::Value(Value::Null),
        "true" | "True" | "TRUE" => Resolved::Value(true.into()),
        "false" | "False" | "FALSE" => Resolved::Value(false.into()),
        _ if is_one_of(&["yes", "no", "on", "off", "true", "false"]) => {
            Resolved::Ambiguous("Ruby reads a boolean")
        }
        _ if is_one_of(&["null"]) => Resolved::Ambiguous("Ruby reads null"),
        _ if is_one_of(&[".inf", "+.inf", "-.inf", ".nan"]) => {
            Resolved::Ambiguous("JSON has no such number")
        }
        _ => return None,
    })
}

/// Resolves what starts like a number.
fn numeric(text: &str) -> Resolved {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let all = |text: &str, wanted: fn(&u8) -> bool| {
        !text.is_empty() && text.bytes().all(|it| wanted(&it))
    };
    if let Some(digits) =
        unsigned.strip_prefix("0x").filter(|it| all(it, |b| b.is_ascii_hexdigit() || separator(*b)))
    {
        return match u128::from_str_radix(digits, 16) {
            Ok(number) if unsigned == text => {
                Resolved::Value(Value::Number(Number::from_string_unchecked(number.to_string())))
            }
            _ => Resolved::Ambiguous("Ruby reads a hexadecimal number"),
        };
    }
    if unsigned.strip_prefix("0o").is_some_and(|it| all(it, |b| (b'0'..b'8').contains(b))) {
        return Resolved::Ambiguous("YAML 1.2 reads an octal number");
    }
    if unsigned
        .strip_prefix("0b")
        .is_some_and(|it| all(it, |b| matches!(b, b'0' | b'1') || separator(*b)))
    {
        return Resolved::Ambiguous("Ruby reads a binary number");
    }
    if is_time(text) {
        return Resolved::Ambiguous("Ruby reads a date or time");
    }
    if is_base_60(unsigned) {
        return Resolved::Ambiguous("Ruby reads a number to the base 60");
    }
    let starts_right = unsigned.starts_with(|it: char| it.is_ascii_digit() || it == '.');
    if unsigned.bytes().any(separator) {
        let plain: String = unsigned.chars().filter(|it| !matches!(it, '_' | ',')).collect();
        return if starts_right && DecimalParts::split(&plain).is_some() {
            Resolved::Ambiguous("Ruby reads a number")
        } else {
            Resolved::Text
        };
    }
    match DecimalParts::split(unsigned) {
        Some(number) if starts_right => number.resolve(text.starts_with('-')),
        _ => Resolved::Text,
    }
}

fn separator(byte: u8) -> bool {
    matches!(byte, b'_' | b',')
}

/// The parts of a decimal number without its sign.
struct DecimalParts<'t> {
    whole: &'t str,
    fraction: Option<&'t str>,
    exponent: Option<&'t str>,
}

impl<'t> DecimalParts<'t> {
    /// Takes a number of the core schema apart.
    fn split(text: &'t str) -> Option<Self> {
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, Some(exponent)),
            None => (text, None),
        };
        let (whole, fraction) = match mantissa.split_once('.') {
            Some((whole, fraction)) => (whole, Some(fraction)),
            None => (mantissa, None),
        };
        let digits = |text: &str| text.bytes().all(|it| it.is_ascii_digit());
        let exponent_digits = exponent.map(|it| it.strip_prefix(['+', '-']).unwrap_or(it));
        let has_digits = !whole.is_empty() || fraction.is_some_and(|it| !it.is_empty());
        (has_digits
            && digits(whole)
            && fraction.is_none_or(digits)
            && exponent_digits.is_none_or(|it| !it.is_empty() && digits(it)))
        .then_some(Self { whole, fraction, exponent })
    }

    fn resolve(&self, negative: bool) -> Resolved {
        let sign = if negative { "-" } else { "" };
        let whole = match self.whole.trim_start_matches('0') {
            "" => "0",
            whole => whole,
        };
        let text = match (self.fraction, self.exponent) {
            (None, None) if self.whole.len() > 1 && self.whole.starts_with('0') => {
                return Resolved::Ambiguous(
                    "YAML 1.1 reads an octal number, YAML 1.2 a decimal one",
                );
            }
            (None, None) => [sign, whole].concat(),
            (None, Some(_)) => {
                return Resolved::Ambiguous("YAML 1.2 reads a number, Ruby a string");
            }
            (Some(_), Some(exponent)) if !exponent.starts_with(['+', '-']) => {
                return Resolved::Ambiguous("YAML 1.2 reads a number, Ruby a string");
            }
            (Some(fraction), exponent) => {
                let fraction = if fraction.is_empty() { "0" } else { fraction };
                let exponent = exponent.map_or(String::new(), |it| format!("e{it}"));
                format!("{sign}{whole}.{fraction}{exponent}")
            }
        };
        // Puppet holds floats as IEEE 754 doubles.
        if self.fraction.is_some() && text.parse::<f64>().is_ok_and(f64::is_infinite) {
            return Resolved::Ambiguous("Ruby reads infinity, which no JSON can say");
        }
        Resolved::Value(Value::Number(Number::from_string_unchecked(text)))
    }
}

/// Returns whether YAML 1.1 reads a number such as `12:30` or `190:20:30.15`.
fn is_base_60(unsigned: &str) -> bool {
    let mut parts = unsigned.split(':');
    let digits = |text: &str| text.bytes().all(|it| it.is_ascii_digit() || it == b'_');
    let first = parts.next().unwrap_or_default();
    if !first.starts_with(|it: char| it.is_ascii_digit()) || !digits(first) {
        return false;
    }
    let rest: Vec<&str> = parts.collect();
    let Some((last, middle)) = rest.split_last() else { return false };
    let (last, fraction) = last.split_once('.').unwrap_or((last, ""));
    let sixty = |text: &str| {
        let length = text.len();
        (1..=2).contains(&length) && digits(text) && (length == 1 || text < "60")
    };
    sixty(last) && digits(fraction) && middle.iter().all(|it| sixty(it))
}

/// Returns whether Ruby reads a date or a time: `2024-01-31`, `2001-12-14 21:59:43.10 -5`.
fn is_time(text: &str) -> bool {
    let text = text.strip_prefix('-').unwrap_or(text);
    let mut rest = text;
    let mut take_digits = |least: usize, most: usize| -> bool {
        let count = rest.bytes().take(most).take_while(u8::is_ascii_digit).count();
        rest = rest.get(count..).unwrap_or_default();
        count >= least
    };
    if !take_digits(4, 4) {
        return false;
    }
    let after_year = text.get(4..).unwrap_or_default();
    let Some((month, day)) = after_year.strip_prefix('-').and_then(|it| it.split_once('-')) else {
        return false;
    };
    let digits = day.bytes().take_while(u8::is_ascii_digit).count();
    let tail = day.get(digits..).unwrap_or_default();
    let one_or_two =
        |text: &str| (1..=2).contains(&text.len()) && text.bytes().all(|it| it.is_ascii_digit());
    let clock = tail.trim_start_matches([' ', '\t', 'T', 't']);
    one_or_two(month)
        && (1..=2).contains(&digits)
        && (tail.is_empty()
            || (clock.len() < tail.len()
                && clock.starts_with(|it: char| it.is_ascii_digit())
                && clock.contains(':')))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::each_row;

    #[test]
    fn what_all_readers_agree_on_is_read() {
        let rows = [
            ("", "null"),
            ("~", "null"),
            ("True", "true"),
            ("FALSE", "false"),
            ("0", "0"),
            ("-5", "-5"),
            ("+5", "5"),
            ("12345678901234567890123", "12345678901234567890123"),
            ("0x1F", "31"),
            ("1.5", "1.5"),
            (".5", "0.5"),
            ("-.5", "-0.5"),
            ("5.", "5.0"),
            ("01.50", "1.50"),
            ("1.5e+3", "1.5e+3"),
            ("6.02E-23", "6.02e-23"),
            ("y", "\"y\""),
            ("n", "\"n\""),
            ("=", "\"=\""),
            (".", "\".\""),
            ("-", "\"-\""),
            ("1.2.3", "\"1.2.3\""),
            ("8.*", "\"8.*\""),
            ("10K", "\"10K\""),
            ("1-2", "\"1-2\""),
            ("5d", "\"5d\""),
            ("192.0.2.1", "\"192.0.2.1\""),
            ("a:b", "\"a:b\""),
            ("12:99", "\"12:99\""),
            ("00:50:56:ab:cd:ef", "\"00:50:56:ab:cd:ef\""),
            ("onward", "\"onward\""),
            ("2024-01", "\"2024-01\""),
            ("0xyz", "\"0xyz\""),
            (":", "\":\""),
            ("-web", "\"-web\""),
            ("1,2,x", "\"1,2,x\""),
        ];
        each_row(rows, |(text, json)| {
            let value: Value = serde_json::from_str(json).unwrap();
            let expected = match value {
                Value::String(value) if value == text => Resolved::Text,
                value => Resolved::Value(value),
            };
            assert_eq!(resolve(text), expected, "{text:?}");
        });
    }

    #[test]
    fn what_readers_disagree_on_is_refused() {
        let rows = [
            "yes",
            "No",
            "ON",
            "off",
            "tRUE",
            "nULL",
            "0644",
            "00",
            "08",
            "-017",
            "0o17",
            "0b11",
            "1_000",
            "1,000",
            "1_0.5",
            "12:30",
            "1:30:45",
            "190:20:30.15",
            "2024-01-31",
            "2024-1-1",
            "2001-12-14t21:59:43.10-05:00",
            "2001-12-14 21:59:43",
            ":foo",
            "::ntp",
            "1e3",
            "1E3",
            "1.5e3",
            ".inf",
            "-.INF",
            ".NaN",
            "-0x1F",
            "0x1_F",
        ];
        each_row(rows, |text| {
            assert!(matches!(resolve(text), Resolved::Ambiguous(_)), "{text:?}");
        });
    }
}
