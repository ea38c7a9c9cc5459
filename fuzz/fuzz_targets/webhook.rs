//! A delivery from any sender never panics, and counts as signed only with its signature.
//! The input is headers, an empty line, and the body.
#![no_main]

use libfuzzer_sys::fuzz_target;

const PROVIDERS: [&str; 8] = [
    "github", "gitlab", "gitea", "forgejo", "bitbucket", "bitbucket-dc", "generic", "standard",
];

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let (head, body) = text.split_once("\n\n").unwrap_or(("", &text));
    let headers: Vec<(&str, &str)> =
        head.lines().filter_map(|line| line.split_once(": ")).collect();
    for provider in PROVIDERS {
        // No input can know the secret.
        let secret = "7e1f2d6c8a904b35a1c6d8e0f2b4a697";
        assert!(!clade::internals::http::fuzz_delivery(provider, &headers, secret, body.as_bytes()));
    }
});
