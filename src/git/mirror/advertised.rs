//! The refs that a remote has, as it lists them on every connection.

use std::collections::BTreeMap;

use git2::{Oid, RemoteConnection, RemoteHead};

use crate::expected_panic;
use crate::git::failure::{FetchError, FetchFailure};
use crate::git::own_files::check_ref_files;
use crate::git::refs::{instead, short_name};
use crate::git::remote::Remote;
use crate::git::transport::Attempt;

/// The refs of a remote.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Advertised {
    refs: BTreeMap<String, Oid>,
    /// What a `HEAD` that is not detached names.
    head: Option<String>,
    /// The names of refs that are not UTF-8, as they are shown.
    not_utf8: Vec<String>,
}

/// The ref that is followed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Watched {
    /// Its full name; `HEAD` if that is detached.
    pub(super) name: String,
    /// Its commit, or what it names if it names none.
    pub(super) commit: Oid,
}

impl Advertised {
    pub(super) fn list(
        connection: &RemoteConnection<'_, '_, '_>,
        attempt: &Attempt,
    ) -> Result<Self, git2::Error> {
        let mut refs = BTreeMap::new();
        let mut head = None;
        for it in connection.list()? {
            // A ref whose name is not UTF-8 cannot be named in the settings, so it cannot be watched.
            let Some((name, target)) = names(it) else { continue };
            if name == "HEAD" {
                head = target;
            }
            refs.insert(name, it.oid());
        }
        Ok(Self { refs, head, not_utf8: attempt.refs_not_utf8() })
    }

    /// Returns the refs of a repository on this machine, as its server would tell them; those that
    /// cannot be read are left out.
    pub(super) fn of(repository: &git2::Repository) -> Result<Self, git2::Error> {
        check_ref_files(repository)?;
        let (mut refs, mut not_utf8) = (BTreeMap::new(), Vec::new());
        for reference in repository.references()? {
            let Ok(reference) = reference else { continue };
            let Ok(name) = std::str::from_utf8(reference.name_bytes()) else {
                not_utf8.push(String::from_utf8_lossy(reference.name_bytes()).into_owned());
                continue;
            };
            let name = name.to_owned();
            let Ok(reference) = reference.resolve() else { continue };
            let Some(target) = reference.target() else { continue };
            if let Ok(tag) = repository.find_tag(target)
                && let Ok(peeled) = tag.into_object().peel(git2::ObjectType::Any)
            {
                refs.insert(format!("{name}^{{}}"), peeled.id());
            }
            refs.insert(name, target);
        }
        let found = repository.find_reference("HEAD");
        let head = found.as_ref().ok().and_then(|it| it.symbolic_target().ok().flatten());
        let head = head.map(str::to_owned);
        if let Ok(commit) = repository.head().and_then(|it| it.peel_to_commit()) {
            refs.insert("HEAD".to_owned(), commit.id());
        }
        Ok(Self { refs, head, not_utf8 })
    }

    /// Returns all refs but `HEAD` with what they name.
    pub(super) fn refs(&self) -> impl Iterator<Item = (&str, Oid)> {
        let own = self.refs.iter().filter(|(name, _)| *name != "HEAD" && !name.ends_with("^{}"));
        own.map(|(name, target)| (name.as_str(), *target))
    }

    /// Returns the names of refs that are not UTF-8, which cannot be fetched.
    pub(super) fn not_utf8(&self) -> &[String] {
        &self.not_utf8
    }

    /// Returns the commit of a ref by its full name, or what it names if it names none.
    pub(super) fn commit_of(&self, name: &str) -> Option<Oid> {
        let itself = self.refs.get(name)?;
        // The remote lists an annotated tag twice: itself, and what it leads to.
        Some(*self.refs.get(&format!("{name}^{{}}")).unwrap_or(itself))
    }

    /// Finds a ref by its full name, or as a branch, or as a tag; without a name, what `HEAD`
    /// names.
    pub(super) fn find(
        &self,
        remote: &Remote,
        branch: Option<&str>,
    ) -> Result<Watched, FetchError> {
        let (candidates, what) = match branch {
            None => (
                vec![self.head.clone().unwrap_or_else(|| "HEAD".to_owned())],
                match &self.head {
                    Some(named) => format!("`{}`, which its `HEAD` names", short_name(named)),
                    None => "a commit that `HEAD` names".to_owned(),
                },
            ),
            Some(name) if name.starts_with("refs/") => {
                let what = match name.strip_prefix("refs/heads/") {
                    Some(branch) => format!("the branch `{branch}`"),
                    None => format!("the ref `{name}`"),
                };
                (vec![name.to_owned()], what)
            }
            Some(name) => (
                vec![format!("refs/heads/{name}"), format!("refs/tags/{name}")],
                format!("the branch `{name}`"),
            ),
        };
        let found = candidates.into_iter().find_map(|name| {
            let commit = self.commit_of(&name)?;
            Some(Watched { name, commit })
        });
        let missing = || {
            let instead = instead(self.refs.keys().map(String::as_str));
            let message = format!("`{remote}` does not have {what}{instead}");
            FetchError::new(FetchFailure::RefNotFound, message)
        };
        found.ok_or_else(missing)
    }
}

/// Returns the name of a ref and of what it points to; git2 panics where one is not UTF-8.
fn names(head: &RemoteHead<'_>) -> Option<(String, Option<String>)> {
    expected_panic::catch(|| (head.name().to_owned(), head.symref_target().map(str::to_owned)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn advertised(head: Option<&str>, names: &[&str]) -> Advertised {
        let id = |index| Oid::from_str(&format!("{:040x}", index + 1)).unwrap();
        let refs = names.iter().enumerate().map(|(index, name)| ((*name).to_owned(), id(index)));
        let head = head.map(str::to_owned);
        Advertised { refs: refs.collect(), head, not_utf8: Vec::new() }
    }

    #[test]
    fn a_ref_is_found_by_what_people_call_it() {
        let all =
            ["HEAD", "refs/heads/main", "refs/tags/v1", "refs/tags/v1^{}", "refs/pull/1/head"];
        let remote = Remote::parse("/srv/x").unwrap();
        for (head, branch, expected) in [
            (Some("refs/heads/main"), None, Some(("refs/heads/main", 2))),
            (None, None, Some(("HEAD", 1))),
            (Some("refs/heads/unborn"), None, None),
            (None, Some("main"), Some(("refs/heads/main", 2))),
            (None, Some("refs/heads/main"), Some(("refs/heads/main", 2))),
            (None, Some("v1"), Some(("refs/tags/v1", 4))),
            (None, Some("refs/pull/1/head"), Some(("refs/pull/1/head", 5))),
            (None, Some("other"), None),
            (None, Some("heads/main"), None),
        ] {
            let found = advertised(head, &all).find(&remote, branch).ok();
            let expected = expected.map(|(name, id)| Watched {
                name: name.to_owned(),
                commit: Oid::from_str(&format!("{id:040x}")).unwrap(),
            });
            assert_eq!(found, expected, "{head:?} {branch:?}");
        }
    }
}
