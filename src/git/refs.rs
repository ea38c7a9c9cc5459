//! Names of refs: those of a mirror that are its own, and what to follow in place of one that is missing.

const HEADS: &str = "refs/heads/";

/// How many branches are named in place of one that is missing.
const NAMED: usize = 5;

/// The longest name that is named there, in bytes.
const LONGEST: usize = 100;

/// The ref that names the live commit, so that a restart finds it.
pub(super) const LIVE: &str = "refs/clade/live";

/// Before the full name of a watched ref: where that was at the last fetch.
pub(super) const WATCHED: &str = "refs/clade/watched/";

/// How many refs are followed that each name another one, as git does.
const DEEPEST: usize = 5;

/// Returns the ref that a ref leads to: itself, unless it names another one.
pub(super) fn referent(repository: &git2::Repository, name: &str) -> String {
    let mut name = name.to_owned();
    for _ in 0..DEEPEST {
        let Ok(reference) = repository.find_reference(&name) else { break };
        let Ok(Some(target)) = reference.symbolic_target() else { break };
        name = target.to_owned();
    }
    name
}

/// Returns a ref as people name it.
pub fn short_name(full: &str) -> &str {
    full.strip_prefix(HEADS).unwrap_or(full)
}

/// Says which branches there are, of all refs, in place of one that is missing.
pub(super) fn instead<'n>(refs: impl Iterator<Item = &'n str>) -> String {
    let branches = refs.filter_map(|it| it.strip_prefix(HEADS)).filter(|it| it.len() <= LONGEST);
    let mut branches: Vec<&str> = branches.collect();
    branches.sort_unstable();
    let mut named: Vec<String> = branches.iter().take(NAMED).map(|it| format!("`{it}`")).collect();
    match (named.pop(), branches.len().saturating_sub(NAMED)) {
        (None, _) => "; it has no branch yet: commit the files first".to_owned(),
        (Some(only), _) if named.is_empty() => {
            format!("; it has {only}: choose it with `--branch`")
        }
        (Some(last), 0) => {
            format!("; it has {} and {last}: choose one with `--branch`", named.join(", "))
        }
        (Some(last), more) => {
            format!(
                "; it has {}, {last} and {more} more: choose one with `--branch`",
                named.join(", ")
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::each_row;

    #[test]
    fn branches_are_named_in_place_of_a_missing_one() {
        let rows = [
            (vec!["main"], "; it has `main`: choose it with `--branch`"),
            (vec!["b", "a"], "; it has `a` and `b`: choose one with `--branch`"),
            (
                vec!["a", "b", "c", "d", "e", "f", "g"],
                "; it has `a`, `b`, `c`, `d`, `e` and 2 more: choose one with `--branch`",
            ),
            (vec![], "; it has no branch yet: commit the files first"),
        ];
        each_row(rows, |(branches, expected)| {
            let refs: Vec<String> = branches.iter().map(|it| format!("refs/heads/{it}")).collect();
            let others = ["HEAD", "refs/tags/mian"];
            let all = refs.iter().map(String::as_str).chain(others);
            assert_eq!(instead(all), expected);
        });
    }
}
