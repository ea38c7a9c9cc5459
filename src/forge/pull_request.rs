//! Pull requests, called merge requests by some.

use serde_json::{Value, json};

use super::Provider;
use super::call::{Call, part, parts};

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
        let Self { title, body, head, base } = self;
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
        Call { url: format!("{api}/{path}"), headers: provider.headers(token), body }
    }

    /// Returns where people see it, from the forge's answer.
    pub(super) fn address(answer: &Value) -> Option<String> {
        let places = ["/html_url", "/web_url", "/links/html/href", "/links/self/0/href"];
        places.iter().find_map(|it| answer.pointer(it)?.as_str().map(str::to_owned))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::each_row;

    #[test]
    fn each_forge_is_asked_in_its_own_words() {
        let request = PullRequest {
            title: "T".to_owned(),
            body: "B".to_owned(),
            head: "clade/1".to_owned(),
            base: "main".to_owned(),
        };
        let rows = [
            (Provider::Github, "o/r", "repos/o/r/pulls", "/head"),
            (Provider::Forgejo, "o/r", "repos/o/r/pulls", "/head"),
            (Provider::Gitlab, "g/p", "projects/g%2Fp/merge_requests", "/source_branch"),
            (Provider::Bitbucket, "w/s", "repositories/w/s/pullrequests", "/source/branch/name"),
            (Provider::BitbucketDc, "P/r", "projects/P/repos/r/pull-requests", "/fromRef/id"),
        ];
        each_row(rows, |(provider, repository, url, head)| {
            let call = request.call(provider, "https://api", repository, "secret");
            assert_eq!(call.url, format!("https://api/{url}"));
            let head = call.body.pointer(head).and_then(Value::as_str).unwrap();
            assert!(head.ends_with("clade/1"), "{head}");
            assert_eq!(call.body["title"], "T");
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
        ];
        each_row(rows, |(answer, expected)| {
            assert_eq!(PullRequest::address(&answer).as_deref(), expected);
        });
    }
}
