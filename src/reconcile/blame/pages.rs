//! The pages of the repository that is blamed.

use crate::forge::{ForgePages, PageScheme};
use crate::git::{Remote, Scheme};

/// Returns the pages of a repository by where it is fetched from; none for one of this machine.
pub fn pages_of(remote: &Remote) -> Option<ForgePages> {
    let path = remote.url_path()?;
    match remote.scheme()? {
        Scheme::Http => Some(ForgePages::at(PageScheme::Http, remote.authority()?, path)),
        Scheme::Https => Some(ForgePages::at(PageScheme::Https, remote.authority()?, path)),
        // The port is that of another service.
        Scheme::Ssh | Scheme::Git => Some(ForgePages::at(PageScheme::Https, remote.host()?, path)),
        Scheme::File => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forge::merged_pull_request;

    #[test]
    fn links_have_no_credentials() {
        for (remote, expected) in [
            ("https://ci:secret@github.com/o/r.git", Some("https://github.com/o/r/pull/1")),
            ("https://token@github.com:8443/o/r.git", Some("https://github.com:8443/o/r/pull/1")),
            ("git@github.com:o/r.git", Some("https://github.com/o/r/pull/1")),
            ("ssh://git@github.com:22/o/r.git", Some("https://github.com/o/r/pull/1")),
            ("ssh://git@ssh.github.com:443/o/r.git", Some("https://github.com/o/r/pull/1")),
            ("http://github.local/o/r", Some("http://github.local/o/r/pull/1")),
            ("/srv/git/r.git", None),
            ("file:///srv/git/r.git", None),
        ] {
            let pages = pages_of(&Remote::parse(remote).unwrap());
            let found = merged_pull_request("Port (#1)", pages.as_ref()).unwrap();
            assert_eq!(found.url.as_deref(), expected, "{remote}");
        }
    }
}
