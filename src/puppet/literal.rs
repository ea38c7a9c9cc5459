//! Values that code writes down.

use serde_json::{Map, Number, Value};

use super::lex::{Lexeme, Sort};

/// The levels of lists and hashes.
const DEPTH: usize = 32;

/// Returns the value that tokens write down; nothing if it takes more than reading to know it.
pub(super) fn literal(tokens: &[Lexeme<'_>]) -> Option<Value> {
    let mut reader = LiteralReader { tokens, at: 0 };
    let value = reader.value(0)?;
    (reader.at == tokens.len()).then_some(value)
}

struct LiteralReader<'r, 't> {
    tokens: &'r [Lexeme<'t>],
    at: usize,
}

impl<'r, 't> LiteralReader<'r, 't> {
    fn next(&mut self) -> Option<&'r Sort<'t>> {
        let token = self.tokens.get(self.at)?;
        self.at += 1;
        Some(&token.sort)
    }

    fn take(&mut self, mark: char) -> bool {
        let taken = self.tokens.get(self.at).is_some_and(|it| it.sort == Sort::Mark(mark));
        self.at += usize::from(taken);
        taken
    }

    fn value(&mut self, depth: usize) -> Option<Value> {
        if depth > DEPTH {
            return None;
        }
        match self.next()? {
            Sort::Text(text) => text.clone().map(Value::String),
            Sort::Number(number) => self::number(number, ""),
            Sort::Mark('-') => match self.next()? {
                Sort::Number(number) => self::number(number, "-"),
                _ => None,
            },
            Sort::Word("true") => Some(Value::Bool(true)),
            Sort::Word("false") => Some(Value::Bool(false)),
            Sort::Word("undef") => Some(Value::Null),
            Sort::Word(word) => is_bare(word).then(|| Value::from(*word)),
            Sort::Mark('[') => self.list(depth),
            Sort::Mark('{') => self.hash(depth),
            _ => None,
        }
    }

    fn list(&mut self, depth: usize) -> Option<Value> {
        let mut elements = Vec::new();
        while !self.take(']') {
            elements.push(self.value(depth + 1)?);
            if !self.take(',') {
                return self.take(']').then_some(Value::Array(elements));
            }
        }
        Some(Value::Array(elements))
    }

    fn hash(&mut self, depth: usize) -> Option<Value> {
        let mut fields = Map::new();
        while !self.take('}') {
            // JSON has no keys but strings.
            let Value::String(key) = self.value(depth + 1)? else { return None };
            if !(self.take('=') && self.take('>')) {
                return None;
            }
            fields.insert(key, self.value(depth + 1)?);
            if !self.take(',') {
                return self.take('}').then_some(Value::Object(fields));
            }
        }
        Some(Value::Object(fields))
    }
}

/// Returns whether a word stands for itself: not for a call, and no keyword.
fn is_bare(word: &str) -> bool {
    let keywords =
        ["default", "if", "unless", "case", "function", "class", "define", "node", "type"];
    !keywords.contains(&word)
}

/// Reads a number: decimal, hexadecimal after `0x`, octal after `0`.
pub(super) fn number(text: &str, sign: &str) -> Option<Value> {
    let hexadecimal = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let octal = text.strip_prefix('0').filter(|it| it.bytes().all(|it| it.is_ascii_digit()));
    let digits = match (hexadecimal, octal) {
        (Some(digits), _) => u64::from_str_radix(digits, 16).ok()?.to_string(),
        (None, Some(digits)) if !digits.is_empty() => {
            u64::from_str_radix(digits, 8).ok()?.to_string()
        }
        _ => text.to_owned(),
    };
    let number: Number = format!("{sign}{digits}").parse().ok()?;
    Some(Value::Number(number))
}
