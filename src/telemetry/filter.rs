//! Which events are logged.

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

/// Checks what says which events are logged, such as `info` or `warn,clade::access=debug`.
///
/// # Errors
///
/// Returns an error that says what is wrong.
pub fn check_filter(text: &str) -> Result<String, String> {
    let parts: Vec<&str> = text.split(',').map(str::trim).collect();
    if let Some(wrong) = parts.iter().find(|it| !is_directive(it)) {
        return Err(format!(
            "expected `error`, `warn`, `info`, `debug`, `trace` or `off`, or a module with its level, such as `clade::access=debug`; found `{wrong}`"
        ));
    }
    // Of a part after a blank the library reads another one.
    let filter = parts.join(",");
    EnvFilter::builder().parse(&filter).map_err(|it| it.to_string())?;
    Ok(filter)
}

/// Returns whether a part says what is meant. The library takes any word that is not a level for a module, of which it logs
/// all; so a level with a mistake would log nothing else.
fn is_directive(part: &str) -> bool {
    let is_level = |it: &str| !it.is_empty() && it.parse::<LevelFilter>().is_ok();
    match part.split_once('=') {
        // Spans and fields are for the library to read.
        _ if part.contains('[') => true,
        Some((module, level)) => !module.is_empty() && is_level(level),
        None => is_level(part) || part == "clade" || part.starts_with("clade::"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_a_level_or_a_module_of_ours() {
        for (text, expected) in [
            ("info", "info"),
            ("WARN", "WARN"),
            ("off", "off"),
            ("trace", "trace"),
            ("clade=debug", "clade=debug"),
            ("clade", "clade"),
            ("warn,clade::access", "warn,clade::access"),
            (" info , clade::access=debug", "info,clade::access=debug"),
            ("info,hyper=trace", "info,hyper=trace"),
            ("info,clade[request]=debug", "info,clade[request]=debug"),
        ] {
            assert_eq!(check_filter(text).as_deref(), Ok(expected), "{text}");
        }
        for (text, wrong) in [
            ("warning", "warning"),
            ("verbose", "verbose"),
            ("", ""),
            (" ", ""),
            ("info,", ""),
            ("info,,warn", ""),
            ("info,hyper", "hyper"),
            ("cladex", "cladex"),
            ("clade=", "clade="),
            ("clade=warning", "clade=warning"),
            ("=debug", "=debug"),
        ] {
            let error = check_filter(text).unwrap_err();
            assert!(error.ends_with(&format!("found `{wrong}`")), "{text}: {error}");
        }
        assert!(check_filter("info,clade[").is_err());
    }
}
