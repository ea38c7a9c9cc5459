//! Durations on the command line, in settings files and in queries.

use std::time::Duration;

use jiff::SignedDuration;

/// Parses a duration such as `30s` or `5m`.
///
/// # Errors
///
/// Returns what is wrong.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is not a duration such as 30s, 5m, 500ms or 30d");
    // Days differ from 24 hours in calendars alone, which these durations do not follow.
    let days = text.strip_suffix('d').and_then(|it| it.parse::<u32>().ok());
    if let Some(days) = days {
        return Ok(Duration::from_hours(24 * u64::from(days)));
    }
    let parsed: SignedDuration = text.parse().map_err(|_| wrong())?;
    Duration::try_from(parsed).map_err(|_| wrong())
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
}
