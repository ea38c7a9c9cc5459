//! Commands for people to copy.

/// Writes a word so that a shell reads it as one: others may have chosen it, such as the author of a test its file.
pub(super) fn word_of_shell(word: &str) -> String {
    let is_plain = |it: char| it.is_alphanumeric() || "_-./:@%+=,".contains(it);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_one_for_a_shell() {
        for (word, expected) in [
            ("web1.example.com", "web1.example.com"),
            ("/srv/groups", "/srv/groups"),
            ("sp ace", "'sp ace'"),
            ("it's", r"'it'\''s'"),
            ("$(x)", "'$(x)'"),
            ("", "''"),
        ] {
            assert_eq!(word_of_shell(word), expected);
        }
    }
}
