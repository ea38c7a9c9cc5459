//! The calls as each forge wants them.
//!
//! GitHub: <https://docs.github.com/en/rest/commits/statuses>, GitLab:
//! <https://docs.gitlab.com/api/commits/#set-commit-pipeline-status>, Gitea and Forgejo:
//! `/api/swagger` of every instance, Bitbucket Cloud:
//! <https://developer.atlassian.com/cloud/bitbucket/rest/api-group-commit-statuses/>, Bitbucket Data
//! Center: <https://developer.atlassian.com/server/bitbucket/rest/>.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::utf8_percent_encode;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha1::{Digest as _, Sha1};

use crate::model::{CommitId, URL_SEGMENT, hex};

/// Whose API a forge speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provider {
    /// GitHub, also Enterprise.
    Github,
    /// GitLab.
    Gitlab,
    /// Gitea.
    Gitea,
    /// Forgejo.
    Forgejo,
    /// Bitbucket Cloud.
    Bitbucket,
    /// Bitbucket Data Center.
    BitbucketDc,
}

/// What a commit came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StatusState {
    /// It is as it should be.
    Success,
    /// It is not.
    Failure,
    /// Unknown: a failure that the commit did not cause.
    Error,
}

/// A status of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitStatus {
    /// The commit.
    pub commit: CommitId,
    /// What the status is about, such as `clade/validate`.
    pub context: String,
    /// What it came to.
    pub state: StatusState,
    /// A sentence about it.
    pub description: String,
    /// Where to read more.
    pub link: Option<String>,
}

/// A request to the API of a forge.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The whole URL.
    pub url: String,
    /// The headers, the secret among them.
    pub headers: Vec<(&'static str, String)>,
    /// The body of a `POST`; a `GET` has none.
    pub body: Option<Value>,
}

/// The longest description that GitHub takes.
const DESCRIPTION: usize = 140;

/// The longest key that Bitbucket takes.
const KEY: usize = 40;

impl Provider {
    /// Returns its name in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Github => "github",
            Self::Gitlab => "gitlab",
            Self::Gitea => "gitea",
            Self::Forgejo => "forgejo",
            Self::Bitbucket => "bitbucket",
            Self::BitbucketDc => "bitbucket-dc",
        }
    }

    /// Returns where the API of the forge at a host is.
    pub fn api_at(self, host: &str) -> String {
        match self {
            Self::Github if host == "github.com" => "https://api.github.com".to_owned(),
            Self::Github => format!("https://{host}/api/v3"),
            Self::Gitlab => format!("https://{host}/api/v4"),
            Self::Gitea | Self::Forgejo => format!("https://{host}/api/v1"),
            Self::Bitbucket => "https://api.bitbucket.org/2.0".to_owned(),
            Self::BitbucketDc => format!("https://{host}/rest/api/latest"),
        }
    }

    /// Returns the repository that a path of a URL is about.
    pub fn repository_at(self, path: &str) -> String {
        let path = path.trim_matches('/');
        let path = path.strip_suffix(".git").unwrap_or(path);
        let path = match self {
            // Data Center puts `scm/` before what it serves over HTTP.
            Self::BitbucketDc => path.strip_prefix("scm/").unwrap_or(path),
            _ => path,
        };
        path.to_owned()
    }

    /// Returns whether it takes no status without a link.
    pub fn needs_link(self) -> bool {
        matches!(self, Self::Bitbucket | Self::BitbucketDc)
    }

    pub(super) fn headers(self, token: &str) -> Vec<(&'static str, String)> {
        let bearer = format!("Bearer {token}");
        match self {
            Self::Github => vec![
                ("Authorization", bearer),
                ("Accept", "application/vnd.github+json".to_owned()),
                ("X-GitHub-Api-Version", "2022-11-28".to_owned()),
            ],
            Self::Gitlab => vec![("PRIVATE-TOKEN", token.to_owned())],
            Self::Gitea | Self::Forgejo => vec![("Authorization", format!("token {token}"))],
            // An app password comes with its user: `user:password`.
            Self::Bitbucket | Self::BitbucketDc if token.contains(':') => {
                vec![("Authorization", format!("Basic {}", STANDARD.encode(token)))]
            }
            Self::Bitbucket | Self::BitbucketDc => vec![("Authorization", bearer)],
        }
    }

    fn state(self, state: StatusState) -> &'static str {
        match (self, state) {
            (Self::Github | Self::Gitea | Self::Forgejo, StatusState::Success) => "success",
            (Self::Github | Self::Gitea | Self::Forgejo, StatusState::Failure) => "failure",
            (Self::Github | Self::Gitea | Self::Forgejo, StatusState::Error) => "error",
            (Self::Gitlab, StatusState::Success) => "success",
            (Self::Gitlab, StatusState::Failure) => "failed",
            (Self::Gitlab, StatusState::Error) => "canceled",
            (Self::Bitbucket | Self::BitbucketDc, StatusState::Success) => "SUCCESSFUL",
            (Self::Bitbucket | Self::BitbucketDc, StatusState::Failure) => "FAILED",
            (Self::Bitbucket, StatusState::Error) => "STOPPED",
            (Self::BitbucketDc, StatusState::Error) => "CANCELLED",
        }
    }
}

impl Call {
    /// Returns the call that posts a status.
    pub fn status(
        provider: Provider,
        api: &str,
        repository: &str,
        token: &str,
        status: &CommitStatus,
    ) -> Self {
        let CommitStatus { commit, context, link, .. } = status;
        let state = provider.state(status.state);
        let description = shorten(&status.description, DESCRIPTION);
        let (path, mut body) = match provider {
            Provider::Github | Provider::Gitea | Provider::Forgejo => (
                format!("repos/{}/statuses/{commit}", parts(repository)),
                json!({"state": state, "description": description, "context": context}),
            ),
            Provider::Gitlab => (
                format!("projects/{}/statuses/{commit}", part(repository)),
                json!({"state": state, "description": description, "name": context}),
            ),
            Provider::Bitbucket => (
                format!("repositories/{}/commit/{commit}/statuses/build", parts(repository)),
                json!({"state": state, "description": description, "key": key(context), "name": context}),
            ),
            Provider::BitbucketDc => {
                let (project, name) = repository.split_once('/').unwrap_or((repository, ""));
                let (project, name) = (part(project), part(name));
                (
                    format!("projects/{project}/repos/{name}/commits/{commit}/builds"),
                    json!({"state": state, "description": description, "key": key(context), "name": context}),
                )
            }
        };
        if let (Value::Object(fields), Some(link)) = (&mut body, link) {
            let name = match provider {
                Provider::Bitbucket | Provider::BitbucketDc => "url",
                _ => "target_url",
            };
            fields.insert(name.to_owned(), json!(link));
        }
        Self { url: format!("{api}/{path}"), headers: provider.headers(token), body: Some(body) }
    }
}

pub(super) fn part(text: &str) -> String {
    utf8_percent_encode(text, URL_SEGMENT).to_string()
}

/// Encodes a path whose slashes are to stay.
pub(super) fn parts(text: &str) -> String {
    text.split('/').map(part).collect::<Vec<_>>().join("/")
}

pub(super) fn shorten(text: &str, longest: usize) -> String {
    if text.chars().count() <= longest {
        return text.to_owned();
    }
    text.chars().take(longest - 1).chain(['…']).collect()
}

/// Returns a key that stands for a context; a long one keeps its beginning and stays unique.
fn key(context: &str) -> String {
    if context.chars().count() <= KEY {
        return context.to_owned();
    }
    let digest = hex(&Sha1::digest(context.as_bytes()));
    let begin = context.chars().take(KEY - 9);
    begin.chain(['-']).chain(digest.chars().take(8)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::each_row;

    fn call(provider: Provider, repository: &str) -> Call {
        let status = CommitStatus {
            commit: CommitId::from_bytes([0xab; 20]),
            context: "clade/live/one".to_owned(),
            state: StatusState::Failure,
            description: "x".repeat(200),
            link: Some("https://clade.example.com/".to_owned()),
        };
        Call::status(provider, "https://api", repository, "secret", &status)
    }

    #[test]
    fn each_forge_is_called_in_its_own_way() {
        let commit = "ab".repeat(20);
        let rows = [
            (
                Provider::Github,
                "o/r",
                format!("repos/o/r/statuses/{commit}"),
                "Bearer secret",
                "failure",
            ),
            (
                Provider::Gitlab,
                "g/sub/p",
                format!("projects/g%2Fsub%2Fp/statuses/{commit}"),
                "secret",
                "failed",
            ),
            (
                Provider::Forgejo,
                "o/r",
                format!("repos/o/r/statuses/{commit}"),
                "token secret",
                "failure",
            ),
            (
                Provider::Bitbucket,
                "w/s",
                format!("repositories/w/s/commit/{commit}/statuses/build"),
                "Bearer secret",
                "FAILED",
            ),
            (
                Provider::BitbucketDc,
                "P/r",
                format!("projects/P/repos/r/commits/{commit}/builds"),
                "Bearer secret",
                "FAILED",
            ),
        ];
        each_row(rows, |(provider, repository, url, header, state)| {
            let call = call(provider, repository);
            assert_eq!(call.url, format!("https://api/{url}"));
            assert_eq!(call.headers[0].1, header);
            let body = call.body.unwrap();
            assert_eq!(body["state"], state);
            let description = body["description"].as_str().unwrap();
            assert_eq!(description.chars().count(), DESCRIPTION);
        });
    }

    #[test]
    fn addresses_follow_from_the_repository() {
        assert_eq!(Provider::Github.api_at("github.com"), "https://api.github.com");
        assert_eq!(Provider::Github.api_at("git.example.com"), "https://git.example.com/api/v3");
        assert_eq!(Provider::Github.repository_at("/o/r.git"), "o/r");
        assert_eq!(Provider::BitbucketDc.repository_at("/scm/P/r.git"), "P/r");
    }

    #[test]
    fn long_keys_stay_apart() {
        let (one, two) =
            (key(&format!("{}1", "c".repeat(60))), key(&format!("{}2", "c".repeat(60))));
        assert_eq!((one.len(), two.len()), (KEY, KEY));
        assert_ne!(one, two);
        assert_eq!(key("clade/validate"), "clade/validate");
    }
}
