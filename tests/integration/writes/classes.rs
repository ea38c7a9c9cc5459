//! Classes pulled from a Puppet Server: each update is a commit.

mod puppet;

use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Value, json};

use self::puppet::{Puppet, State, hash, of};
use super::Hub;
use crate::classes::{ANSWER, KnownHost};
use crate::git::server::{Server, tls};
use crate::program::{Daemon, Response, run};
use crate::reference::{conforms, document};

fn update(daemon: &Daemon, query: &str) -> Response {
    let path = "/v1/update-classes";
    let answer = daemon.request("POST", &format!("/classifier-api{path}{query}"), "{}");
    conforms(&document(), "post", path, answer.status, &answer.body);
    answer
}

fn kind(response: &Response) -> (u16, String) {
    (response.status, response.json()["kind"].as_str().unwrap().to_owned())
}

fn classes(daemon: &Daemon, environment: &str) -> Vec<String> {
    let all = daemon.get(&format!("/v1/environments/{environment}/classes")).json();
    all.as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap().to_owned()).collect()
}

fn last_update(daemon: &Daemon) -> Option<jiff::Timestamp> {
    let answer = daemon.get("/v1/last-class-update").json();
    assert_eq!(answer.as_object().unwrap().len(), 1);
    answer["last_update"].as_str().map(|it| it.parse().unwrap())
}

/// Groups of three environments, of which one has a catalogue and one a file of another name.
fn hub() -> Hub {
    Hub::new(&[
        ("groups/web.yaml", "name: Web\nclasses: {apache: {port: 80}}\n"),
        ("groups/gone.yaml", "name: Gone\nenvironment: gone\n"),
        ("environments/production.yml", "classes: {apache: {parameters: {port: 8080}}}\n"),
        ("environments/other.yaml", "name: staging\n"),
    ])
}

#[test]
fn classes_are_pulled_and_committed_once() {
    let production = of(&[("apache", "port"), ("ntp", "servers")]);
    let staging = of(&[("apache", "port")]);
    let puppet = Puppet::new(&[("production", &production), ("staging", &staging)]);
    let hub = hub();
    let daemon = hub.serve(&["--puppet-server", &puppet.url]);
    assert_eq!(classes(&daemon, "production"), ["apache"]);
    let updated = update(&daemon, "");
    assert_eq!((updated.status, updated.body.as_str()), (201, ""), "{}", updated.head);
    assert_eq!(updated.header("X-Clade-Commit"), Some(hub.head_id().as_str()));
    let asked = |list: &[(&str, u16)]| {
        let list: Vec<(String, u16)> = list.iter().map(|it| (it.0.to_owned(), it.1)).collect();
        assert_eq!(puppet.asked(), list);
    };
    asked(&[("gone", 404), ("production", 200), ("staging", 200)]);
    assert_eq!(classes(&daemon, "production"), ["apache", "ntp"]);
    assert_eq!(classes(&daemon, "staging"), ["apache"]);
    let show = |path: &str, said: &str| hub.show(path).unwrap().replace(&hash(said), "ETAG");
    insta::assert_snapshot!(show("environments/production.yml", &production), @r"
    # yaml-language-server: $schema=https://clade-classifier.github.io/schemas/environment.json
    # Written by `POST /v1/update-classes`: ask for it again instead of changing this.
    # etag: ETAG
    classes:
      apache:
        parameters:
          port: 1
        types:
          port: Integer
      ntp:
        parameters:
          servers: 1
        types:
          servers: Integer
    ");
    insta::assert_snapshot!(show("environments/other.yaml", &staging), @r"
    # yaml-language-server: $schema=https://clade-classifier.github.io/schemas/environment.json
    # Written by `POST /v1/update-classes`: ask for it again instead of changing this.
    # etag: ETAG
    name: staging
    classes:
      apache:
        parameters:
          port: 1
        types:
          port: Integer
    ");
    let message = hub.head().unwrap().message().unwrap().to_owned();
    insta::assert_snapshot!(message, @r#"
    Update the classes of "production", "staging"

    Through the classifier API, by an unnamed client.

    Clade-Request: POST /classifier-api/v1/update-classes
    Clade-Actor: an unnamed client
    "#);

    // An unchanged catalogue makes no commit, and still is an update.
    let (head, before) = (hub.head_id(), last_update(&daemon).unwrap());
    assert_eq!(update(&daemon, "").status, 201);
    asked(&[("gone", 404), ("production", 304), ("staging", 304)]);
    assert_eq!(hub.head_id(), head);
    assert!(last_update(&daemon).unwrap() > before);
    // Nor does an equal catalogue that is sent again.
    puppet.say("staging", "200 OK", &of(&[("apache", "port")]).replace("\"x\"", "\"y\""));
    assert_eq!(update(&daemon, "?environment=staging").status, 201);
    asked(&[("staging", 200)]);
    assert_eq!(hub.head_id(), head);

    // One environment alone, also one that no group has.
    puppet.say("production", "200 OK", &of(&[("apache", "port")]));
    puppet.say("staging", "200 OK", &of(&[("apache", "port"), ("db", "size")]));
    puppet.say("fresh", "200 OK", &of(&[("new", "x")]));
    assert_eq!(update(&daemon, "?environment=staging").status, 201);
    assert_eq!(update(&daemon, "?environment=fresh").status, 201);
    assert_eq!(classes(&daemon, "staging"), ["apache", "db"]);
    assert_eq!(classes(&daemon, "production"), ["apache", "ntp"]);
    assert!(hub.show("environments/fresh.yaml").unwrap().contains("\nclasses:\n  new:\n"));
    asked(&[("staging", 200), ("fresh", 200)]);
    let gone = update(&daemon, "?environment=gone");
    assert_eq!(kind(&gone), (404, "not-found".to_owned()));
    assert_eq!(gone.json()["details"], "/classifier-api/v1/update-classes");
    for no_name in ["agent-specified", "", "a-b"] {
        let refused = update(&daemon, &format!("?environment={no_name}"));
        assert_eq!(kind(&refused), (400, "schema-violation".to_owned()));
    }
    asked(&[("gone", 404)]);
    insta::assert_snapshot!(hub.log().join("\n"), @r#"
    Begin
    Update the classes of "production", "staging"
    Update the classes of "staging"
    Update the classes of "fresh"
    "#);
}

#[test]
fn what_a_puppet_server_said_once_is_the_catalogue_that_the_command_writes() {
    let puppet = Puppet::new(&[("production", ANSWER)]);
    let hub = Hub::new(&[("groups/a.yaml", "name: A\n")]);
    let daemon = hub.serve(&["--puppet-server", &puppet.url]);
    assert_eq!(update(&daemon, "").status, 201);
    let written = hub.show("environments/production.yaml").unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_str().unwrap();
    let pulled = run(&["classes", "pull", "--server", &puppet.url, path]);
    assert_eq!(pulled.status, 0, "{}", pulled.stderr);
    let by_command =
        std::fs::read_to_string(directory.path().join("environments/production.yaml")).unwrap();
    let daemons = "`POST /v1/update-classes`: ask for it";
    assert_eq!(written.replace(daemons, "`clade classes pull`: run it"), by_command);
    // Each starts from the result of the other.
    std::fs::write(directory.path().join("environments/production.yaml"), written).unwrap();
    let again = run(&["classes", "pull", "--server", &puppet.url, path]);
    assert_eq!(again.stderr, "the classes have not changed\n");
}

#[test]
fn classes_that_groups_need_do_not_go() {
    let puppet = Puppet::new(&[("production", &of(&[("ntp", "servers")]))]);
    let hub = hub();
    let daemon = hub.serve(&["--puppet-server", &puppet.url]);
    let head = hub.head_id();
    let refused = update(&daemon, "");
    assert_eq!(kind(&refused), (422, "invalid-commit".to_owned()));
    let details = refused.json()["details"].clone();
    let errors = details.as_array().unwrap().iter().filter(|it| it["severity"] == "error");
    let errors: Vec<_> = errors.map(|it| (&it["kind"], &it["file"])).collect();
    assert_eq!(errors[0], (&json!("missing-class"), &json!("groups/web.yaml")), "{details}");
    assert_eq!(hub.head_id(), head);
    assert_eq!(classes(&daemon, "production"), ["apache"]);
    assert_eq!(update(&daemon, "?environment=production").status, 422);
    // Unless the repository says that it may happen.
    let lenient = "policy: {missing_referents: warn}\n";
    let lenient = hub.commit("Be lenient", &[("clade.yaml", lenient)]);
    daemon.wait_until("it answers", |it| {
        it.get("/v1/groups").header("X-Clade-Commit") == Some(&lenient)
    });
    assert_eq!(update(&daemon, "").status, 201);
    assert_eq!(classes(&daemon, "production"), ["ntp"]);
    assert_eq!(hub.log(), ["Begin", "Be lenient", "Update the classes of \"production\""]);
}

#[test]
fn without_a_whole_answer_nothing_changes() {
    let good = of(&[("apache", "port"), ("ntp", "servers")]);
    let puppet = Puppet::new(&[("production", &good)]);
    let hub = hub();
    let more = ["--puppet-server", &puppet.url, "--puppet-server-timeout", "2s"];
    let daemon = hub.serve(&more);
    let (head, first) = (hub.head_id(), last_update(&daemon));
    let broken = json!({"files": [{"path": "/code/a.pp", "error": "Syntax error at '}'"}]});
    for (line, body, status, words) in [
        (
            "403 Forbidden",
            "Forbidden request: not you.",
            403,
            "allow this certificate in its auth.conf",
        ),
        ("500 Server Error", "{\"message\": \"Out of\\nmemory\"}", 500, "the server answers 500"),
        ("302 Found", "", 302, "the server answers 302"),
        ("200 OK", "<html>", 200, "with a body that is not JSON"),
        ("200 OK", "{\"classes\": []}", 200, "without a list of classes"),
        ("200 OK", &broken.to_string(), 200, "/code/a.pp: Syntax error at '}'"),
    ] {
        puppet.say("staging", line, body);
        let failed = update(&daemon, "");
        assert_eq!(kind(&failed), (500, "unexpected-response".to_owned()), "{line}");
        let failed = failed.json();
        assert!(failed["msg"].as_str().unwrap().contains(words), "{failed}");
        assert_eq!(failed["details"]["status"], status);
        let url = format!("{}/puppet/v3/environment_classes?environment=staging", puppet.url);
        assert_eq!(failed["details"]["url"], url);
    }
    // Classes that are too many for a file.
    let large: Vec<(String, String)> = (0..20_000)
        .map(|it| (format!("class_with_a_long_name_{it}"), "parameter".to_owned()))
        .collect();
    let large: Vec<(&str, &str)> = large.iter().map(|it| (it.0.as_str(), it.1.as_str())).collect();
    puppet.say("staging", "200 OK", &of(&large));
    let failed = update(&daemon, "");
    assert_eq!(kind(&failed), (422, "invalid-commit".to_owned()));
    assert!(failed.body.contains("1048576 are allowed"), "{}", failed.body);
    // No environment at all: it is not the server of these groups.
    puppet.state.said.lock().unwrap().clear();
    assert_eq!(kind(&update(&daemon, "")), (500, "unexpected-response".to_owned()));
    // An answer that does not come.
    puppet.say("production", "200 OK", &good);
    *puppet.state.pause.lock().unwrap() = Duration::from_secs(3);
    let late = update(&daemon, "");
    assert_eq!(kind(&late), (503, "puppet-server-unreachable".to_owned()));
    assert!(late.header("Retry-After").is_some());
    // No server.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    drop(daemon);
    let daemon = hub.serve(&["--puppet-server", &format!("http://{free}")]);
    let down = update(&daemon, "");
    assert_eq!(kind(&down), (503, "puppet-server-unreachable".to_owned()));
    assert!(!down.body.contains("apache"), "{}", down.body);
    assert_eq!((hub.head_id(), classes(&daemon, "production")), (head, vec!["apache".to_owned()]));
    assert_eq!(hub.show("environments/other.yaml").unwrap(), "name: staging\n");
    // A failure is not an update.
    daemon.wait_until("the history is known", |it| last_update(it).is_some());
    assert!(first.is_none_or(|it| Some(it) == last_update(&daemon)));
}

#[test]
fn a_token_that_is_kept_to_groups_updates_no_classes() {
    let puppet = Puppet::new(&[("production", &of(&[("apache", "port")]))]);
    let hub = hub();
    let tokens = hub.path().join("tokens.yaml");
    let text = format!(
        "- {{name: ada, sha256: {}, roles: [read, write]}}\n\
         - {{name: team, sha256: {}, roles: [read, write], groups: [{}]}}\n\
         - {{name: reader, sha256: {}, roles: [read]}}\n",
        hash("ada"),
        hash("team"),
        super::ROOT,
        hash("reader"),
    );
    std::fs::write(&tokens, text).unwrap();
    let tokens = tokens.to_str().unwrap();
    let daemon = hub.serve(&["--puppet-server", &puppet.url, "--tokens-file", tokens]);
    let update = |token: &str| {
        let header = format!("X-Authentication: {token}\r\n");
        daemon.request_with("POST", "/v1/update-classes", &header, "")
    };
    for token in ["team", "reader"] {
        assert_eq!(kind(&update(token)), (403, "permission-denied".to_owned()), "{token}");
    }
    assert_eq!((puppet.asked(), hub.log().len()), (Vec::new(), 1));
    assert_eq!(update("ada").status, 201);
    assert_eq!(hub.head().unwrap().author().name().unwrap(), "ada");
}

#[test]
fn an_update_of_classes_can_wait_for_review() {
    let puppet = Puppet::new(&[("production", &of(&[("apache", "port"), ("ntp", "x")]))]);
    let hub = hub();
    let data = tempfile::tempdir().unwrap();
    let (path, data) = (hub.text_path(), data.path().to_str().unwrap().to_owned());
    let arguments = ["--repo", &path, "--data-dir", &data, "--writes", "propose"];
    let daemon = Daemon::start(&[&arguments[..], &["--puppet-server", &puppet.url]].concat());
    let head = hub.head_id();
    daemon.wait_until("the history is known", |it| last_update(it).is_some());
    let before = last_update(&daemon);
    let proposed = update(&daemon, "");
    assert_eq!(proposed.status, 202, "{}", proposed.body);
    let proposed = proposed.json();
    let branch = format!("refs/heads/{}", proposed["branch"].as_str().unwrap());
    assert!(hub.show_at(&branch, "environments/production.yml").unwrap().contains("  ntp:\n"));
    assert_eq!((hub.head_id(), classes(&daemon, "production")), (head, vec!["apache".to_owned()]));
    assert_eq!(last_update(&daemon), before);
    assert_eq!(update(&daemon, "").json()["branch"], proposed["branch"]);
    // Merged, it is an update, and nothing is left to propose.
    let commit = hub.inner.revparse_single(&branch).unwrap().id();
    hub.inner.reference("refs/heads/main", commit, true, "merge").unwrap();
    daemon.wait_until("it answers", |it| classes(it, "production").len() == 2);
    assert_eq!(update(&daemon, "").status, 201);
    assert!(last_update(&daemon) > before);
}

#[test]
fn a_puppet_server_is_asked_by_one_request_at_a_time() {
    let puppet = Puppet::new(&[("production", &of(&[("apache", "port"), ("ntp", "x")]))]);
    *puppet.state.pause.lock().unwrap() = Duration::from_millis(50);
    let hub = hub();
    let daemon = hub.serve(&["--puppet-server", &puppet.url]);
    let done: Vec<u16> = std::thread::scope(|scope| {
        let daemon = &daemon;
        let clients: Vec<_> = (0..4).map(|_| scope.spawn(|| update(daemon, "").status)).collect();
        // Other requests are answered meanwhile.
        assert_eq!(daemon.get("/v1/groups").status, 200);
        clients.into_iter().map(|it| it.join().unwrap()).collect()
    });
    assert_eq!((done, puppet.state.most.load(Ordering::SeqCst)), (vec![201; 4], 1));
    assert_eq!(hub.log(), ["Begin", "Update the classes of \"production\""]);
    // A client that has left does not delay the end.
    *puppet.state.pause.lock().unwrap() = Duration::from_mins(1);
    let mut stream = std::net::TcpStream::connect(&daemon.address).unwrap();
    let request =
        "POST /v1/update-classes HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n";
    std::io::Write::write_all(&mut stream, request.as_bytes()).unwrap();
    daemon.wait_until("it is asked", |_| puppet.state.asking.load(Ordering::SeqCst) > 0);
    drop(stream);
    let began = std::time::Instant::now();
    assert_eq!(daemon.terminate(), 0);
    assert!(began.elapsed() < Duration::from_secs(50), "{:?}", began.elapsed());
}

#[test]
fn a_puppet_server_needs_writes() {
    let hub = hub();
    let path = hub.text_path();
    let serve = |more: &[&str]| {
        let base = ["serve", "--check", "--repo", &path, "--puppet-server"];
        let done = run(&[&base[..], more].concat());
        (done.status, done.stderr)
    };
    let (status, said) = serve(&["https://puppet:8140"]);
    assert_eq!(
        (status, said.as_str()),
        (
            2,
            "error: `--puppet-server` needs `--writes commit` or `--writes propose`: the daemon commits the class catalogues that it pulls\n"
        )
    );
    let writes = ["--writes", "commit"];
    assert_eq!(serve(&[&["https://puppet:8140"][..], &writes].concat()).0, 0);
    let (status, said) = serve(&[&["puppet:8140"][..], &writes].concat());
    assert_eq!(status, 2);
    assert!(said.contains("`puppet:8140` is neither a URL"), "{said}");
    let absent = ["--puppet-server-ca", "/nonexistent/ca.pem"];
    let (status, said) = serve(&[&["https://puppet:8140"][..], &writes, &absent].concat());
    assert_eq!(status, 2);
    assert!(said.contains("cannot read `/nonexistent/ca.pem`"), "{said}");
}

#[test]
fn a_puppet_server_is_shown_a_certificate() {
    let KnownHost { verifier, certificate, key } = KnownHost::new();
    let state = State::default();
    let said = ("200 OK".to_owned(), of(&[("apache", "port")]));
    state.said.lock().unwrap().insert("production".to_owned(), said);
    let server = Server::https_for(verifier, move |request| state.answer(request));
    let url = format!("https://localhost:{}", server.port);
    let hub = hub();
    let write = |name: &str, text: &str| {
        let path = hub.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (certificate, key) = (write("host.pem", &certificate), write("key.pem", &key));
    let (socket, ca) = (write("socket", ""), tls("ca.pem").to_str().unwrap().to_owned());
    std::fs::remove_file(&socket).unwrap();
    let base = ["--puppet-server", &url, "--puppet-server-ca", &ca];
    let own = ["--puppet-server-cert", &certificate, "--puppet-server-key", &key];
    let stranger = hub.serve(&base);
    assert_eq!(kind(&update(&stranger, "")), (503, "puppet-server-unreachable".to_owned()));
    drop(stranger);
    let host = hub.serve(&[&base[..], &own].concat());
    assert_eq!(update(&host, "").status, 201);
    drop(host);
    // The default is the daemon's certificate, and its authority.
    let daemons = [
        "--tls-cert",
        &certificate,
        "--tls-key",
        &key,
        "--tls-client-ca",
        &ca,
        "--socket",
        &socket,
    ];
    let daemon = hub.serve(&[&base[..2], &daemons].concat());
    let mut stream = std::os::unix::net::UnixStream::connect(&socket).unwrap();
    let head = "Host: localhost\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    let request = format!("POST /v1/update-classes HTTP/1.1\r\n{head}");
    std::io::Write::write_all(&mut stream, request.as_bytes()).unwrap();
    let answered = std::io::read_to_string(stream).unwrap();
    assert!(answered.starts_with("HTTP/1.1 201 "), "{answered}");
    assert_eq!(daemon.terminate(), 0);
}

#[test]
fn the_last_update_of_classes_is_that_of_the_last_commit_with_a_catalogue() {
    let hub = Hub::new(&[("groups/a.yaml", "name: A\n")]);
    let commit = |seconds: i64, files: &[(&str, &str)]| {
        let time = git2::Time::new(seconds, 0);
        let ada = git2::Signature::new("Ada", "ada@example.com", &time).unwrap();
        hub.commit_as(&ada, "Change", files)
    };
    let daemon = hub.serve(&[]);
    let then = |commit: &str, seconds: Option<i64>| {
        daemon.wait_until(commit, |it| {
            let answer = it.get("/v1/last-class-update");
            let last = answer.json()["last_update"].as_str().map(str::to_owned);
            let expected = seconds.map(|it| jiff::Timestamp::from_second(it).unwrap().to_string());
            answer.header("X-Clade-Commit") == Some(commit) && last == expected
        });
    };
    let catalogue = "classes: {ntp: }\n";
    then(&commit(1_000, &[("groups/b.yaml", "name: B\n")]), None);
    // A file without `classes` is not a catalogue.
    then(&commit(2_000, &[("environments/dev.yaml", "name: dev\n")]), None);
    then(&commit(3_000, &[("environments/production.yaml", catalogue)]), Some(3_000));
    then(&commit(4_000, &[("groups/b.yaml", "name: C\n")]), Some(3_000));
    then(&commit(5_000, &[("clade.yaml", "policy: {require_ids: false}\n")]), Some(3_000));
    let last = commit(6_000, &[("environments/dev.yaml", "name: dev\nclasses: {a: }\n")]);
    then(&last, Some(6_000));
    let known: Value = daemon.get("/v1/last-class-update").json();
    assert_eq!(daemon.terminate(), 0);
    let again = hub.serve(&[]);
    again.wait_until("the history is known", |it| last_update(it).is_some());
    assert_eq!(again.get("/v1/last-class-update").json(), known);
    // Without a Puppet Server, to update classes is to fetch the branch, which is not an update.
    assert_eq!(update(&again, "").status, 201);
    assert_eq!(again.get("/v1/last-class-update").json(), known);
}
