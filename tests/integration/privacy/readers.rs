//! No route shows a masked value to a caller who may only read, whichever source knows the facts.

use std::path::Path;

use serde_json::{Value, json};

use crate::enc::servers::Stub;
use crate::program::{Daemon, GitRepository, Response};
use crate::table::each_row;

/// Stands for every secret; no other text has it.
pub(super) const SECRET: &str = "s3cr3t-5e1f";

const WEB: &str = "11111111-1111-4111-8111-111111111111";
const MATCHED: &str = "22222222-2222-4222-8222-222222222222";

/// The tokens `hello`, which classifies, and `goodbye`, which reads.
const TOKENS: &str = "\
- name: server
  sha256: 2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824
  roles: [classify, check-in]
- name: reader
  sha256: 82e35a63ceba37e9646434c5dd412ea577147f1e4a41ccde1614253187e3dbf9
  roles: [read]
";

pub(super) fn facts() -> Value {
    json!({
        "kernel": "Linux",
        "db_password": SECRET,
        "other_password": format!("{SECRET}-2"),
        "app": {"name": "shop", "api_token": SECRET, "users": [{"secret": SECRET}]},
    })
}

pub(super) fn trusted() -> Value {
    json!({"certname": "w1", "extensions": {"pp_secret": SECRET}})
}

/// A group whose values have secrets in them: alone, within text, in objects and lists, and of trusted data.
fn web(prefix: &str, fact: &str) -> String {
    format!(
        "name: web\nid: {WEB}\nrule: name ~ \"^w\"\nclasses:\n  db:\n    password: \"${{{fact}}}\"\n    \
         url: \"{prefix}-${{db_password}}-y\"\n    app: \"{prefix} ${{app}}\"\n    \
         token: \"${{app[api_token]}}\"\n    first: [\"${{app[users][0]}}\"]\n    \
         key: \"${{trusted[extensions][pp_secret]}}\"\nvariables: {{v: \"{prefix} ${{db_password}}\"}}\n"
    )
}

/// Returns a repository whose two commits give other values, with the id of the first.
pub(super) fn repository() -> (GitRepository, String) {
    let repository = GitRepository::new();
    let rule = format!("name = w1 or db_password ~ \"{}\"", &SECRET[..4]);
    let matched = format!("name: matched\nid: {MATCHED}\nrule: '{rule}'\nclasses: {{m: {{}}}}\n");
    let own = "classes: {own: {k: \"${db_password}\"}}\n";
    let files = [
        ("clade.yaml", "interpolate: true\npolicy: {missing_referents: warn}\n"),
        ("groups/all.yaml", super::ROOT),
        ("groups/matched.yaml", &matched),
        ("nodes/w1.yaml", own),
    ];
    let before = web("x", "other_password");
    let base = repository.commit("one", &[&files[..], &[("groups/web.yaml", &before)]].concat());
    repository.commit("two", &[("groups/web.yaml", &web("z", "db_password"))]);
    (repository, base)
}

/// What a source knows of the node `w1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// A check-in of which all is stored, or what is mentioned, or nothing.
    CheckIn(&'static str),
    /// A directory of facts.
    Directory,
    /// `PuppetDB`.
    PuppetDb,
    /// A check-in of which nothing is stored, and a directory of facts.
    CheckInAndDirectory,
    /// The same with `PuppetDB`.
    CheckInAndPuppetDb,
    /// A check-in that was stored before the masks were set.
    StoredBefore,
}

impl Source {
    /// Returns whether the daemon knows all secrets: a directory of facts has no trusted data.
    fn is_whole(self) -> bool {
        !matches!(self, Self::CheckIn(_) | Self::CheckInAndDirectory)
    }

    fn has_check_in(self) -> bool {
        !matches!(self, Self::Directory | Self::PuppetDb)
    }
}

/// A daemon that knows the node.
struct Site {
    daemon: Daemon,
    base: String,
    _kept: (GitRepository, tempfile::TempDir, Stub),
}

impl Site {
    fn start(source: Source) -> Self {
        let (repository, base) = repository();
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
        std::fs::write(at("tokens.yaml"), TOKENS).unwrap();
        write_facts(&directory.path().join("facts"));
        let inventory = json!([{"certname": "w1", "facts": facts(), "trusted": trusted()}]);
        let inventory = inventory.to_string();
        let head =
            format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}", inventory.len());
        let puppetdb = Stub::saying(format!("{head}\r\n\r\n{inventory}").leak());
        let (tokens, facts, data) = (at("tokens.yaml"), at("facts"), at("data"));
        let path = repository.text_path();
        let usual = ["--repo", &path, "--tokens-file", &tokens];
        let more: &[&str] = match source {
            Source::CheckIn(stored) => &["--store-facts", stored],
            Source::Directory => &["--facts-dir", &facts],
            Source::PuppetDb => &["--puppetdb", &puppetdb.url],
            Source::CheckInAndDirectory => &["--store-facts", "none", "--facts-dir", &facts],
            Source::CheckInAndPuppetDb => &["--store-facts", "none", "--puppetdb", &puppetdb.url],
            Source::StoredBefore => &["--data-dir", &data],
        };
        if source == Source::StoredBefore {
            let daemon = Daemon::start(&[&usual[..], more, &["--mask", "none"]].concat());
            upload(&daemon);
            assert_eq!(daemon.terminate(), 0);
        }
        let daemon = Daemon::start(&[&usual[..], more].concat());
        if source.has_check_in() && source != Source::StoredBefore {
            check_in(&daemon);
        }
        Self { daemon, base, _kept: (repository, directory, puppetdb) }
    }

    fn read(&self, path: &str) -> Response {
        self.daemon.request_with("GET", path, "X-Authentication: goodbye\r\n", "")
    }

    /// Returns the paths of everything that is derived from the facts of the node or from its answers.
    fn paths(&self) -> Vec<String> {
        let (base, now) = (&self.base, jiff::Timestamp::now());
        let of_snapshot = [
            "/controller/nodes/w1/values".to_owned(),
            "/controller/nodes/w1/enc".to_owned(),
            "/controller/nodes/w1/blame".to_owned(),
            "/controller/nodes/w1/blame?key=db::password".to_owned(),
            format!("/controller/nodes/w1/membership?group={MATCHED}"),
            "/v1/classified/nodes/w1/explanation".to_owned(),
            "/classifier-api/v1/classified/nodes/w1/explanation".to_owned(),
            format!("/v1/groups/{MATCHED}/nodes"),
            "/nodes/w1".to_owned(),
            "/nodes/w1?blame=on".to_owned(),
            format!("/nodes/w1?group={MATCHED}"),
            format!("/groups/{WEB}"),
        ];
        let mut paths = Vec::from([
            "/controller/nodes".to_owned(),
            "/controller/nodes/w1".to_owned(),
            "/controller/nodes/w1/history".to_owned(),
            "/controller/trends".to_owned(),
            "/controller/node-counts".to_owned(),
            "/controller/group-members".to_owned(),
            "/controller/query?rule=db_password%20~%20x".to_owned(),
            "/controller/query?rule=name%20~%20w".to_owned(),
            format!("/controller/diff/{base}/HEAD"),
            "/v1/nodes".to_owned(),
            "/v1/nodes?facts=true".to_owned(),
            "/v1/nodes/w1?facts=true".to_owned(),
            "/".to_owned(),
            "/nodes".to_owned(),
            "/nodes/w1/history".to_owned(),
            "/nodes/w1/facts".to_owned(),
            "/query?rule=db_password%20~%20x".to_owned(),
            "/problems".to_owned(),
            format!("/compare/{base}...HEAD"),
        ]);
        for path in of_snapshot {
            let joint = if path.contains('?') { '&' } else { '?' };
            for named in [format!("commit={base}"), format!("at={now}")] {
                paths.push(format!("{path}{joint}{named}"));
            }
            paths.push(path);
        }
        paths
    }
}

fn write_facts(directory: &Path) {
    std::fs::create_dir(directory).unwrap();
    let of_node = json!({"name": "w1", "values": facts()});
    std::fs::write(directory.join("w1.json"), of_node.to_string()).unwrap();
}

/// Checks the node in; what it gets has the secrets.
fn check_in(daemon: &Daemon) {
    let body = json!({"fact": facts(), "trusted": trusted()}).to_string();
    let token = "X-Authentication: hello\r\n";
    for path in ["/v1/classified/nodes/w1", "/enc/w1"] {
        let answer = daemon.request_with("POST", path, token, &body);
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        assert!(answer.body.contains(SECRET), "{path}: {}", answer.body);
    }
}

/// Stores facts without an answer.
fn upload(daemon: &Daemon) {
    let body = json!({"name": "w1", "facts": facts()}).to_string();
    let token = "X-Authentication: hello\r\n";
    let answer = daemon.request_with("POST", "/api/hosts/facts", token, &body);
    assert_eq!(answer.status, 201, "{}", answer.body);
}

#[test]
fn no_route_shows_a_masked_value_to_a_reader() {
    let rows = [
        Source::CheckIn("all"),
        Source::CheckIn("mentioned"),
        Source::CheckIn("none"),
        Source::Directory,
        Source::PuppetDb,
        Source::CheckInAndDirectory,
        Source::CheckInAndPuppetDb,
        Source::StoredBefore,
    ];
    each_row(rows, |source| {
        let site = Site::start(source);
        let mut leaking = Vec::new();
        for path in site.paths() {
            let answer = site.read(&path);
            let is_known = source.has_check_in() || !path.contains("/nodes/w1");
            assert!(answer.status == 200 || !is_known, "{source:?} {path}: {}", answer.body);
            if answer.body.contains(SECRET) || answer.head.contains(SECRET) {
                leaking.push(path);
            }
        }
        assert!(leaking.is_empty(), "{source:?}: {leaking:#?}");
        let masked = [
            "/controller/nodes/w1/values",
            "/controller/nodes/w1/enc",
            "/controller/nodes/w1/blame",
            "/v1/classified/nodes/w1/explanation",
            "/nodes/w1",
            "/nodes/w1?blame=on",
        ];
        for path in masked.into_iter().filter(|_| source != Source::CheckIn("none")) {
            let answer = site.read(path);
            assert_eq!(answer.status, 200, "{source:?} {path}: {}", answer.body);
            assert!(answer.body.contains("[masked]"), "{source:?} {path}: {}", answer.body);
        }
        // Who may classify gets what the node gets.
        let answer = site.daemon.request_with("GET", "/enc/w1", "X-Authentication: hello\r\n", "");
        let is_whole = source.is_whole();
        assert_eq!(answer.body.contains(SECRET), is_whole, "{source:?}: {}", answer.body);
        assert_eq!(site.read("/enc/w1").status, 403);
    });
}

#[test]
fn masked_values_stand_where_the_secrets_are() {
    let site = Site::start(Source::PuppetDb);
    let values = site.read("/controller/nodes/w1/values").json();
    let blamed = site.read("/controller/nodes/w1/blame").json();
    let enc: Value = serde_json::from_str(&site.read("/controller/nodes/w1/enc").body).unwrap();
    let value = |all: &Value, key: &str| {
        let found = all.as_array().unwrap().iter().find(|it| it["key"] == key);
        found.unwrap_or_else(|| panic!("{key}: {all}"))["value"].clone()
    };
    let rows = [
        ("password", json!("[masked]")),
        ("url", json!("z-[masked]-y")),
        ("app", json!("z [masked]")),
        ("token", json!("[masked]")),
        ("first", json!(["[masked]"])),
        ("key", json!("[masked]")),
    ];
    each_row(rows, |(parameter, expected)| {
        let key = format!("classes.db.{parameter}");
        assert_eq!(value(&values, &key), expected);
        assert_eq!(value(&blamed, &key), expected);
        assert_eq!(enc["classes"]["db"][parameter], expected);
    });
    // The values of the first commit are found by the real facts: all but two have changed since.
    let since = |parameter: &str| {
        let key = format!("classes.db.{parameter}");
        let found = blamed.as_array().unwrap().iter().find(|it| it["key"] == key.as_str());
        found.unwrap()["commit"]["subject"].clone()
    };
    assert_eq!(since("password"), "two", "{blamed}");
    assert_eq!(since("token"), "one", "{blamed}");
}

#[test]
fn a_change_between_masked_values_is_reported() {
    let site = Site::start(Source::CheckInAndDirectory);
    let compared = site.read(&format!("/controller/diff/{}/HEAD", site.base));
    assert!(!compared.body.contains(SECRET), "{}", compared.body);
    let compared = compared.json();
    let parameters = compared["changes"][0]["parameters"].as_array().unwrap();
    let password = parameters.iter().find(|it| it["parameter"] == "password");
    let password = password.unwrap_or_else(|| panic!("{compared}"));
    assert_eq!((&password["old"], &password["new"]), (&json!("[masked]"), &json!("[masked]")));
}
