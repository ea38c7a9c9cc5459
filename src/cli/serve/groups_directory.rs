//! The directory of the groups in the repository, as a setting.

/// Returns a directory of a repository as git writes it: `./sub//deep/` is `sub/deep`, and the root is `.`.
pub(super) fn groups_directory(text: &str) -> Result<String, String> {
    let parts: Vec<&str> = text.split('/').filter(|it| !matches!(*it, "" | ".")).collect();
    if parts.contains(&"..") {
        return Err(
            "`..` is not possible: give the directory from the root of the repository".to_owned()
        );
    }
    Ok(if parts.is_empty() { ".".to_owned() } else { parts.join("/") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_has_one_spelling() {
        for (text, directory) in [
            (".", "."),
            ("", "."),
            ("./", "."),
            ("/", "."),
            ("sub", "sub"),
            ("./sub/", "sub"),
            ("/sub//deep/./", "sub/deep"),
            ("sub/.hidden", "sub/.hidden"),
        ] {
            assert_eq!(groups_directory(text).as_deref(), Ok(directory), "{text}");
        }
        assert!(groups_directory("sub/../other").is_err());
    }
}
