//! A pattern of the numbers between two others, to find one that other patterns want as well.

/// How many digits more than its bound a number may have.
const MORE_DIGITS: usize = 8;

/// Returns a pattern that is found in whole numbers from one to another, inclusive, and in those with up to four digits
/// behind a point.
pub(super) fn numbers_between(low: Option<i128>, high: Option<i128>) -> String {
    let is_below_zero = |it: i128| it < 0;
    let mut parts = Vec::new();
    if !high.is_some_and(is_below_zero) {
        let least = low.filter(|it| !is_below_zero(*it)).map_or(0, i128::unsigned_abs);
        parts.extend(magnitudes(least, high.map(i128::unsigned_abs)));
    }
    if low.is_none_or(is_below_zero) {
        let least = high.filter(|it| is_below_zero(*it)).map_or(0, i128::unsigned_abs);
        let all = magnitudes(least, low.map(i128::unsigned_abs));
        parts.extend(all.into_iter().map(|it| format!("-{it}")));
    }
    format!("^(?:{})(?:\\.[0-9]{{1,4}})?$", parts.join("|"))
}

/// Returns patterns of the numbers from one to another; one for each count of digits.
fn magnitudes(low: u128, high: Option<u128>) -> Vec<String> {
    let mut parts = Vec::new();
    let mut from = low;
    while high.is_none_or(|it| from <= it) {
        let first = from.to_string();
        let digits = first.len();
        let all = "9".repeat(digits);
        let top = all.parse().ok().filter(|it| high.is_none_or(|high| *it <= high));
        let last = top.or(high).map_or(all, |it: u128| it.to_string());
        parts.push(of_digits(first.as_bytes(), last.as_bytes()));
        if high.is_none() {
            parts.push(format!("[1-9][0-9]{{{digits},{}}}", digits + MORE_DIGITS));
            break;
        }
        let Some(next) = top.and_then(|it| it.checked_add(1)) else { break };
        from = next;
    }
    parts
}

/// Returns a pattern of the numbers between two of as many digits.
fn of_digits(low: &[u8], high: &[u8]) -> String {
    let (Some((first, rest)), Some((last, ends))) = (low.split_first(), high.split_first()) else {
        return String::new();
    };
    let any = |count: usize| if count == 0 { String::new() } else { format!("[0-9]{{{count}}}") };
    if low.iter().all(|it| *it == b'0') && high.iter().all(|it| *it == b'9') {
        return any(low.len());
    }
    if first == last {
        return format!("{}{}", char::from(*first), of_digits(rest, ends));
    }
    let (nines, zeros) = (vec![b'9'; rest.len()], vec![b'0'; rest.len()]);
    let mut parts = vec![format!("{}{}", char::from(*first), of_digits(rest, &nines))];
    if first + 1 < *last {
        let between = (char::from(first + 1), char::from(last - 1));
        parts.push(format!("[{}-{}]{}", between.0, between.1, any(rest.len())));
    }
    parts.push(format!("{}{}", char::from(*last), of_digits(&zeros, ends)));
    format!("(?:{})", parts.join("|"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::java_regex::Pattern;

    const BOUNDS: [Option<i128>; 8] =
        [None, Some(-120), Some(-7), Some(0), Some(5), Some(19), Some(100), Some(345)];

    /// Numbers around the bounds and where another digit begins.
    fn numbers() -> impl Iterator<Item = i128> {
        let places = BOUNDS.into_iter().flatten().chain([-1000, -100, -10, 10, 50, 1000, 12_345]);
        places.flat_map(|it| [it - 1, it, it + 1])
    }

    #[test]
    fn exactly_the_numbers_between_two_are_found() {
        for low in BOUNDS {
            for high in BOUNDS {
                if low.zip(high).is_some_and(|(low, high)| low > high) {
                    continue;
                }
                let pattern = Pattern::parse(&numbers_between(low, high)).unwrap();
                for number in numbers() {
                    let is_between =
                        low.is_none_or(|it| it <= number) && high.is_none_or(|it| number <= it);
                    let is_found = pattern.is_found_in(&number.to_string()).unwrap();
                    assert_eq!(is_found, is_between, "{number} of {low:?} to {high:?}");
                }
            }
        }
        let most = numbers_between(Some(i128::MIN), Some(i128::MAX));
        assert!(Pattern::parse(&most).unwrap().is_found_in("-1234567.25").unwrap());
    }
}
