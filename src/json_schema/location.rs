//! Names of files and of the parts of a file.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// What stands before the path of a file to make a URI of it.
const SCHEME: &str = "clade:///";

/// What a path may have in a URI as it is.
pub(super) const PATH: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Returns the URI of a file of the repository.
pub(super) fn uri_of(path: &str) -> String {
    format!("{SCHEME}{}", utf8_percent_encode(path, PATH))
}

/// Returns the file that a URI names; `None` if it is not one of the repository.
pub(super) fn path_of(uri: &str) -> Option<String> {
    let path = uri.strip_prefix(SCHEME)?;
    let path = percent_decode_str(path).decode_utf8().ok()?;
    Some(path.into_owned()).filter(|it| !it.is_empty())
}

/// Returns whether a reference of a file leads above the root of the repository.
pub(super) fn leads_out(reference: &str, file: &str) -> bool {
    let path = reference.split(['#', '?']).next().unwrap_or_default();
    let is_relative = !path.is_empty() && !path.starts_with('/') && !path.contains(':');
    let mut depth = file.matches('/').count();
    is_relative
        && path.split('/').any(|part| match part {
            "." | "" => false,
            ".." => {
                let is_out = depth == 0;
                depth = depth.saturating_sub(1);
                is_out
            }
            _ => {
                depth += 1;
                false
            }
        })
}

/// Returns the file that a URI means beside one whose `$id` is another URI: the files of a directory
/// mostly have the ids of a directory.
pub(super) fn beside(uri: &str, id: &str, file: &str) -> Option<String> {
    let mut id = id.rsplit_once('/')?.0;
    let mut directory = file.rsplit_once('/').map_or("", |(directory, _)| directory);
    loop {
        if let Some(rest) = uri.strip_prefix(id).and_then(|it| it.strip_prefix('/')) {
            let rest = percent_decode_str(rest).decode_utf8().ok()?;
            let parent = if directory.is_empty() { "" } else { "/" };
            return Some(format!("{directory}{parent}{rest}"));
        }
        let up = |path: &str| path.rfind('/').unwrap_or_default();
        let last = directory.get(up(directory)..)?;
        if directory.is_empty() || !id.ends_with(last.trim_start_matches('/')) {
            return None;
        }
        id = id.get(..up(id))?;
        directory = directory.get(..up(directory))?;
    }
}

/// Returns the parts of a JSON pointer.
pub(super) fn tokens(pointer: &str) -> Vec<String> {
    pointer.split('/').skip(1).map(|it| it.replace("~1", "/").replace("~0", "~")).collect()
}

/// Returns a JSON pointer with one part more.
pub(super) fn join(pointer: &str, token: &str) -> String {
    let escaped: Cow<'_, str> = if token.contains(['~', '/']) {
        token.replace('~', "~0").replace('/', "~1").into()
    } else {
        token.into()
    };
    format!("{pointer}/{escaped}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_a_uri_and_back() {
        for path in ["schemas/group.json", "a b/ü#%?.yaml"] {
            assert_eq!(path_of(&uri_of(path)).as_deref(), Some(path));
        }
        for uri in ["clade:///", "https://example.com/a.json", "clade:///%ff"] {
            assert_eq!(path_of(uri), None, "{uri}");
        }
    }

    #[test]
    fn a_reference_may_not_lead_above_the_root() {
        for (reference, file, out) in [
            ("../a.json", "schemas/group.json", false),
            ("../../a.json", "schemas/group.json", true),
            ("x/../../a.json", "schemas/group.json", false),
            ("x/../../../schemas/group.json", "schemas/group.json", true),
            ("../a.json", "group.json", true),
            ("#/../..", "group.json", false),
            ("/../a.json", "group.json", false),
        ] {
            assert_eq!(leads_out(reference, file), out, "{reference} in {file}");
        }
    }

    #[test]
    fn ids_of_a_directory_are_those_of_its_files() {
        let id = "https://example.com/v1/schemas/group.json";
        for (uri, file, expected) in [
            (
                "https://example.com/v1/schemas/port.json",
                "schemas/group.json",
                Some("schemas/port.json"),
            ),
            ("https://example.com/v1/schemas/x/port.json", "group.json", Some("x/port.json")),
            ("https://example.com/v1/port.json", "schemas/group.json", Some("port.json")),
            ("https://example.com/v1/port.json", "own/group.json", None),
            ("https://example.org/v1/port.json", "schemas/group.json", None),
        ] {
            assert_eq!(beside(uri, id, file).as_deref(), expected, "{uri} beside {file}");
        }
    }

    #[test]
    fn pointers_are_escaped() {
        let pointer = join(&join("", "a/b"), "~c");
        assert_eq!(
            (pointer.as_str(), tokens(&pointer)),
            ("/a~1b/~0c", vec!["a/b".into(), "~c".into()])
        );
    }
}
