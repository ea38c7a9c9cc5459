//! How long ago something was, for people.

use jiff::Timestamp;

/// Writes how long ago a time was: `3 min ago`. The clock of a daemon may be ahead of ours.
pub fn age(then: Timestamp, now: Timestamp) -> String {
    match now.as_second().saturating_sub(then.as_second()) {
        ..=-60 => format!("at {then}, ahead of the clock here"),
        -59..=0 => "just now".to_owned(),
        seconds => format!("{} ago", span(seconds)),
    }
}

/// Uses the smaller unit below two of the larger: `90 s`, then `2 min`.
fn span(seconds: i64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::age;

    #[test]
    fn ages_are_rounded_down_to_one_unit() {
        let now: Timestamp = "2026-11-22T12:00:00Z".parse().unwrap();
        for (then, expected) in [
            ("2026-11-22T12:00:00Z", "just now"),
            ("2026-11-22T12:00:59Z", "just now"),
            ("2026-11-22T12:01:00Z", "at 2026-11-22T12:01:00Z, ahead of the clock here"),
            ("2026-11-22T11:59:59Z", "1 s ago"),
            ("2026-11-22T11:58:01Z", "119 s ago"),
            ("2026-11-22T11:58:00Z", "2 min ago"),
            ("2026-11-22T10:00:01Z", "119 min ago"),
            ("2026-11-22T10:00:00Z", "2 h ago"),
            ("2026-11-20T12:00:01Z", "47 h ago"),
            ("2026-11-20T12:00:00Z", "2 d ago"),
            ("2025-11-22T12:00:00Z", "365 d ago"),
        ] {
            assert_eq!(age(then.parse().unwrap(), now), expected, "{then}");
        }
    }
}
