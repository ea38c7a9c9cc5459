//! Responses of a remote that are not git's protocol, or arrive damaged: they say nothing of the objects on disk.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::server::{Server, has_git, http_backend};
use crate::program::Daemon;
use crate::repository::{Origin, Put};
use crate::table::each_row;

/// What becomes of an answer of the server.
type Garble = fn(&str, Vec<u8>) -> Vec<u8>;

/// Puts bytes that have no length in the place of the refs.
fn no_packets(method: &str, answer: Vec<u8>) -> Vec<u8> {
    if method == "POST" {
        return answer;
    }
    let body = "001e# service=git-upload-pack\n0000zzzzgarbage";
    let head = "HTTP/1.1 200 OK\r\nConnection: close\r\n\
                Content-Type: application/x-git-upload-pack-advertisement\r\n";
    format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

/// Turns a bit of an object.
fn damaged_object(method: &str, mut answer: Vec<u8>) -> Vec<u8> {
    if method == "POST"
        && let Some(pack) = answer.windows(4).position(|it| it == b"PACK")
    {
        answer[pack + 30] ^= 1;
    }
    answer
}

#[test]
fn a_malformed_response_leaves_the_mirror_as_it_is() {
    if !has_git() {
        return;
    }
    let rows: [(&str, Garble); 2] = [("refs", no_packets), ("an object", damaged_object)];
    each_row(rows, |(_, garble)| {
        let (origin, _) = Origin::with_a_commit();
        let (directory, is_garbled) = (origin.path(), Arc::new(AtomicBool::new(false)));
        let garbles = Arc::clone(&is_garbled);
        let server = Server::http(move |request| {
            let answer = http_backend(directory.parent().unwrap(), request);
            match garbles.load(Ordering::SeqCst) {
                true => garble(&request.method, answer),
                false => answer,
            }
        });
        let data = tempfile::tempdir().unwrap();
        let url = format!("http://127.0.0.1:{}/groups.git", server.port);
        let remote = ["--allow-insecure-remotes", "--git-proxy", "none", "--interval", "1h"];
        let stored = ["--repo", &url, "--data-dir", data.path().to_str().unwrap()];
        let daemon = Daemon::start(&[&stored, &remote[..]].concat());
        let fetch_until = |key: &str, commit: &str| {
            daemon.request("POST", "/controller/reconcile", "");
            daemon.wait_until(commit, |it| {
                it.get("/controller/status").json()[key]["commit"] == *commit
            });
        };
        // A commit that is only here afterwards.
        let second = origin.commit("main", &[("groups/web.yaml", Put::File("name: W\n"))]);
        fetch_until("active", &second);
        let third = origin.rewrite("main", &[("groups/web.yaml", Put::File("name: X\n"))]);
        is_garbled.store(true, Ordering::SeqCst);
        daemon.request("POST", "/controller/reconcile", "");
        let conditions =
            |it: &Daemon| it.get("/controller/status").json()["conditions"].to_string();
        daemon.wait_until("it is said", |it| conditions(it).contains("malformed response"));
        let found = conditions(&daemon);
        assert!(!found.contains("CorruptObjects"), "{found}");
        is_garbled.store(false, Ordering::SeqCst);
        fetch_until("observed", &third);
        assert!(!data.path().join("mirror.git.broken").exists());
        let former = daemon.get(&format!("/v1/groups?commit={second}"));
        assert_eq!(former.status, 200, "{}", former.body);
        let log = daemon.log_lines().join("\n");
        assert!(!log.contains("fetched again"), "{log}");
    });
}
