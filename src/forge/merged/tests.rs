//! Messages as forges write them.

use std::path::PathBuf;

use super::*;

const GITLAB: &str = "Merge branch 'feature/ntp' into 'main'\n\nUse the pool of the house\n\nCloses #7\n\nSee merge request ops/puppet/groups!42\n";
const GITEA: &str = "Merge pull request 'Use the pool' (#12) from ntp into main\n\nReviewed-on: https://gitea.example.com/ops/groups/pulls/12\nReviewed-by: Ada <ada@example.com>\n";
const GITEA_SQUASHED: &str =
    "Use the pool\n\nReviewed-on: https://codeberg.org/ops/groups/pulls/13\n";

#[test]
fn numbers_are_read_from_what_forges_write() {
    for (message, expected) in [
        ("Merge pull request #12 from ada/ntp\n\nUse the pool", Some(12)),
        ("Merge pull request #12 from ada/ntp (#11)", Some(12)),
        ("Use the pool (#12)", Some(12)),
        ("Use the pool (#12)\n\n* one\n* two (#9)", Some(12)),
        ("Revert \"Use the pool (#12)\" (#13)", Some(13)),
        ("Revert \"Use the pool (#12)\"", None),
        ("Use the pool (fixes #12)", None),
        ("Use the pool #12", None),
        ("Use the pool (#12), again", None),
        ("Use the pool(#12)", None),
        ("Use the pool (#0)", None),
        ("Use the pool (#99999999999999999999999)", None),
        ("Use the pool (#)", None),
        (GITLAB, Some(42)),
        ("Merge branch 'a' into 'main'\n\nSee merge request !42", Some(42)),
        ("Merge branch 'a' into 'main'\n\nSee merge request g/p!42 for more", None),
        ("Merge branch 'ntp' into main", None),
        (GITEA, Some(12)),
        (GITEA_SQUASHED, Some(13)),
        ("Merge pull request 'It is (#3) odd' (!14) from a into b", Some(14)),
        ("Merge pull request 'no number' from a into b", None),
        ("Merged in ntp-pool (pull request #15)\n\nUse the pool\n\nApproved-by: Bob", Some(15)),
        ("Merged in ntp-pool", None),
        ("Pull request #16: OPS-1 Use the pool\n\nMerge in OPS/groups from ntp to main", Some(16)),
        ("Merge pull request #17 in OPS/groups from ntp to main", Some(17)),
        ("Pull request #16 is the one", None),
        ("Merged PR 18: Use the pool", Some(18)),
        ("", None),
        ("\n\n", None),
    ] {
        let found = merged_pull_request(message, None);
        assert_eq!(found.as_ref().map(|it| it.number), expected, "{message}");
        assert!(found.is_none_or(|it| it.url.is_none()), "{message}");
    }
}

fn url(pages: &ForgePages, message: &str) -> Option<String> {
    merged_pull_request(message, Some(pages))?.url
}

#[test]
fn pages_are_those_of_the_host() {
    let at = |authority: &str, path: &str| ForgePages::at(PageScheme::Https, authority, path);
    let merge = "Merge pull request #12 from ada/ntp";
    let squash = "Use the pool (#12)";
    for (pages, message, expected) in [
        (at("github.com", "/ops/groups.git"), merge, Some("https://github.com/ops/groups/pull/12")),
        (at("github.com", "/ops/groups"), squash, Some("https://github.com/ops/groups/pull/12")),
        // The form says that it is GitHub Enterprise; `(#12)` alone does not.
        (at("git.corp", "/o/r.git"), merge, Some("https://git.corp/o/r/pull/12")),
        (at("git.corp", "/o/r.git"), squash, None),
        (
            at("git.corp", "/o/r.git"),
            GITLAB,
            Some("https://git.corp/ops/puppet/groups/-/merge_requests/42"),
        ),
        (at("git.corp:8443", "/o/r.git"), GITEA, Some("https://git.corp:8443/o/r/pulls/12")),
        (
            at("gitlab.com", "/g/p.git"),
            GITLAB,
            Some("https://gitlab.com/ops/puppet/groups/-/merge_requests/42"),
        ),
        (
            at("gitlab.com", "/g/p.git"),
            "M\n\nSee merge request !4",
            Some("https://gitlab.com/g/p/-/merge_requests/4"),
        ),
        (
            at("codeberg.org", "/ops/groups"),
            GITEA_SQUASHED,
            Some("https://codeberg.org/ops/groups/pulls/13"),
        ),
        (
            at("bitbucket.org", "/o/r.git"),
            "Merged in ntp (pull request #15)",
            Some("https://bitbucket.org/o/r/pull-requests/15"),
        ),
        (
            at("bitbucket.corp", "/scm/ops/r.git"),
            "Pull request #16: T",
            Some("https://bitbucket.corp/projects/ops/repos/r/pull-requests/16"),
        ),
        // The numbers are those of the forge that the repository was at before.
        (at("github.com", "/o/r"), GITLAB, None),
        (at("gitlab.com", "/o/r"), merge, None),
        // Neither a path nor a message makes a link to elsewhere.
        (at("git.corp", "/o/../r\"><script>"), merge, None),
        (at("gitlab.com", "/g/p"), "M\n\nSee merge request ../../evil!4", None),
        (at("gitlab.com", "/g/p"), "M\n\nSee merge request //evil.com/x!4", None),
    ] {
        assert_eq!(url(&pages, message).as_deref(), expected, "{pages:?} {message}");
    }
    // There, it is an issue.
    assert_eq!(merged_pull_request(squash, Some(&at("gitlab.com", "/g/p"))), None);
    let http = ForgePages::at(PageScheme::Http, "gitea.local:3000", "/o/r.git");
    assert_eq!(url(&http, squash).as_deref(), Some("http://gitea.local:3000/o/r/pulls/12"));
}

#[test]
fn pages_are_those_of_the_configured_forge() {
    let squash = "Use the pool (#12)";
    for (provider, host, repository, message, expected) in [
        (Provider::Github, "github.com", "o/r", squash, "https://github.com/o/r/pull/12"),
        (Provider::Github, "git.corp", "o/r", squash, "https://git.corp/o/r/pull/12"),
        (Provider::Gitea, "git.corp", "o/r", squash, "https://git.corp/o/r/pulls/12"),
        (
            Provider::Gitlab,
            "git.corp",
            "o/r",
            "M\n\nSee merge request !1",
            "https://git.corp/o/r/-/merge_requests/1",
        ),
        (
            Provider::Bitbucket,
            "bitbucket.org",
            "o/r",
            "Merged in b (pull request #1)",
            "https://bitbucket.org/o/r/pull-requests/1",
        ),
        (
            Provider::BitbucketDc,
            "git.corp",
            "P/r",
            "Pull request #1: T",
            "https://git.corp/projects/P/repos/r/pull-requests/1",
        ),
    ] {
        let forge = Forge {
            provider,
            api: provider.api_at(host),
            repository: repository.to_owned(),
            token_file: PathBuf::new(),
            ca_file: None,
        };
        assert_eq!(url(&ForgePages::of_forge(&forge), message).as_deref(), Some(expected));
    }
}

#[test]
fn commits_and_files_have_pages() {
    let id: CommitId = "1234567890123456789012345678901234567890".parse().unwrap();
    for (provider, host, repository, commit, file) in [
        (Provider::Github, "github.com", "o/r", "/o/r/commit/ID", "/o/r/blob/ID/a%20b/c.yaml#L3"),
        (Provider::Gitea, "g.io", "o/r", "/o/r/commit/ID", "/o/r/src/commit/ID/a%20b/c.yaml#L3"),
        (Provider::Gitlab, "g.io", "o/r", "/o/r/-/commit/ID", "/o/r/-/blob/ID/a%20b/c.yaml#L3"),
        (
            Provider::Bitbucket,
            "bitbucket.org",
            "o/r",
            "/o/r/commits/ID",
            "/o/r/src/ID/a%20b/c.yaml#lines-3",
        ),
        (
            Provider::BitbucketDc,
            "g.io",
            "scm/P/r",
            "/projects/P/repos/r/commits/ID",
            "/projects/P/repos/r/browse/a%20b/c.yaml?at=ID#3",
        ),
    ] {
        let (base, repository) = (format!("https://{host}"), repository.to_owned());
        let pages = ForgePages { provider: Some(provider), base: base.clone(), repository };
        let whole = |path: &str| Some(base.clone() + &path.replace("ID", &id.to_string()));
        assert_eq!(pages.commit(&id), whole(commit));
        assert_eq!(pages.file(&id, "a b/c.yaml", Some(3)), whole(file));
        let unknown = ForgePages { provider: None, ..pages };
        assert_eq!((unknown.commit(&id), unknown.file(&id, "a", None)), (None, None));
    }
}
