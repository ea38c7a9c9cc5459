//! Webhooks: a signed push triggers a fetch at once, any other request does nothing.

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use super::{group, live, wait_for};
use crate::program::{Daemon, GitRepository, Response};

const SECRET: &str = "It's a Secret to Everybody";

fn sign(body: &[u8]) -> String {
    let mut mac: Hmac<Sha256> = Hmac::new_from_slice(SECRET.as_bytes()).unwrap();
    mac.update(body);
    let made = mac.finalize().into_bytes();
    made.iter().fold("sha256=".to_owned(), |hex, it| hex + &format!("{it:02x}"))
}

fn deliver(daemon: &Daemon, headers: &[(&str, &str)], body: &str) -> Response {
    deliver_to(daemon, "github", headers, body)
}

fn deliver_to(daemon: &Daemon, provider: &str, headers: &[(&str, &str)], body: &str) -> Response {
    let line = |head: String, (name, value): &(&str, &str)| head + &format!("{name}: {value}\r\n");
    let head = headers.iter().fold(String::new(), line);
    daemon.request_with("POST", &format!("/webhook/{provider}"), &head, body)
}

fn start(repository: &GitRepository, secrets: &tempfile::TempDir) -> Daemon {
    start_on(repository, secrets, &[])
}

fn start_on(repository: &GitRepository, secrets: &tempfile::TempDir, more: &[&str]) -> Daemon {
    let file = secrets.path().join("secrets");
    std::fs::write(&file, format!("{SECRET}\nthe next one\n")).unwrap();
    let data = secrets.path().join("data");
    // Without a webhook, the next fetch would be an hour later.
    let path = repository.text_path();
    let own = [
        "--repo",
        &path,
        "--data-dir",
        data.to_str().unwrap(),
        "--interval",
        "1h",
        "--webhook-secret-file",
        file.to_str().unwrap(),
    ];
    Daemon::start(&[&own[..], more].concat())
}

#[test]
fn a_signed_push_is_seen_at_once_and_once() {
    let repository = GitRepository::new();
    let first = repository.commit("first", &[("groups/a.yaml", &group("A"))]);
    let directory = tempfile::tempdir().unwrap();
    let daemon = start(&repository, &directory);
    wait_for(&daemon, &first);
    let second = repository.commit("second", &[("groups/b.yaml", &group("B"))]);
    let body = format!(r#"{{"ref": "refs/heads/main", "before": "{first}", "after": "{second}"}}"#);
    let signature = sign(body.as_bytes());
    let headers = [
        ("X-Hub-Signature-256", signature.as_str()),
        ("X-GitHub-Event", "push"),
        ("X-GitHub-Delivery", "one"),
    ];
    for (headers, body, status) in [
        (&headers[1..], body.as_str(), 401),
        (&[("X-Hub-Signature-256", "sha256=00"), headers[1]][..], &body, 401),
        (&headers, &format!("{body} "), 401),
    ] {
        let answer = deliver(&daemon, headers, body);
        assert_eq!(
            (answer.status, answer.json()["kind"].as_str()),
            (status, Some("user-unauthenticated"))
        );
    }
    assert_eq!(live(&daemon).as_deref(), Some(first.as_str()));
    let answer = deliver(&daemon, &headers, &body);
    assert_eq!((answer.status, answer.json()["action"].as_str()), (202, Some("fetch")));
    wait_for(&daemon, &second);
    let again = deliver(&daemon, &headers, &body);
    assert_eq!((again.status, again.json()["action"].as_str()), (200, Some("duplicate")));
    let other =
        r#"{"ref": "refs/heads/other", "after": "1234567890123456789012345678901234567890"}"#;
    let signature = sign(other.as_bytes());
    let headers = [("X-Hub-Signature-256", signature.as_str()), ("X-GitHub-Event", "push")];
    let answer = deliver(&daemon, &headers, other);
    assert_eq!((answer.status, answer.json()["action"].as_str()), (200, Some("ignored")));
    // One that cannot be read is not taken for handled.
    let signature = sign(b"not JSON");
    let headers = [("X-Hub-Signature-256", signature.as_str()), ("X-GitHub-Delivery", "two")];
    for _ in 0..2 {
        let refused = deliver(&daemon, &headers, "not JSON");
        let body = refused.json()["details"]["body"].clone();
        assert_eq!((refused.status, body.as_str()), (400, Some("not JSON")));
    }
    // What a script sends need not say what happened; all others say it.
    let signature = sign(b"");
    for (provider, header, status) in
        [("generic", "X-Signature", 202), ("github", "X-Hub-Signature-256", 400)]
    {
        let answer = deliver_to(&daemon, provider, &[(header, signature.as_str())], "");
        assert_eq!(answer.status, status, "{provider}: {}", answer.body);
    }
    let metrics = daemon.get("/metrics").body;
    for line in [
        "clade_webhook_requests_total{provider=\"github\",result=\"unauthenticated\"} 3",
        "clade_webhook_requests_total{provider=\"github\",result=\"malformed\"} 3",
        "clade_webhook_requests_total{provider=\"github\",result=\"accepted\"} 1",
        "clade_webhook_requests_total{provider=\"github\",result=\"duplicate\"} 1",
        "clade_webhook_requests_total{provider=\"github\",result=\"ignored\"} 1",
    ] {
        assert!(metrics.lines().any(|it| it == line), "{line} is not in {metrics}");
    }
}

#[test]
fn a_webhook_that_is_early_is_remembered_until_the_commit_shows() {
    let repository = GitRepository::new();
    let first = repository.commit("first", &[("groups/a.yaml", &group("A"))]);
    let second = repository.commit("second", &[("groups/b.yaml", &group("B"))]);
    let set = |commit: &str| {
        let commit = commit.parse().unwrap();
        repository.git().reference("refs/heads/main", commit, true, "").unwrap();
    };
    set(&first);
    let directory = tempfile::tempdir().unwrap();
    let daemon = start(&repository, &directory);
    wait_for(&daemon, &first);
    let body = format!(r#"{{"ref": "refs/heads/main", "after": "{second}"}}"#);
    let signature = sign(body.as_bytes());
    let headers = [("X-Hub-Signature-256", signature.as_str()), ("X-GitHub-Event", "push")];
    assert_eq!(deliver(&daemon, &headers, &body).status, 202);
    daemon.wait_until("the first look came to nothing", |it| {
        it.get("/metrics")
            .body
            .contains("clade_source_fetches_total{trigger=\"webhook\",outcome=\"unchanged\"}")
    });
    let status = daemon.get("/controller/status").json();
    assert_eq!(status["remote"]["expected"][0], second.as_str());
    set(&second);
    wait_for(&daemon, &second);
    let status = daemon.get("/controller/status").json();
    assert_eq!(status["remote"]["expected"].as_array().unwrap().len(), 0);
}

/// The payload has the id of the tag object, which is never the head.
#[test]
fn a_moved_annotated_tag_is_seen_at_once_and_not_waited_for() {
    let repository = GitRepository::new();
    let first = repository.commit("first", &[("groups/a.yaml", &group("A"))]);
    let tag = |commit: &str| {
        let (git, who) = (repository.git(), git2::Signature::now("a", "a@example.com").unwrap());
        let commit = git.find_object(commit.parse().unwrap(), None).unwrap();
        git.tag("v1", &commit, &who, "a release", true).unwrap().to_string()
    };
    tag(&first);
    let directory = tempfile::tempdir().unwrap();
    let daemon = start_on(&repository, &directory, &["--branch", "v1"]);
    wait_for(&daemon, &first);
    let second = repository.commit("second", &[("groups/b.yaml", &group("B"))]);
    let body = format!(r#"{{"ref": "refs/tags/v1", "after": "{}"}}"#, tag(&second));
    let signature = sign(body.as_bytes());
    let headers = [("X-Hub-Signature-256", signature.as_str()), ("X-GitHub-Event", "push")];
    assert_eq!(deliver(&daemon, &headers, &body).status, 202);
    wait_for(&daemon, &second);
    let status = daemon.get("/controller/status").json();
    assert_eq!(status["remote"]["expected"].as_array().unwrap().len(), 0);
}

#[test]
fn a_large_delivery_is_checked_but_not_kept() {
    let repository = GitRepository::new();
    let first = repository.commit("first", &[("groups/a.yaml", &group("A"))]);
    let directory = tempfile::tempdir().unwrap();
    let daemon = start(&repository, &directory);
    wait_for(&daemon, &first);
    let large = format!("{{\"x\": \"{}\"}}", "x".repeat(25 << 20));
    let signature = sign(large.as_bytes());
    let headers = [("X-Hub-Signature-256", signature.as_str()), ("X-GitHub-Event", "push")];
    assert_eq!(deliver(&daemon, &headers, &large).status, 202);
    let too_large = format!("{large}{}", " ".repeat(2 << 20));
    let signature = sign(too_large.as_bytes());
    let headers = [("X-Hub-Signature-256", signature.as_str()), ("X-GitHub-Event", "push")];
    assert_eq!(deliver(&daemon, &headers, &too_large).status, 413);
}
