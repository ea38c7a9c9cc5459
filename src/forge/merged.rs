//! The pull request that a commit came from, as the messages of forges name it.

use percent_encoding::utf8_percent_encode;

use super::{Forge, Provider};
use crate::config::without_secrets;
use crate::model::{CommitId, URL_PATH};

/// A pull request that a commit came from; GitLab calls it a merge request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergedPullRequest {
    /// Its number.
    pub number: u64,
    /// Its page, where the forge is known.
    pub url: Option<String>,
}

/// The pages of a repository on its forge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForgePages {
    /// Whose forge it is; none where neither settings nor the host say so.
    provider: Option<Provider>,
    /// Scheme and host, without a slash at the end.
    base: String,
    /// The repository, such as `owner/name`.
    repository: String,
}

/// How a message names a pull request, which most often says whose forge it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MessageForm {
    /// `Merge pull request #12 from owner/branch`
    Github,
    /// `Merge pull request 'Title' (#12) from branch into main`, `Reviewed-on: …/pulls/12`
    Gitea,
    /// `See merge request group/project!12`
    Gitlab,
    /// `Merged in branch (pull request #12)`
    Bitbucket,
    /// `Pull request #12: Title`, `Merge pull request #12 in PROJECT/name from branch to main`
    BitbucketDc,
    /// `Merged PR 12: Title`
    Azure,
    /// `Title (#12)`: most forges squash so, and elsewhere it may be an issue.
    Squash,
}

/// What a message says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mention<'m> {
    form: MessageForm,
    number: u64,
    /// The project that the message names, of GitLab.
    project: Option<&'m str>,
}

impl ForgePages {
    /// Returns the pages of the repository whose forge is configured.
    pub fn of_forge(forge: &Forge) -> Self {
        // Links are shown to everyone.
        let api = without_secrets(forge.api.trim_end_matches('/'));
        let base = match &*api {
            "https://api.github.com" => "https://github.com",
            "https://api.bitbucket.org/2.0" => "https://bitbucket.org",
            _ => ["/api/v3", "/api/v4", "/api/v1", "/rest/api/latest", "/rest/api/1.0"]
                .iter()
                .find_map(|end| api.strip_suffix(end))
                .unwrap_or(&api),
        };
        let repository = forge.repository.clone();
        Self { provider: Some(forge.provider), base: base.to_owned(), repository }
    }

    /// Returns the pages of a repository that is fetched from a host, whose name often says whose forge it
    /// is. The scheme is that of the pages: a clone over ssh has pages over `https`.
    pub fn at(scheme: PageScheme, authority: &str, path: &str) -> Self {
        // Hosts for ssh through port 443.
        let authority = match authority {
            "ssh.github.com" => "github.com",
            "altssh.gitlab.com" => "gitlab.com",
            "altssh.bitbucket.org" => "bitbucket.org",
            other => other,
        };
        let host = authority.split(':').next().unwrap_or_default();
        let provider = provider_of(host);
        let path = path.trim_start_matches("/~/");
        let repository = provider.unwrap_or(Provider::Github).repository_at(path);
        let scheme = match scheme {
            PageScheme::Http => "http",
            PageScheme::Https => "https",
        };
        Self { provider, base: format!("{scheme}://{authority}"), repository }
    }

    /// Returns the page of a commit, where it is known whose forge it is.
    pub fn commit(&self, id: &CommitId) -> Option<String> {
        let (provider, repository) = self.repository_page()?;
        Some(match provider {
            Provider::Github | Provider::Gitea | Provider::Forgejo => {
                format!("{repository}/commit/{id}")
            }
            Provider::Gitlab => format!("{repository}/-/commit/{id}"),
            Provider::Bitbucket | Provider::BitbucketDc => format!("{repository}/commits/{id}"),
        })
    }

    /// Returns the page of a file at a commit, by its path in the repository, at a line of it.
    pub fn file(&self, commit: &CommitId, path: &str, line: Option<u32>) -> Option<String> {
        let (provider, repository) = self.repository_page()?;
        let path = utf8_percent_encode(path, URL_PATH);
        let (page, anchor) = match provider {
            Provider::Github => (format!("{repository}/blob/{commit}/{path}"), "L"),
            Provider::Gitea | Provider::Forgejo => {
                (format!("{repository}/src/commit/{commit}/{path}"), "L")
            }
            Provider::Gitlab => (format!("{repository}/-/blob/{commit}/{path}"), "L"),
            Provider::Bitbucket => (format!("{repository}/src/{commit}/{path}"), "lines-"),
            Provider::BitbucketDc => (format!("{repository}/browse/{path}?at={commit}"), ""),
        };
        Some(line.map_or_else(|| page.clone(), |line| format!("{page}#{anchor}{line}")))
    }

    /// Returns whose forge it is, and the page of the repository there.
    fn repository_page(&self) -> Option<(Provider, String)> {
        let Self { base, repository, .. } = self;
        let provider = self.provider.filter(|_| is_plain(repository))?;
        if provider == Provider::BitbucketDc {
            let path = repository.strip_prefix("scm/").unwrap_or(repository);
            let (project, name) = path.split_once('/')?;
            return Some((provider, format!("{base}/projects/{project}/repos/{name}")));
        }
        Some((provider, format!("{base}/{repository}")))
    }

    /// Returns the page of a pull request that a message names; none if it is one of another forge, such as
    /// of one that the repository moved away from.
    fn url(&self, mention: Mention<'_>) -> Option<String> {
        let Self { base, repository, .. } = self;
        let project = mention.project.unwrap_or(repository);
        if !is_plain(project) || !is_plain(repository) {
            return None;
        }
        let number = mention.number;
        let provider = match (self.provider, mention.form) {
            (Some(provider), form) if form.is_of(provider) => provider,
            (None, MessageForm::Github) => Provider::Github,
            (None, MessageForm::Gitea) => Provider::Gitea,
            (None, MessageForm::Gitlab) => Provider::Gitlab,
            (None, MessageForm::BitbucketDc) => Provider::BitbucketDc,
            _ => return None,
        };
        Some(match provider {
            Provider::Github => format!("{base}/{repository}/pull/{number}"),
            Provider::Gitea | Provider::Forgejo => format!("{base}/{repository}/pulls/{number}"),
            Provider::Gitlab => format!("{base}/{project}/-/merge_requests/{number}"),
            Provider::Bitbucket => format!("{base}/{repository}/pull-requests/{number}"),
            Provider::BitbucketDc => {
                let path = repository.strip_prefix("scm/").unwrap_or(repository);
                let (project, name) = path.split_once('/')?;
                format!("{base}/projects/{project}/repos/{name}/pull-requests/{number}")
            }
        })
    }
}

/// Returns whether a text can stand in the path of an address as it is.
fn is_plain(text: &str) -> bool {
    text.bytes().all(|it| it.is_ascii_alphanumeric() || b"-._~/".contains(&it))
        && !text.split('/').any(|it| matches!(it, "" | "." | ".."))
}

/// The scheme of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageScheme {
    /// `http`
    Http,
    /// `https`
    Https,
}

/// Returns the pull request that a commit came from, by its message: the merge of one, or a commit that one
/// was squashed into. Without pages, or if they are those of another forge, only its number is known.
pub fn merged_pull_request(message: &str, pages: Option<&ForgePages>) -> Option<MergedPullRequest> {
    let mention = mention(message)?;
    let is_issue = |provider: Provider| {
        mention.form == MessageForm::Squash
            && !matches!(provider, Provider::Github | Provider::Gitea | Provider::Forgejo)
    };
    if pages.and_then(|it| it.provider).is_some_and(is_issue) {
        return None;
    }
    let url = pages.and_then(|it| it.url(mention));
    Some(MergedPullRequest { number: mention.number, url })
}

impl MessageForm {
    /// Returns whether a forge writes messages of this form.
    fn is_of(self, provider: Provider) -> bool {
        match provider {
            Provider::Github => matches!(self, Self::Github | Self::Squash),
            Provider::Gitea | Provider::Forgejo => matches!(self, Self::Gitea | Self::Squash),
            Provider::Gitlab => self == Self::Gitlab,
            Provider::Bitbucket => self == Self::Bitbucket,
            Provider::BitbucketDc => self == Self::BitbucketDc,
        }
    }
}

/// Returns whose forge a host most likely is.
fn provider_of(host: &str) -> Option<Provider> {
    match host {
        "github.com" => return Some(Provider::Github),
        "bitbucket.org" => return Some(Provider::Bitbucket),
        "codeberg.org" => return Some(Provider::Forgejo),
        _ => {}
    }
    [
        ("github", Provider::Github),
        ("gitlab", Provider::Gitlab),
        ("gitea", Provider::Gitea),
        ("forgejo", Provider::Forgejo),
        ("bitbucket", Provider::BitbucketDc),
    ]
    .into_iter()
    .find_map(|(label, provider)| host.split('.').any(|it| it == label).then_some(provider))
}

/// Reads a message.
fn mention(message: &str) -> Option<Mention<'_>> {
    let mut lines = message.lines().map(str::trim).filter(|it| !it.is_empty());
    let subject = lines.next()?;
    // The last of several trailers is that of the last merge.
    let trailer = lines.rev().find_map(of_trailer);
    of_subject(subject).or(trailer).or_else(|| squashed(subject))
}

fn of_subject(subject: &str) -> Option<Mention<'_>> {
    let found = |form, number| Some(Mention { form, number, project: None });
    if let Some(rest) = subject.strip_prefix("Merge pull request #") {
        let (number, rest) = number(rest)?;
        return match rest.split_whitespace().next()? {
            "from" => found(MessageForm::Github, number),
            "in" => found(MessageForm::BitbucketDc, number),
            _ => None,
        };
    }
    if let Some(rest) = subject.strip_prefix("Merge pull request '") {
        let (_, rest) = rest.rsplit_once("' (")?;
        let (number, rest) = number(rest.strip_prefix(['#', '!'])?)?;
        return rest.starts_with(") from ").then(|| found(MessageForm::Gitea, number))?;
    }
    if let Some(rest) = subject.strip_prefix("Merged in ") {
        let (number, rest) = number(rest.rsplit_once(" (pull request #")?.1)?;
        return (rest == ")").then(|| found(MessageForm::Bitbucket, number))?;
    }
    for (start, form) in
        [("Pull request #", MessageForm::BitbucketDc), ("Merged PR ", MessageForm::Azure)]
    {
        if let Some(rest) = subject.strip_prefix(start) {
            let (number, rest) = number(rest)?;
            return rest.starts_with(": ").then(|| found(form, number))?;
        }
    }
    None
}

/// Reads a line of the body that a forge adds to the message of a merge.
fn of_trailer(line: &str) -> Option<Mention<'_>> {
    if let Some(rest) = line.strip_prefix("See merge request ") {
        let (project, rest) = rest.rsplit_once('!')?;
        let (number, rest) = number(rest)?;
        let project = Some(project).filter(|it| !it.is_empty());
        return rest.is_empty().then_some(Mention { form: MessageForm::Gitlab, number, project });
    }
    let page = line.strip_prefix("Reviewed-on: ")?;
    let (number, rest) = number(page.rsplit_once("/pulls/")?.1)?;
    rest.is_empty().then_some(Mention { form: MessageForm::Gitea, number, project: None })
}

/// Reads the number behind the title of a commit that a pull request was squashed into.
fn squashed(subject: &str) -> Option<Mention<'_>> {
    let rest = subject.strip_suffix(')')?;
    let (number, rest) = number(rest.rsplit_once(" (#")?.1)?;
    rest.is_empty().then_some(Mention { form: MessageForm::Squash, number, project: None })
}

/// Reads a number, and returns what is behind it.
fn number(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|it: char| !it.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    let number = digits.parse().ok().filter(|it| *it > 0)?;
    Some((number, rest))
}

#[cfg(test)]
mod tests;
