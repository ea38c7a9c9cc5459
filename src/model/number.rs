//! Exact decimal numbers.

use std::cmp::Ordering;

/// A decimal number of any size and precision, as rules compare it.
///
/// ```
/// use clade::Decimal;
///
/// let number = |text| Decimal::parse(text);
/// assert!(number("0.1") == number(".10"));
/// assert!(number(" 9007199254740993 ") > number("9007199254740992.0"));
/// assert!(number("1e400") > number("1e399"));
/// assert!(number("0x10").is_none() && number("5d").is_none() && number("NaN").is_none());
/// ```
#[derive(Clone, Debug)]
pub struct Decimal {
    negative: bool,
    /// The digits without leading and trailing zeros; none for zero.
    digits: Box<[u8]>,
    /// The number is 0.`digits` × 10^`exponent`.
    exponent: i64,
}

/// A number as it is written without an exponent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Positions {
    pub(crate) negative: bool,
    /// The digits before the point, without leading zeros.
    pub(crate) whole: String,
    /// The digits after the point, without trailing zeros.
    pub(crate) fraction: String,
}

impl Decimal {
    /// Reads a decimal integer or float, with blanks around it allowed; `None` if the text is none.
    pub fn parse(text: &str) -> Option<Self> {
        // Java trims everything up to and including the space.
        let text = text.trim_matches(|c: char| c <= ' ');
        let (negative, text) = match text.as_bytes().first()? {
            b'-' => (true, text.get(1..)?),
            b'+' => (false, text.get(1..)?),
            _ => (false, text),
        };
        let (mantissa, exponent) = match text.find(['e', 'E']) {
            Some(at) => (text.get(..at)?, parse_exponent(text.get(at + 1..)?)?),
            None => (text, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let digits: Vec<u8> = whole.bytes().chain(fraction.bytes()).collect();
        if !digits.iter().all(u8::is_ascii_digit) {
            return None;
        }
        let leading = digits.iter().take_while(|digit| **digit == b'0').count();
        let trailing = digits.iter().rev().take_while(|digit| **digit == b'0').count();
        let significant =
            digits.get(leading..digits.len() - trailing.min(digits.len() - leading))?;
        if significant.is_empty() {
            return Some(Self { negative: false, digits: Box::default(), exponent: 0 });
        }
        let shift = i64::try_from(whole.len()).ok()? - i64::try_from(leading).ok()?;
        let exponent = exponent.saturating_add(shift);
        Some(Self { negative, digits: significant.into(), exponent })
    }

    /// Returns the sign and the digits before and after the point, without zeros at either end;
    /// `None` if there are more than `most`.
    pub(crate) fn positions(&self, most: usize) -> Option<Positions> {
        let digits = self.digits.len();
        let before = usize::try_from(self.exponent.max(0)).ok()?;
        let zeros = usize::try_from(self.exponent.min(0).checked_neg()?).ok()?;
        if before.max(digits).checked_add(zeros)? > most {
            return None;
        }
        let mut whole: String = self.digits.iter().take(before).map(|it| char::from(*it)).collect();
        whole.extend(std::iter::repeat_n('0', before.saturating_sub(digits)));
        let mut fraction = "0".repeat(zeros);
        fraction.extend(self.digits.iter().skip(before).map(|it| char::from(*it)));
        Some(Positions { negative: self.negative, whole, fraction })
    }

    fn magnitude(&self, other: &Self) -> Ordering {
        match (self.digits.is_empty(), other.digits.is_empty()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            (false, false) => {
                self.exponent.cmp(&other.exponent).then_with(|| self.digits.cmp(&other.digits))
            }
        }
    }
}

/// Reads an exponent; one beyond any use saturates.
fn parse_exponent(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let limit = i64::MAX / 4;
    let magnitude = digits.parse().map_or(limit, |value: i64| value.min(limit));
    Some(if text.starts_with('-') { -magnitude } else { magnitude })
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.negative, other.negative) {
            (false, true) => Ordering::Greater,
            (true, false) => Ordering::Less,
            (false, false) => self.magnitude(other),
            (true, true) => other.magnitude(self),
        }
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Decimal {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Decimal {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::each_row;

    #[test]
    fn orders_numbers_exactly() {
        let rows = [
            ("5", "5.0", Ordering::Equal),
            ("05", "+5", Ordering::Equal),
            ("0", "-0.0e5", Ordering::Equal),
            ("5.", ".5e1", Ordering::Equal),
            ("2147483648", "2147483649", Ordering::Less),
            ("16777216.0", "16777217.0", Ordering::Less),
            ("-5", "-4", Ordering::Less),
            ("-5", "4", Ordering::Less),
            ("0.1", "0.10000000000000000555", Ordering::Less),
            ("1e-5", "0.00001", Ordering::Equal),
            ("12", "2", Ordering::Greater),
            ("100", "99.99", Ordering::Greater),
            ("1e99999999999999999999", "1e5", Ordering::Greater),
            ("1e-99999999999999999999", "0", Ordering::Greater),
            ("\t5\n", "5", Ordering::Equal),
            ("1000", "1e3", Ordering::Equal),
        ];
        each_row(rows, |(left, right, expected)| {
            let (left_number, right_number) = (Decimal::parse(left), Decimal::parse(right));
            assert_eq!(
                left_number.unwrap().cmp(&right_number.unwrap()),
                expected,
                "{left} {right}"
            );
        });
    }

    #[test]
    fn numbers_are_written_without_exponents() {
        for (text, most, expected) in [
            ("-12.50", 9, Some((true, "12", "5"))),
            ("0", 0, Some((false, "", ""))),
            ("1e3", 9, Some((false, "1000", ""))),
            ("1.5e-3", 9, Some((false, "", "0015"))),
            ("1e9", 9, None),
            ("1e-10", 9, None),
            ("1234567890", 9, None),
            ("1e99999999999999999999", 9, None),
            ("1e-99999999999999999999", 9, None),
        ] {
            let positions = Decimal::parse(text).unwrap().positions(most);
            let found = positions.as_ref().map(|it| (it.negative, &*it.whole, &*it.fraction));
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn rejects_what_is_not_a_decimal_number() {
        let rows = [
            "", " ", "0x10", "0b11", "1/2", "5L", "5d", "5f", "inf", "NaN", "Infinity", "1_000",
            "1,000", "1 000", "1.0.0", "10K", ".", "-", "+-5", "e5", "1e", "1e+", "٥", "--5",
            "- 5",
        ];
        each_row(rows, |text| {
            assert_eq!(Decimal::parse(text), None, "{text:?}");
        });
    }
}
