//! Writes beside refs of the remote that are not followed.

use serde_json::json;

use super::remotes::{add_malformed, file_url};
use super::{Hub, ROOT, has_git, post};
use crate::git::server::{Server, http_backend};
use crate::program::{Daemon, serve};

#[test]
fn a_pull_request_at_a_malformed_commit_keeps_nothing_from_being_written() {
    if !has_git() {
        return;
    }
    for over_http in [true, false] {
        for mode in ["commit", "propose"] {
            let hub = Hub::new(&[("groups/a.yaml", "name: A\n")]);
            let malformed = add_malformed(&hub);
            hub.inner.reference("refs/pull/1/head", malformed, true, "").unwrap();
            let after = hub.head().unwrap().id();
            hub.inner.reference("refs/pull/2/head", after, true, "").unwrap();
            hub.commit("More", &[("groups/b.yaml", "name: B\n")]);
            let directory = hub.path().parent().unwrap().to_owned();
            let server = Server::http(move |request| http_backend(&directory, request));
            let url = match over_http {
                true => format!("http://127.0.0.1:{}/hub.git", server.port),
                false => file_url(&hub),
            };
            let data = tempfile::tempdir().unwrap();
            let arguments = ["--repo", &url, "--data-dir", data.path().to_str().unwrap()];
            let open = ["--allow-insecure-remotes", "--git-proxy", "none", "--writes", mode];
            let daemon = Daemon::launch(serve(&[&arguments[..], &open].concat()));
            // The same proposal again has the same branch.
            for name in ["M", "N", "N"] {
                let body = json!({"name": name, "parent": ROOT, "classes": {}});
                let written = post(&daemon, "/v1/groups", &body);
                let expected: &[u16] = if mode == "commit" { &[303, 422] } else { &[202] };
                assert!(expected.contains(&written.status), "{url} {mode}: {}", written.body);
            }
            let made = if mode == "commit" { "refs/heads/main" } else { "refs/heads/clade/*" };
            let made = hub.inner.references_glob(made).unwrap().count();
            assert_eq!(made, if mode == "commit" { 1 } else { 2 });
            assert_eq!(hub.show("groups/n.yaml").is_some(), mode == "commit");
        }
    }
}
