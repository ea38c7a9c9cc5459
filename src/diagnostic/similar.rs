//! What a misspelt name may have been meant to be.

/// Returns the candidate that is most like the wanted name, if one is like it at all.
///
/// Case and the difference between `-` and `_` count little; of equals the first wins.
pub fn closest<'c>(wanted: &str, candidates: impl Iterator<Item = &'c str>) -> Option<&'c str> {
    let fold = |text: &str| text.to_lowercase().replace('-', "_");
    let folded = fold(wanted);
    let length = folded.chars().count();
    let allowed = match length {
        0..=3 => 1,
        4..=5 => 2,
        _ => length / 3,
    };
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates {
        // A far longer or shorter name is skipped; the distance costs the product of both.
        if candidate.chars().count().abs_diff(length) > allowed || length > 200 {
            continue;
        }
        let distance = strsim::damerau_levenshtein(&folded, &fold(candidate));
        if distance <= allowed
            && distance < length.max(1)
            && best.is_none_or(|(least, _)| distance < least)
        {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_was_meant_and_nothing_else() {
        let names = ["Production", "Webservers", "All Nodes", "environment_trumps", "db"];
        for (wanted, expected) in [
            ("Productoin", Some("Production")),
            ("webserver", Some("Webservers")),
            ("ALL NODES", Some("All Nodes")),
            ("environment-trump", Some("environment_trumps")),
            ("bd", Some("db")),
            ("zzz", None),
            ("", None),
            ("x", None),
        ] {
            assert_eq!(closest(wanted, names.into_iter()), expected, "{wanted}");
        }
    }
}
