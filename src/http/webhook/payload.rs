//! Reads what changed from the payload of a delivery. The payload is a hint: nothing in it is trusted, and
//! no address in it is contacted.

use axum::http::HeaderMap;
use serde_json::Value;
use utoipa::IntoParams;
use utoipa::openapi::path::{Parameter, ParameterIn};

use crate::http::openapi::parameters::path_word;
use crate::model::CommitId;

/// A sender of webhooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Provider {
    GitHub,
    GitLab,
    Gitea,
    Forgejo,
    Bitbucket,
    BitbucketDataCenter,
    Generic,
    Standard,
}

/// Whether a delivery is about the watched ref.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Interest {
    /// It is about something else.
    None,
    /// The watched ref changed.
    Something,
    /// The payload names the commit of the watched ref.
    Commit(CommitId),
}

impl Provider {
    pub(super) const ALL: [Self; 8] = [
        Self::GitHub,
        Self::GitLab,
        Self::Gitea,
        Self::Forgejo,
        Self::Bitbucket,
        Self::BitbucketDataCenter,
        Self::Generic,
        Self::Standard,
    ];

    /// Returns the name in the route.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::GitHub => "github",
            Self::GitLab => "gitlab",
            Self::Gitea => "gitea",
            Self::Forgejo => "forgejo",
            Self::Bitbucket => "bitbucket",
            Self::BitbucketDataCenter => "bitbucket-dc",
            Self::Generic => "generic",
            Self::Standard => "standard",
        }
    }

    pub(super) fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.as_str() == word)
    }

    /// Returns the id of a delivery: the same when it is delivered again.
    pub(super) fn delivery(self, headers: &HeaderMap) -> Option<String> {
        let names: &[&str] = match self {
            Self::GitHub => &["x-github-delivery"],
            Self::GitLab => &["idempotency-key", "webhook-id", "x-gitlab-event-uuid"],
            Self::Gitea => &["x-gitea-delivery"],
            Self::Forgejo => &["x-forgejo-delivery", "x-gitea-delivery"],
            Self::Bitbucket => &["x-request-uuid"],
            Self::BitbucketDataCenter | Self::Generic => &["x-request-id"],
            Self::Standard => &["webhook-id"],
        };
        let mut found = names.iter().filter_map(|it| headers.get(*it)?.to_str().ok());
        found.next().map(str::to_owned)
    }
}

impl IntoParams for Provider {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        vec![path_word("provider", &Self::ALL.map(Self::as_str), "Who sends the delivery")]
    }
}

/// Returns whether a delivery is about the watched ref.
pub(super) fn interest(
    provider: Provider,
    headers: &HeaderMap,
    payload: &Value,
    watched: Option<&str>,
    pull_requests: bool,
) -> Interest {
    let event = |name: &str| headers.get(name).and_then(|it| it.to_str().ok()).unwrap_or_default();
    let of_pull_request = || if pull_requests { Interest::Something } else { Interest::None };
    let by_github_names = |event: &str| match event {
        "push" | "create" | "delete" => simple_push(payload, watched),
        "pull_request" | "pull_request_sync" => of_pull_request(),
        _ => Interest::None,
    };
    match provider {
        Provider::GitHub => by_github_names(event("x-github-event")),
        Provider::Gitea => by_github_names(event("x-gitea-event")),
        Provider::Forgejo if headers.contains_key("x-forgejo-event") => {
            by_github_names(event("x-forgejo-event"))
        }
        Provider::Forgejo => by_github_names(event("x-gitea-event")),
        Provider::GitLab => match event("x-gitlab-event") {
            "Push Hook" | "Tag Push Hook" | "System Hook" => simple_push(payload, watched),
            "Merge Request Hook" => of_pull_request(),
            _ => Interest::None,
        },
        Provider::Bitbucket => match event("x-event-key") {
            "repo:push" => any(list(payload, "/push/changes").iter().map(|change| {
                let part = if change.pointer("/new/name").is_some() { "new" } else { "old" };
                let of = |key: &str| text(change, &format!("/{part}/{key}")).unwrap_or_default();
                let kind = if of("type") == "tag" { "tags" } else { "heads" };
                let name = format!("refs/{kind}/{}", of("name"));
                of_ref(Some(&name), text(change, "/new/target/hash"), watched)
            })),
            key if key.starts_with("pullrequest:") => of_pull_request(),
            _ => Interest::None,
        },
        Provider::BitbucketDataCenter => match event("x-event-key") {
            "repo:refs_changed" => any(list(payload, "/changes")
                .iter()
                .map(|change| of_ref(text(change, "/ref/id"), text(change, "/toHash"), watched))),
            key if key.starts_with("pr:") => of_pull_request(),
            _ => Interest::None,
        },
        // Senders of these are written by users: the payload is what most forges send.
        Provider::Generic | Provider::Standard => simple_push(payload, watched),
    }
}

fn text<'a>(value: &'a Value, pointer: &str) -> Option<&'a str> {
    value.pointer(pointer)?.as_str()
}

fn list<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    value.pointer(pointer).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// Reads `ref` and `after`, as most forges send them; `create` and `delete` have a short name.
fn simple_push(payload: &Value, watched: Option<&str>) -> Interest {
    let name = text(payload, "/ref");
    let full = match (name, text(payload, "/ref_type")) {
        (Some(short), Some("branch")) => Some(format!("refs/heads/{short}")),
        (Some(short), Some("tag")) => Some(format!("refs/tags/{short}")),
        (name, _) => name.map(str::to_owned),
    };
    of_ref(full.as_deref(), text(payload, "/after"), watched)
}

fn of_ref(name: Option<&str>, after: Option<&str>, watched: Option<&str>) -> Interest {
    match (name, watched) {
        // Without either name the delivery may be about the watched ref, so it counts.
        (Some(name), Some(watched)) if name != watched => Interest::None,
        // Of an annotated tag they name the tag object, which the branch never shows.
        (Some(name), _) | (None, Some(name)) if name.starts_with("refs/tags/") => {
            Interest::Something
        }
        _ => match after.and_then(|it| it.parse::<CommitId>().ok()) {
            Some(commit) if commit.as_bytes() != &[0; 20] => Interest::Commit(commit),
            _ => Interest::Something,
        },
    }
}

/// Returns the most specific interest of several changes.
fn any(all: impl Iterator<Item = Interest>) -> Interest {
    all.fold(Interest::None, |found, it| match (found, it) {
        (Interest::Commit(_), _) | (_, Interest::None) => found,
        _ => it,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const ONE: &str = "1111111111111111111111111111111111111111";
    const ZERO: &str = "0000000000000000000000000000000000000000";

    fn of(provider: &str, event: (&'static str, &str), payload: &Value) -> Interest {
        of_watched(provider, event, payload, MAIN)
    }

    fn of_watched(
        provider: &str,
        event: (&'static str, &str),
        payload: &Value,
        watched: &str,
    ) -> Interest {
        let mut headers = HeaderMap::new();
        headers.insert(event.0, event.1.parse().unwrap());
        let provider = Provider::of(provider).unwrap();
        interest(provider, &headers, payload, Some(watched), false)
    }

    const MAIN: &str = "refs/heads/main";

    fn push(name: &str, after: &str) -> Value {
        json!({"ref": name, "before": ZERO, "after": after})
    }

    fn one() -> Interest {
        Interest::Commit(ONE.parse().unwrap())
    }

    #[test]
    fn pushes_to_the_watched_ref_matter() {
        for (event, payload, expected) in [
            ("push", push(MAIN, ONE), one()),
            ("push", push("refs/tags/main", ONE), Interest::None),
            ("push", push("refs/heads/main2", ONE), Interest::None),
            ("push", push(MAIN, ZERO), Interest::Something),
            ("create", json!({"ref": "main", "ref_type": "branch"}), Interest::Something),
            ("ping", json!({"zen": "x"}), Interest::None),
            ("pull_request", json!({}), Interest::None),
        ] {
            let found = of("github", ("x-github-event", event), &payload);
            assert_eq!(found, expected, "{event} {payload}");
        }
    }

    #[test]
    fn every_provider_says_a_push_in_its_own_way() {
        for (provider, event, payload, expected) in [
            ("gitea", ("x-gitea-event", "push"), push(MAIN, ONE), one()),
            ("forgejo", ("x-forgejo-event", "push"), push(MAIN, ONE), one()),
            ("forgejo", ("x-gitea-event", "push"), push(MAIN, ONE), one()),
            ("gitlab", ("x-gitlab-event", "Push Hook"), push(MAIN, ONE), one()),
            ("gitlab", ("x-gitlab-event", "Issue Hook"), json!({}), Interest::None),
            ("generic", ("x-none", ""), push(MAIN, ONE), one()),
            ("generic", ("x-none", ""), json!({}), Interest::Something),
            ("generic", ("x-none", ""), json!(["odd", {"shape": null}]), Interest::Something),
            (
                "standard",
                ("x-none", ""),
                json!({"type": "push", "ref": "refs/heads/x"}),
                Interest::None,
            ),
        ] {
            assert_eq!(of(provider, event, &payload), expected, "{provider} {event:?} {payload}");
        }
    }

    #[test]
    fn one_of_the_changes_of_a_bitbucket_push_is_enough() {
        let branch = json!({"type": "branch", "name": "main", "target": {"hash": ONE}});
        let tag = json!({"type": "tag", "name": "main", "target": {"hash": ONE}});
        for (new, expected) in
            [(branch, one()), (Value::Null, Interest::Something), (tag, Interest::None)]
        {
            let payload = json!({"push": {"changes": [
                {"new": {"type": "branch", "name": "other", "target": {"hash": ZERO}}},
                {"new": new, "old": {"type": "branch", "name": "main"}}]}});
            let found = of("bitbucket", ("x-event-key", "repo:push"), &payload);
            assert_eq!(found, expected, "{payload}");
        }
        let refs = |name: &str| json!({"changes": [{"ref": {"id": "refs/tags/main"}}, {"ref": {"id": name}, "toHash": ONE}]});
        for (event, payload, expected) in [
            ("repo:refs_changed", refs(MAIN), one()),
            ("repo:refs_changed", refs("refs/heads/x"), Interest::None),
            ("diagnostics:ping", json!({"test": true}), Interest::None),
        ] {
            let found = of("bitbucket-dc", ("x-event-key", event), &payload);
            assert_eq!(found, expected, "{event} {payload}");
        }
    }

    /// What a forge sends of an annotated tag is the id of the tag, not that of its commit.
    #[test]
    fn a_push_of_the_watched_tag_names_no_commit() {
        let tag = json!({"type": "tag", "name": "v1", "target": {"hash": ONE}});
        for (provider, event, payload) in [
            ("github", ("x-github-event", "push"), push("refs/tags/v1", ONE)),
            ("gitlab", ("x-gitlab-event", "Tag Push Hook"), push("refs/tags/v1", ONE)),
            ("generic", ("x-none", ""), json!({"after": ONE})),
            (
                "bitbucket",
                ("x-event-key", "repo:push"),
                json!({"push": {"changes": [{"new": tag}]}}),
            ),
            (
                "bitbucket-dc",
                ("x-event-key", "repo:refs_changed"),
                json!({"changes": [{"ref": {"id": "refs/tags/v1"}, "toHash": ONE}]}),
            ),
        ] {
            let found = of_watched(provider, event, &payload, "refs/tags/v1");
            assert_eq!(found, Interest::Something, "{provider} {payload}");
        }
    }

    #[test]
    fn pull_requests_matter_where_their_refs_are_fetched() {
        let mut headers = HeaderMap::new();
        headers.insert("x-github-event", "pull_request".parse().unwrap());
        let of =
            |fetched| interest(Provider::GitHub, &headers, &json!({"number": 1}), None, fetched);
        assert_eq!((of(true), of(false)), (Interest::Something, Interest::None));
    }
}
