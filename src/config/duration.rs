//! Durations on the command line, in settings files and in queries.

use std::time::Duration;

use jiff::SignedDuration;

/// The longest duration: times that far away can be computed with.
const LONGEST: Duration = Duration::from_hours(1000 * 365 * 24);

/// Parses a duration such as `30s` or `5m`, of at most 1,000 years.
///
/// # Errors
///
/// Returns what is wrong.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is not a duration such as 30s, 5m, 500ms or 30d");
    // Days differ from 24 hours in calendars alone, which these durations do not follow.
    let days = text.strip_suffix('d').and_then(|it| it.parse::<u32>().ok());
    let parsed = match days {
        Some(days) => Duration::from_hours(24 * u64::from(days)),
        None => {
            let parsed: SignedDuration = text.parse().map_err(|_| wrong())?;
            Duration::try_from(parsed).map_err(|_| wrong())?
        }
    };
    if parsed > LONGEST {
        return Err(format!("`{text}` is too long: 1,000 years (365000d) is the most"));
    }
    Ok(parsed)
}

/// Parses a duration, or `0`.
///
/// # Errors
///
/// Returns what is wrong.
pub fn parse_duration_or_zero(text: &str) -> Result<Duration, String> {
    if text == "0" { Ok(Duration::ZERO) } else { parse_duration(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_needs_no_unit_where_it_is_allowed() {
        assert_eq!(parse_duration_or_zero("0"), Ok(Duration::ZERO));
        assert_eq!(parse_duration_or_zero("24h"), Ok(Duration::from_hours(24)));
        assert!(parse_duration_or_zero("soon").is_err());
        assert!(parse_duration("0").is_err());
    }

    #[test]
    fn a_thousand_years_are_the_most() {
        for (text, expected) in [
            ("365000d", Ok(LONGEST)),
            ("8760000h", Ok(LONGEST)),
            ("365001d", Err(())),
            ("8760000h 1ms", Err(())),
            ("2562047788015215h", Err(())),
            ("4294967295d", Err(())),
            ("4294967296d", Err(())),
            ("-1s", Err(())),
        ] {
            assert_eq!(parse_duration(text).map_err(|_| ()), expected, "{text}");
        }
        let error = parse_duration("4294967295d").unwrap_err();
        assert_eq!(error, "`4294967295d` is too long: 1,000 years (365000d) is the most");
    }
}
