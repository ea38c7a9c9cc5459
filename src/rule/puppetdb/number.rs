//! Patterns of numbers: `PostgreSQL` compares the numbers of facts, but not those in strings.

use crate::model::{Decimal, Order, Positions};

/// The most digits of a number that a pattern is made for.
const DIGITS: usize = 40;

/// What may stand around a number: what Java trims.
const BLANKS: &str = r"[\u0001-\u0020]*";

/// A fraction of no matter what.
const FRACTION: &str = r"(?:\.[0-9]*)?";

/// Returns a pattern that finds the texts of exactly the numbers that stand so to `number`; none if
/// it has too many digits. Of numbers written with an exponent it finds none.
pub(super) fn pattern(order: Order, number: &Decimal) -> Option<String> {
    let positions = number.positions(DIGITS)?;
    let is_zero = positions.whole.is_empty() && positions.fraction.is_empty();
    let (least, most) = match order {
        Order::Greater | Order::AtLeast => (false, true),
        Order::Less | Order::AtMost => (true, false),
    };
    let above = if positions.negative { any(most) } else { alternatives(order, &positions) };
    let below = if positions.negative || is_zero {
        alternatives(mirrored(order), &positions)
    } else {
        any(least)
    };
    let signs = [(r"\+?", above), ("-", below)];
    let sides: Vec<String> = signs
        .into_iter()
        .filter(|(_, alternatives)| !alternatives.is_empty())
        .map(|(sign, alternatives)| format!(r"{sign}(?=\.?[0-9])0*(?:{})", alternatives.join("|")))
        .collect();
    Some(format!("^{BLANKS}(?:{}){BLANKS}$", sides.join("|")))
}

/// Returns the order of the numbers without their sign when both are negative.
fn mirrored(order: Order) -> Order {
    match order {
        Order::Greater => Order::Less,
        Order::AtLeast => Order::AtMost,
        Order::Less => Order::Greater,
        Order::AtMost => Order::AtLeast,
    }
}

/// Returns what finds every number, or nothing.
fn any(wanted: bool) -> Vec<String> {
    if wanted { vec![format!("[0-9]*{FRACTION}")] } else { Vec::new() }
}

/// Returns what finds the digits, after leading zeros, of numbers that stand so to the digits.
fn alternatives(order: Order, than: &Positions) -> Vec<String> {
    let mut found = match order {
        Order::Greater | Order::AtLeast => greater(than),
        Order::Less | Order::AtMost => less(than),
    };
    if matches!(order, Order::AtLeast | Order::AtMost) {
        let Positions { whole, fraction, .. } = than;
        found.push(match fraction.is_empty() {
            true => format!(r"{whole}(?:\.0*)?"),
            false => format!(r"{whole}\.{fraction}0*"),
        });
    }
    found
}

/// Each digit with what stands before it and how many digits stand after it.
fn digits(text: &str) -> impl Iterator<Item = (&str, u32, usize)> {
    text.char_indices()
        .filter_map(|(at, digit)| Some((text.get(..at)?, digit.to_digit(10)?, text.len() - at - 1)))
}

fn greater(than: &Positions) -> Vec<String> {
    let Positions { whole, fraction, .. } = than;
    let mut found = vec![format!("[1-9][0-9]{{{},}}{FRACTION}", whole.len())];
    for (before, digit, after) in digits(whole).filter(|(_, digit, _)| *digit < 9) {
        found.push(format!("{before}[{}-9][0-9]{{{after}}}{FRACTION}", digit + 1));
    }
    for (before, digit, _) in digits(fraction).filter(|(_, digit, _)| *digit < 9) {
        found.push(format!(r"{whole}\.{before}[{}-9][0-9]*", digit + 1));
    }
    found.push(format!(r"{whole}\.{fraction}[0-9]*[1-9][0-9]*"));
    found
}

fn less(than: &Positions) -> Vec<String> {
    let Positions { whole, fraction, .. } = than;
    let mut found = Vec::new();
    if let Some(shorter) = whole.len().checked_sub(1) {
        found.push(format!("[0-9]{{0,{shorter}}}{FRACTION}"));
    }
    for (before, digit, after) in digits(whole) {
        // A number that begins with a zero is a shorter one.
        let least = u32::from(before.is_empty());
        if digit > least {
            found.push(format!("{before}[{least}-{}][0-9]{{{after}}}{FRACTION}", digit - 1));
        }
    }
    if !fraction.is_empty() {
        found.push(whole.clone());
    }
    for (before, digit, _) in digits(fraction) {
        found.push(match digit {
            0 => format!(r"{whole}\.{before}"),
            _ => format!(r"{whole}\.{before}(?:[0-{}][0-9]*)?", digit - 1),
        });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::java_regex::Pattern;

    const NUMBERS: &[&str] = &[
        "0",
        "-0",
        "+0",
        "00",
        ".0",
        "0.",
        "1",
        "-1",
        "5",
        "05",
        "5.",
        "5.0",
        "+5",
        "-5",
        "4",
        "6",
        "9",
        "10",
        "11",
        "49",
        "50",
        "51",
        "99",
        "100",
        "101",
        "109",
        "110",
        "999",
        "1000",
        "0.1",
        ".1",
        "0.09",
        "0.10",
        "0.11",
        "0.099",
        "0.101",
        "0.2",
        "-0.1",
        "-.1",
        "5.05",
        "5.1",
        "5.04",
        "5.06",
        "5.049",
        "5.0500",
        "5.05001",
        "5.5",
        "-5.05",
        "-5.04",
        "-5.06",
        "12345678901234567890",
        "12345678901234567891",
        "12345678901234567889.9",
        " 7 ",
        "\t8",
        "007.5",
        "1.",
        "109.9",
        "-100",
        "-99.999",
        "-100.001",
        "205",
        "210",
        "209",
        "204.9",
    ];

    /// Java reads these patterns as `PostgreSQL` does.
    #[test]
    fn patterns_find_what_comparing_finds() {
        let orders = [Order::Greater, Order::AtLeast, Order::Less, Order::AtMost];
        for operand in NUMBERS {
            let number = Decimal::parse(operand).unwrap();
            for order in orders {
                let pattern = Pattern::parse(&pattern(order, &number).unwrap()).unwrap();
                for text in NUMBERS {
                    let actual = Decimal::parse(text).unwrap();
                    let expected = match order {
                        Order::Greater => actual > number,
                        Order::AtLeast => actual >= number,
                        Order::Less => actual < number,
                        Order::AtMost => actual <= number,
                    };
                    assert_eq!(
                        pattern.is_found_in(text),
                        Ok(expected),
                        "{text} {order:?} {operand}: {}",
                        pattern.as_str()
                    );
                }
                for text in
                    ["", ".", "-", "+", "5K", "true", "[5]", "--5", "+-5", "5 5", "5,0", "x"]
                {
                    assert_eq!(pattern.is_found_in(text), Ok(false), "{text} {order:?} {operand}");
                }
            }
        }
        assert_eq!(pattern(Order::Less, &Decimal::parse("1e99").unwrap()), None);
    }
}
