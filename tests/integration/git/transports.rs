//! Every transport against git's own server.

use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use clade::internals::git::{
    Credentials, FetchFailure, HttpOptions, Mirror, MirrorOptions, Proxy, Remote, Scheme,
};

use super::meter;
use super::server::{Request, Seen, Server, has_git, http_backend, status, tls};
use crate::repository::{Origin, Put};

/// Returns options that allow everything, for short-lived servers without a proxy.
pub(super) fn options() -> MirrorOptions {
    MirrorOptions {
        schemes: [Scheme::File, Scheme::Git, Scheme::Http, Scheme::Https].into(),
        timeout: Duration::from_mins(1),
        http: HttpOptions { proxy: Proxy::Direct, ..HttpOptions::default() },
        ..MirrorOptions::default()
    }
}

fn open(data: &Path, url: &str, options: MirrorOptions) -> Mirror {
    Mirror::open(data, Remote::parse(url).unwrap(), options).unwrap()
}

/// Follows a branch of an origin at a URL: first fetch, a new commit, a branch that goes.
fn follow(origin: &Origin, url: &str, options: MirrorOptions) {
    let first = origin.git().refname_to_id("refs/heads/main").unwrap().to_string();
    let data = tempfile::tempdir().unwrap();
    let mirror = open(data.path(), url, options);
    let fetched = mirror.fetch(None).unwrap();
    assert_eq!(fetched.head.to_string(), first, "{url}");
    // More than one round of questions is needed to find what both have.
    for index in 0..40 {
        origin.commit("main", &[("groups/web.yaml", Put::File(&format!("name: Web{index}\n")))]);
    }
    let last = origin.commit("main", &[("groups/b.yaml", Put::File("name: B\n"))]);
    let fetched = mirror.fetch(Some("main")).unwrap();
    assert_eq!(fetched.head.to_string(), last, "{url}");
    assert_eq!(mirror.fetch(None).unwrap(), fetched, "{url}");
    let repository = mirror.repository().unwrap();
    assert_eq!(repository.files(fetched.head, "groups", &meter()).unwrap().len(), 2, "{url}");
    assert_eq!(repository.log(fetched.head, 99).unwrap().len(), 42, "{url}");
    let error = mirror.fetch(Some("gone")).unwrap_err();
    assert_eq!(error.failure, FetchFailure::RefNotFound, "{url}");
}

#[test]
fn file_urls_are_followed() {
    let (origin, _) = Origin::with_a_commit();
    follow(&origin, &format!("file://{}", origin.path().display()), options());
}

#[test]
fn the_daemon_of_git_is_followed() {
    if !has_git() {
        return;
    }
    let (origin, _) = Origin::with_a_commit();
    let server = Server::git_daemon(origin.path().parent().unwrap());
    follow(&origin, &format!("git://127.0.0.1:{}/groups.git", server.port), options());
    let data = tempfile::tempdir().unwrap();
    let absent = format!("git://127.0.0.1:{}/absent.git", server.port);
    let error = open(data.path(), &absent, options()).fetch(None).unwrap_err();
    assert_eq!(error.failure, FetchFailure::RepositoryNotFound, "{error}");
}

#[test]
fn http_is_followed() {
    if !has_git() {
        return;
    }
    let (origin, _) = Origin::with_a_commit();
    let directory = origin.path().parent().unwrap().to_owned();
    let server = Server::http(move |request| http_backend(&directory, request));
    follow(&origin, &format!("http://127.0.0.1:{}/groups.git", server.port), options());
    let data = tempfile::tempdir().unwrap();
    let absent = format!("http://127.0.0.1:{}/absent.git", server.port);
    let error = open(data.path(), &absent, options()).fetch(None).unwrap_err();
    assert_eq!(
        (error.failure, error.to_string()),
        (
            FetchFailure::RepositoryNotFound,
            format!("`{absent}` cannot be fetched: it answered 404 Not Found")
        )
    );
}

#[test]
fn https_is_followed_where_the_certificate_is_trusted() {
    if !has_git() {
        return;
    }
    let (origin, _) = Origin::with_a_commit();
    let directory = origin.path().parent().unwrap().to_owned();
    let server = Server::https(move |request| http_backend(&directory, request));
    let url = format!("https://localhost:{}/groups.git", server.port);
    let trusting = |ca: Option<&str>| MirrorOptions {
        http: HttpOptions { ca_file: ca.map(tls), ..options().http },
        ..options()
    };
    follow(&origin, &url, trusting(Some("ca.pem")));
    for (ca, failure) in [
        (None, FetchFailure::TlsFailed),
        (Some("server-key.pem"), FetchFailure::InvalidSettings),
        (Some("absent.pem"), FetchFailure::InvalidSettings),
    ] {
        let data = tempfile::tempdir().unwrap();
        let error = open(data.path(), &url, trusting(ca)).fetch(None).unwrap_err();
        assert_eq!(error.failure, failure, "{error}");
    }
}

#[test]
fn credentials_are_read_again_for_every_fetch() {
    if !has_git() {
        return;
    }
    let (origin, _) = Origin::with_a_commit();
    let directory = origin.path().parent().unwrap().to_owned();
    let seen = Seen::default();
    let log = seen.clone();
    let server = Server::http(move |request| {
        log.note(request);
        // `ci:open sesame`, and the token `t0ken`.
        let accepted = ["Basic Y2k6b3BlbiBzZXNhbWU=", "Bearer t0ken"];
        match request.headers.get("authorization") {
            Some(it) if accepted.contains(&it.as_str()) => http_backend(&directory, request),
            _ => status("401 Unauthorized", "WWW-Authenticate: Basic realm=\"git\"\r\n"),
        }
    });
    let host = format!("127.0.0.1:{}", server.port);
    let secrets = tempfile::tempdir().unwrap();
    let file = secrets.path().join("secret");
    let with = |credentials| MirrorOptions {
        http: HttpOptions { credentials, ..options().http },
        ..options()
    };
    let basic =
        || with(Credentials::Basic { username: "ci".to_owned(), password_file: file.clone() });
    let data = tempfile::tempdir().unwrap();
    let url = format!("http://{host}/groups.git");
    let mirror = open(data.path(), &url, basic());
    for (secret, expected) in [
        (None, Err(FetchFailure::InvalidSettings)),
        (Some(""), Err(FetchFailure::InvalidSettings)),
        (Some("wrong canary\n"), Err(FetchFailure::AuthenticationFailed)),
        (Some("open sesame\n"), Ok(())),
        (Some("two\nlines"), Err(FetchFailure::InvalidSettings)),
        (Some("open sesame"), Ok(())),
    ] {
        if let Some(secret) = secret {
            std::fs::write(&file, secret).unwrap();
        }
        let fetched = mirror.fetch(None);
        if let Err(error) = &fetched {
            assert!(!error.to_string().contains("canary"), "{error}");
        }
        assert_eq!(fetched.map(drop).map_err(|it| it.failure), expected, "{secret:?}");
    }
    drop(mirror);

    std::fs::write(&file, "t0ken\n").unwrap();
    let bearer = with(Credentials::Bearer { token_file: file.clone() });
    open(data.path(), &url, bearer).fetch(None).unwrap();
    let inside = format!("http://ci:open%20sesame@{host}/groups.git");
    open(data.path(), &inside, options()).fetch(None).unwrap();
    let wrong = format!("http://ci:canary@{host}/groups.git");
    let error = open(data.path(), &wrong, options()).fetch(None).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("`http://{host}/groups.git` cannot be fetched: it answered 401 Unauthorized")
    );
    // Nothing of the mirror keeps a secret either.
    let settings = std::fs::read_to_string(data.path().join("mirror.git/config")).unwrap();
    assert!(!settings.contains("canary") && !settings.contains("sesame"), "{settings}");
    assert!(seen.count() > 0 && seen.header("authorization").iter().all(Option::is_some));
}

#[test]
fn redirects_are_followed_on_the_same_host_only() {
    if !has_git() {
        return;
    }
    let (origin, first) = Origin::with_a_commit();
    let directory = origin.path().parent().unwrap().to_owned();
    let other = Seen::default();
    let log = other.clone();
    let elsewhere = Server::http(move |request| {
        log.note(request);
        status("200 OK", "")
    });
    let port = elsewhere.port;
    let server = Server::http(move |request| {
        let moved = |to: String| status("301 Moved Permanently", &format!("Location: {to}\r\n"));
        let refs = "info/refs?service=git-upload-pack";
        match request.target.split('/').nth(1) {
            Some("old.git") => moved(format!("/groups.git/{refs}")),
            Some("loop.git") => moved(format!("/loop.git/{refs}")),
            Some("away.git") => moved(format!("http://127.0.0.1:{port}/groups.git/{refs}")),
            Some("login.git") => moved("/users/sign_in?state=canary".to_owned()),
            _ => http_backend(&directory, request),
        }
    });
    let host = format!("127.0.0.1:{}", server.port);
    let fetch = |name: &str| {
        let data = tempfile::tempdir().unwrap();
        open(data.path(), &format!("http://ci:secret@{host}/{name}"), options()).fetch(None)
    };
    assert_eq!(fetch("old.git").unwrap().head.to_string(), first);
    for (name, detail) in [
        ("loop.git", "it redirects without end".to_owned()),
        ("away.git", format!("it redirects to another host, `http://127.0.0.1:{port}`")),
        ("login.git", format!("it redirects to `{host}/users/sign_in`, which is not a repository")),
    ] {
        let error = fetch(name).unwrap_err();
        let message = format!("`http://{host}/{name}` cannot be fetched: {detail}");
        assert_eq!((error.failure, error.message), (FetchFailure::RedirectRefused, message));
    }
    assert_eq!(other.count(), 0, "the other host is never asked");
}

#[test]
fn a_proxy_is_used_when_it_is_set() {
    if !has_git() {
        return;
    }
    let (origin, first) = Origin::with_a_commit();
    let directory = origin.path().parent().unwrap().to_owned();
    let seen = Seen::default();
    let log = seen.clone();
    // A name that does not resolve: the proxy gets it.
    let proxy = Server::start(move |mut stream| {
        let Some(request) = Request::read(&mut stream) else { return };
        log.note(&request);
        assert_eq!(request.method, "CONNECT");
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
        if let Some(inner) = Request::read(&mut stream) {
            stream.write_all(&http_backend(&directory, &inner)).ok();
        }
    });
    let http = HttpOptions {
        proxy: Proxy::Url(format!("http://127.0.0.1:{}", proxy.port)),
        ..HttpOptions::default()
    };
    let data = tempfile::tempdir().unwrap();
    let mirror = open(
        data.path(),
        "http://git.example.invalid/groups.git",
        MirrorOptions { http, ..options() },
    );
    assert_eq!(mirror.fetch(None).map(|it| it.head.to_string()), Ok(first));
    assert!(seen.count() > 0);
}
