//! Pull requests, called merge requests by some.

use serde_json::{Value, json};

use super::Provider;
use super::call::{Call, part, parts, shorten};

/// The longest title, in characters: GitLab and Bitbucket take 255, GitHub 256.
const TITLE: usize = 255;

/// The most bytes of an address.
const ADDRESS: usize = 2048;

/// A pull request that is to be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PullRequest {
    /// Its first line.
    pub title: String,
    /// What it says.
    pub body: String,
    /// The branch with the change.
    pub head: String,
    /// The branch that is to have it.
    pub base: String,
}

impl PullRequest {
    /// Returns the call that opens it.
    pub(super) fn call(
        &self,
        provider: Provider,
        api: &str,
        repository: &str,
        token: &str,
    ) -> Call {
        let Self { body, head, base, .. } = self;
        let title = shorten(&self.title, TITLE);
        let (path, body) = match provider {
            Provider::Github | Provider::Gitea | Provider::Forgejo => (
                format!("repos/{}/pulls", parts(repository)),
                json!({"title": title, "body": body, "head": head, "base": base}),
            ),
            Provider::Gitlab => (
                format!("projects/{}/merge_requests", part(repository)),
                json!({
                    "title": title, "description": body,
                    "source_branch": head, "target_branch": base,
                    "remove_source_branch": true,
                }),
            ),
            Provider::Bitbucket => (
                format!("repositories/{}/pullrequests", parts(repository)),
                json!({
                    "title": title, "description": body,
                    "source": {"branch": {"name": head}},
                    "destination": {"branch": {"name": base}},
                }),
            ),
            Provider::BitbucketDc => {
                let (project, name) = repository.split_once('/').unwrap_or((repository, ""));
                let place = |branch: &str| json!({"id": format!("refs/heads/{branch}")});
                (
                    format!("projects/{}/repos/{}/pull-requests", part(project), part(name)),
                    json!({
                        "title": title, "description": body,
                        "fromRef": place(head), "toRef": place(base),
                    }),
                )
            }
        };
        Call { url: format!("{api}/{path}"), headers: provider.headers(token), body: Some(body) }
    }

    /// Returns the call that finds an open one of the same two branches.
    pub(super) fn find_call(
        &self,
        provider: Provider,
        api: &str,
        repository: &str,
        token: &str,
    ) -> Call {
        let (head, base) = (part(&self.head), part(&self.base));
        let path = match provider {
            Provider::Github => {
                let owner = repository.split('/').next().unwrap_or_default();
                let head = format!("{}:{head}", part(owner));
                format!("repos/{}/pulls?state=open&head={head}&base={base}", parts(repository))
            }
            // Their lists have no filter.
            Provider::Gitea | Provider::Forgejo => {
                format!("repos/{}/pulls/{base}/{}", parts(repository), parts(&self.head))
            }
            Provider::Gitlab => format!(
                "projects/{}/merge_requests?state=opened&source_branch={head}&target_branch={base}",
                part(repository)
            ),
            Provider::Bitbucket => {
                let query = format!("source.branch.name=\"{}\" AND state=\"OPEN\"", self.head);
                format!("repositories/{}/pullrequests?q={}", parts(repository), part(&query))
            }
            Provider::BitbucketDc => {
                let (project, name) = repository.split_once('/').unwrap_or((repository, ""));
                format!(
                    "projects/{}/repos/{}/pull-requests?state=OPEN&direction=OUTGOING&at=refs%2Fheads%2F{head}",
                    part(project),
                    part(name)
                )
            }
        };
        Call { url: format!("{api}/{path}"), headers: provider.headers(token), body: None }
    }

    /// Returns the open one of the same two branches, if the answer of a forge has it.
    pub(super) fn open_in<'a>(&self, answer: &'a Value) -> Option<&'a Value> {
        let list = answer.get("values").unwrap_or(answer);
        let all = list.as_array().map_or(std::slice::from_ref(list), Vec::as_slice);
        let is_open = |it: &&Value| {
            let state = it.get("state").and_then(Value::as_str).unwrap_or_default();
            matches!(state, "open" | "opened" | "OPEN")
                && branch(it, &HEAD_BRANCH) == Some(&self.head)
                && branch(it, &BASE_BRANCH) == Some(&self.base)
        };
        all.iter().find(is_open)
    }

    /// Returns where people see it, from the forge's answer; none where that is not the address of a page. Clients and logs
    /// get it, so it has no credentials and no query.
    pub(super) fn address(answer: &Value) -> Option<String> {
        let places = ["/html_url", "/web_url", "/links/html/href", "/links/self/0/href"];
        let mut found = places.iter().filter_map(|it| answer.pointer(it)?.as_str());
        found.find(|it| is_address(it)).map(public_address)
    }
}

/// Returns an address without what may be secret in it: the user, the query and the fragment.
fn public_address(address: &str) -> String {
    let address = address.split(['?', '#']).next().unwrap_or_default();
    let Some((scheme, rest)) = address.split_once("://") else { return address.to_owned() };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = authority.rsplit('@').next().unwrap_or_default();
    format!("{scheme}://{host}{path}")
}

/// Returns whether a text is the address of a page, which clients show as a link.
fn is_address(text: &str) -> bool {
    let scheme = text.split_once("://").map(|(scheme, _)| scheme);
    scheme.is_some_and(|it| it.eq_ignore_ascii_case("https") || it.eq_ignore_ascii_case("http"))
        && text.len() <= ADDRESS
        && !text.contains(|it: char| it.is_control() || it.is_whitespace())
}

/// Where answers have the branch with the change: GitHub and Gitea, GitLab, Bitbucket Cloud, Data Center.
const HEAD_BRANCH: [&str; 4] =
    ["/head/ref", "/source_branch", "/source/branch/name", "/fromRef/displayId"];

/// Where they have the branch that is to have it.
const BASE_BRANCH: [&str; 4] =
    ["/base/ref", "/target_branch", "/destination/branch/name", "/toRef/displayId"];

fn branch<'a>(answer: &'a Value, places: &[&str]) -> Option<&'a str> {
    places.iter().find_map(|it| answer.pointer(it)?.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::each_row;

    fn request() -> PullRequest {
        PullRequest {
            title: "T".to_owned(),
            body: "B".to_owned(),
            head: "clade/1".to_owned(),
            base: "main".to_owned(),
        }
    }

    #[test]
    fn each_forge_is_asked_in_its_own_words() {
        let rows = [
            (Provider::Github, "o/r", "repos/o/r/pulls", "/head"),
            (Provider::Forgejo, "o/r", "repos/o/r/pulls", "/head"),
            (Provider::Gitlab, "g/p", "projects/g%2Fp/merge_requests", "/source_branch"),
            (Provider::Bitbucket, "w/s", "repositories/w/s/pullrequests", "/source/branch/name"),
            (Provider::BitbucketDc, "P/r", "projects/P/repos/r/pull-requests", "/fromRef/id"),
        ];
        each_row(rows, |(provider, repository, url, head)| {
            let call = request().call(provider, "https://api", repository, "secret");
            assert_eq!(call.url, format!("https://api/{url}"));
            let body = call.body.unwrap();
            let head = body.pointer(head).and_then(Value::as_str).unwrap();
            assert!(head.ends_with("clade/1"), "{head}");
            assert_eq!(body["title"], "T");
        });
        let long = PullRequest { title: "ä".repeat(900), ..request() };
        let body = long.call(Provider::Github, "", "o/r", "").body.unwrap();
        assert_eq!(body["title"].as_str().unwrap().chars().count(), TITLE);
    }

    #[test]
    fn each_forge_is_asked_for_the_open_one_of_both_branches() {
        let rows = [
            (Provider::Github, "o/r", "repos/o/r/pulls?state=open&head=o:clade%2F1&base=main"),
            (Provider::Gitea, "o/r", "repos/o/r/pulls/main/clade/1"),
            (
                Provider::Gitlab,
                "g/p",
                "projects/g%2Fp/merge_requests?state=opened&source_branch=clade%2F1&target_branch=main",
            ),
            (
                Provider::Bitbucket,
                "w/s",
                "repositories/w/s/pullrequests?q=source.branch.name%3D%22clade%2F1%22%20AND%20state%3D%22OPEN%22",
            ),
            (
                Provider::BitbucketDc,
                "P/r",
                "projects/P/repos/r/pull-requests?state=OPEN&direction=OUTGOING&at=refs%2Fheads%2Fclade%2F1",
            ),
        ];
        each_row(rows, |(provider, repository, url)| {
            let call = request().find_call(provider, "https://api", repository, "secret");
            assert_eq!((call.url, call.body), (format!("https://api/{url}"), None));
        });
    }

    #[test]
    fn only_the_open_one_of_both_branches_is_found() {
        let github = |head: &str, base: &str, state: &str| {
            json!({
                "html_url": format!("https://h/{head}"), "state": state,
                "head": {"ref": head}, "base": {"ref": base},
            })
        };
        let (right, other) = (github("clade/1", "main", "open"), github("x", "main", "open"));
        let (elsewhere, closed) =
            (github("clade/1", "next", "open"), github("clade/1", "main", "closed"));
        let found = Some("https://h/clade/1");
        let rows = [
            (json!([other, right]), found),
            (right, found),
            (json!([elsewhere, closed, other]), None),
            (json!([]), None),
            (json!(null), None),
            (
                json!([{"web_url": "https://h/clade/1", "state": "opened", "source_branch": "clade/1", "target_branch": "main"}]),
                found,
            ),
            (
                json!({"values": [{
                    "links": {"html": {"href": "https://h/clade/1"}}, "state": "OPEN",
                    "source": {"branch": {"name": "clade/1"}},
                    "destination": {"branch": {"name": "main"}},
                }]}),
                found,
            ),
            (
                json!({"values": [{
                    "links": {"self": [{"href": "https://h/clade/1"}]}, "state": "OPEN",
                    "fromRef": {"displayId": "clade/1"}, "toRef": {"displayId": "main"},
                }]}),
                found,
            ),
        ];
        each_row(rows, |(answer, expected)| {
            let address = request().open_in(&answer).and_then(PullRequest::address);
            assert_eq!(address.as_deref(), expected);
        });
    }

    #[test]
    fn the_address_is_found_in_every_answer() {
        let rows = [
            (json!({"html_url": "https://h/1"}), Some("https://h/1")),
            (json!({"web_url": "https://h/2"}), Some("https://h/2")),
            (json!({"links": {"html": {"href": "https://h/3"}}}), Some("https://h/3")),
            (json!({"links": {"self": [{"href": "https://h/4"}]}}), Some("https://h/4")),
            (json!({}), None),
            (json!({"html_url": "javascript:alert(1)"}), None),
            (json!({"html_url": "javascript://h/%0aalert(1)"}), None),
            (json!({"html_url": "https://h/a\nb"}), None),
            (json!({"html_url": format!("https://h/{}", "a".repeat(ADDRESS))}), None),
            (json!({"html_url": "data:x", "web_url": "HTTPS://h/5"}), Some("HTTPS://h/5")),
            (json!({"html_url": "https://user:secret@h:8443/6@7"}), Some("https://h:8443/6@7")),
            (json!({"html_url": "https://a@b@h/8?token=secret#secret"}), Some("https://h/8")),
            (json!({"html_url": "https://token@h?private=secret/@x"}), Some("https://h")),
        ];
        each_row(rows, |(answer, expected)| {
            assert_eq!(PullRequest::address(&answer).as_deref(), expected);
        });
    }
}
