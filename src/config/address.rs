//! Addresses as they are shown: without the secrets in them.

/// Keys of a query whose values are no secrets: those of a PostgreSQL URL.
const SHOWN_KEYS: [&str; 10] = [
    "application_name",
    "dbname",
    "host",
    "hostaddr",
    "port",
    "sslcert",
    "sslkey",
    "sslmode",
    "sslrootcert",
    "user",
];

/// Returns an address without user and password, without the values of its query, and without its fragment; the path
/// of a file or socket as it is.
///
/// A password with a `/`, `?` or `#` in it is not percent-encoded as it should be. So everything up to the last `@`
/// counts as the password, and where a `?` or `#` stands before that, only the scheme is shown.
pub fn without_secrets(address: &str) -> String {
    if address.starts_with('/') || address.starts_with("unix:") {
        return address.to_owned();
    }
    let (scheme, rest) = split_scheme(address);
    let end = rest.find(['?', '#']).unwrap_or(rest.len());
    let (place, query) = rest.split_at(end);
    if query.contains('@') {
        return format!("{scheme}…");
    }
    let place = place.rsplit_once('@').map_or(place, |(_, place)| place);
    format!("{scheme}{place}{}", without_values(query))
}

/// Returns whether an `@` stands behind the host of an address: a password that is not percent-encoded, or one that
/// [`without_secrets`] would take for the end of a password.
pub fn has_misplaced_at(address: &str) -> bool {
    let (_, rest) = split_scheme(address);
    rest.split_once(['/', '?', '#']).is_some_and(|(_, behind)| behind.contains('@'))
}

/// Splits an address behind the `://` of its scheme, which may be absent.
fn split_scheme(address: &str) -> (&str, &str) {
    let is_of_scheme = |it: char| it.is_ascii_alphanumeric() || "+-.".contains(it);
    match address.find("://") {
        Some(at) if address.chars().take(at).all(is_of_scheme) => {
            address.split_at(at + "://".len())
        }
        _ => ("", address),
    }
}

/// Returns a query with its question mark, and a fragment, without the values that may be secret.
fn without_values(query: &str) -> String {
    let (query, fragment) = query.split_once('#').map_or((query, ""), |(query, it)| (query, it));
    let fragment = if fragment.is_empty() { "" } else { "#…" };
    let Some(query) = query.strip_prefix('?').filter(|it| !it.is_empty()) else {
        return fragment.to_owned();
    };
    let shown = query.split('&').map(|pair| match pair.split_once('=') {
        Some((key, _)) if SHOWN_KEYS.contains(&key) => pair.to_owned(),
        // The `=` may be the end of a token that has no key, as those in base64 have one.
        Some((key, value)) if !value.trim_matches('=').is_empty() => format!("{key}=…"),
        _ => "…".to_owned(),
    });
    format!("?{}{fragment}", shown.collect::<Vec<String>>().join("&"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::each_row;

    #[test]
    fn an_address_is_shown_without_its_secrets() {
        let rows = [
            ("https://host:4433/x", "https://host:4433/x"),
            ("https://u:secret@host:4433/x/", "https://host:4433/x/"),
            ("https://secret@host", "https://host"),
            ("https://u@x:secret@host", "https://host"),
            ("https://u:a/secret@host/x", "https://host/x"),
            ("https://u:1/secret@x/y@host", "https://host"),
            ("https://u:a?secret@host/x", "https://…"),
            ("https://u:a#secret@host/x?token=secret", "https://…"),
            ("https://host/x?token=secret", "https://host/x?token=…"),
            ("https://host/x?environment=secret&key=secret", "https://host/x?environment=…&key=…"),
            ("https://host?secret", "https://host?…"),
            ("https://host?secret==", "https://host?…"),
            ("https://host/#secret", "https://host/#…"),
            ("https://host/?token=secret#secret", "https://host/?token=…#…"),
            ("https://host/?", "https://host/"),
            ("postgres:///db?user=u&password=secret", "postgres:///db?user=u&password=…"),
            ("u:secret@host:3128", "host:3128"),
            ("host:3128?token=secret", "host:3128?token=…"),
            ("u:secret@host/?then=x://y", "host/?then=…"),
            ("https:/u:secret@host/x", "host/x"),
            ("none", "none"),
            ("/run/clade@1.sock", "/run/clade@1.sock"),
            ("unix:///run/clade@1.sock", "unix:///run/clade@1.sock"),
            ("é://secret@host", "host"),
            ("", ""),
        ];
        each_row(rows, |(address, shown)| {
            assert_eq!(without_secrets(address), shown);
        });
    }

    #[test]
    fn an_at_sign_behind_the_host_is_found() {
        let rows = [
            ("https://u:p@host/x", false),
            ("https://u:a%2Fp@host/x", false),
            ("https://host/x", false),
            ("https://u:a/p@host", true),
            ("https://u:a?p@host", true),
            ("https://u:a#p@host", true),
            ("https://host/x@y", true),
            ("u:a/p@host", true),
        ];
        each_row(rows, |(address, expected)| {
            assert_eq!(has_misplaced_at(address), expected);
        });
    }
}
