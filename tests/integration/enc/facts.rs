//! What `clade enc` sends to the daemon about a node.

use std::fs::File;
use std::time::{Duration, UNIX_EPOCH};

use indoc::indoc;
use serde_json::json;

use super::servers::{Stub, closed_port};
use super::{Authority, CA, FACTS, Machine, classes, https, repository, url};
use crate::program::Daemon;
use crate::table::each_row;

const YAML: &str = indoc! {"
    --- !ruby/object:Puppet::Node::Facts
    name: web1.example.com
    values:
      os:
        family: Debian
      clock: '12:30'
      trusted:
        certname: forged
        extensions:
          rack: r12
    timestamp: 2026-11-20 21:25:23.694149531 +00:00
"};

#[test]
fn facts_and_certificate_are_found_where_puppet_server_keeps_them() {
    let repository = repository();
    let daemon = Daemon::start(&["--repo", &repository.text_path()]);
    let machine = Machine::new();
    let signed = Authority::new().sign("web1.example.com", &[(1, 13, "web"), (2, 1, "r13")]).0;
    machine.write("ca/signed/web1.example.com.pem", signed);
    machine.write("data/server_data/facts/web1.example.com.json", FACTS);
    machine.write(
        "conf/custom_trusted_oid_mapping.yaml",
        "oid_mapping: {1.3.6.1.4.1.34380.1.2.1: {shortname: rack, longname: Rack}}\n",
    );
    let root = machine.path("");
    let conf = machine.write(
        "conf/puppet.conf",
        format!("[server]\nvardir = {root}data\n[main]\ncadir = {root}ca\n"),
    );
    let done =
        machine.enc("web1.example.com", &["--puppet-conf", &conf, "--server", &url(&daemon)]);
    assert_eq!(
        (classes(&done), done.stderr.as_str()),
        (vec!["apt".into(), "role::web".into()], "")
    );
    daemon.wait_until("the check-in is there", |it| {
        it.get("/v1/nodes/web1.example.com").status == 200
    });
    let seen = daemon.get("/v1/nodes/web1.example.com?facts=true").json();
    assert_eq!(seen["fact"], json!({"os": {"family": "Debian"}}), "the forged fact is dropped");
    assert_eq!(
        seen["trusted"],
        json!({
            "authenticated": "remote",
            "certname": "web1.example.com",
            "hostname": "web1",
            "domain": "example.com",
            "extensions": {"pp_role": "web", "rack": "r13"},
        })
    );
}

#[test]
fn a_cache_in_yaml_is_as_good() {
    let repository = repository();
    let daemon = Daemon::start(&["--repo", &repository.text_path()]);
    let machine = Machine::new();
    machine.write("data/yaml/facts/web1.example.com.yaml", YAML);
    machine.write("puppet.conf", format!("vardir = {}\n", machine.path("data")));
    let done = machine.enc("web1.example.com", &["--server", &url(&daemon)]);
    assert_eq!((classes(&done), done.stderr.as_str()), (vec!["apt".to_owned()], ""));
}

#[test]
fn the_newest_of_several_files_of_facts_counts() {
    let repository = repository();
    let daemon = Daemon::start(&["--repo", &repository.text_path()]);
    let machine = Machine::new();
    machine.write("puppet.conf", format!("vardir = {}\n", machine.path("data")));
    // What a Puppet Server wrote before its format of facts was changed.
    let paths = [
        machine.write(
            "data/server_data/facts/web1.example.com.json",
            FACTS.replace("Debian", "RedHat"),
        ),
        machine.write(
            "data/server_data/facts/web1.example.com.yaml",
            YAML.replace("Debian", "RedHat"),
        ),
        machine.write("data/yaml/facts/web1.example.com.yaml", YAML),
    ];
    each_row([([1, 2, 3], true), ([3, 1, 2], false), ([1, 3, 2], false)], |(ages, is_debian)| {
        for (path, days) in paths.iter().zip(ages) {
            let time = UNIX_EPOCH + Duration::from_hours(24 * days);
            File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
        }
        let done = machine.enc("web1.example.com", &["--server", &url(&daemon)]);
        assert_eq!((!classes(&done).is_empty(), done.stderr.as_str()), (is_debian, ""));
    });
}

#[test]
fn a_forged_fact_proves_nothing() {
    let repository = repository();
    let daemon = Daemon::start(&["--repo", &repository.text_path()]);
    let machine = Machine::new();
    let forged = FACTS.replace("\"rack\":\"r12\"", "\"pp_role\":\"web\"");
    machine.write("facts/web1.example.com.json", forged);
    let facts = machine.path("facts");
    let done = machine.enc("web1.example.com", &["--server", &url(&daemon), "--facts-dir", &facts]);
    assert_eq!(classes(&done), ["apt"]);
}

#[test]
fn a_fact_called_trusted_is_dropped_where_an_enc_asks() {
    let repository = repository();
    let group = "name: Claims\nrule: [\"=\", [fact, trusted, role], web]\nclasses: {claimed: {}}\n";
    repository.commit("more", &[("groups/claims.yaml", group)]);
    let daemon = Daemon::start(&["--repo", &repository.text_path()]);
    let forged = json!({"fact": {"trusted": {"role": "web"}, "kernel": "Linux"}}).to_string();
    let claimed = |method: &str, path: &str, body: &str| {
        daemon.request(method, path, body).json()["classes"].get("claimed").is_some()
    };
    assert!(!claimed("POST", "/enc/liar", &forged));
    daemon.wait_until("the check-in is there", |it| it.get("/v1/nodes/liar").status == 200);
    assert!(!claimed("GET", "/enc/liar", ""));
    let seen = daemon.get("/v1/nodes/liar?facts=true").json();
    assert_eq!(seen["fact"], json!({"kernel": "Linux"}));
    // A hash of facts alone.
    let flat = json!({"trusted": {"role": "web"}, "kernel": "Linux"}).to_string();
    let refused = daemon.request("POST", "/enc/flat", &flat);
    assert_eq!((refused.status, &refused.json()["kind"]), (400, &json!("schema-violation")));
    assert!(refused.body.contains("put facts below `fact`"), "{}", refused.body);
    let trusted = json!({"trusted": {"role": "web"}, "environment": "production"}).to_string();
    assert_eq!(daemon.request("POST", "/enc/liar", &trusted).status, 200);
    let seen = daemon.get("/v1/nodes/liar?facts=true").json();
    assert_eq!(seen["fact"], json!({"kernel": "Linux"}));
    // As in Puppet Enterprise, whose clients send the facts of a catalogue.
    assert!(claimed("POST", "/v1/classified/nodes/other", &forged));
}

#[test]
fn unusable_facts_are_an_error_whether_they_are_required_or_not() {
    let repository = repository();
    let daemon = Daemon::start(&["--repo", &repository.text_path()]);
    let server = url(&daemon);
    let rows = [
        ("json", FACTS.as_bytes()[..60].to_vec(), "line 1, column 60: EOF while parsing"),
        (
            "json",
            FACTS.replace("web1.", "web2.").into(),
            "the file holds the facts of `web2.example.com`",
        ),
        ("json", FACTS.encode_utf16().flat_map(u16::to_le_bytes).collect(), "line 1"),
        ("json", [FACTS.replace("Debian", "Deb").into_bytes(), vec![0xff]].concat(), "line 1"),
        ("json", b"[]".to_vec(), "expected an object, found a list"),
        (
            "yaml",
            YAML.replace("Node::Facts", "Node").into(),
            "the file holds a `!ruby/object:Puppet::Node`",
        ),
        ("yaml", YAML.split_once("timestamp").unwrap().0.into(), "the file is half written"),
        ("yaml", YAML.replace("'12:30'", "'12:30").into(), "line "),
        ("json", vec![b' '; (16 << 20) + 1], "it has over 16 MiB"),
        (
            "json",
            json!({"name": "web1.example.com", "values": {"x": vec![0; 250_001]}})
                .to_string()
                .into_bytes(),
            "it has over 250000 values",
        ),
    ];
    each_row(rows, |(name, content, why)| {
        let machine = Machine::new();
        let path = machine.write(&format!("facts/web1.example.com.{name}"), &content);
        let facts = machine.path("facts");
        let usual = ["--server", &server, "--facts-dir", &facts];
        let said = format!("clade enc: cannot use the facts in `{path}`: {why}");
        for facts in ["optional", "required"] {
            let more = ["--enc-facts", facts];
            let done = machine.enc("web1.example.com", &[&usual[..], &more].concat());
            assert_eq!(done.status, 1, "{facts}: {why}");
            assert!(done.stdout.starts_with(&said), "{}", done.stdout);
            assert_eq!(done.stdout, done.stderr);
        }
    });
}

#[test]
fn a_node_without_facts_is_classified_by_its_last_check_in() {
    let repository = repository();
    let daemon = Daemon::start(&["--repo", &repository.text_path()]);
    let machine = Machine::new();
    let facts = machine.path("facts");
    let usual = ["--server", &url(&daemon), "--facts-dir", &facts];
    let absent = machine.enc("web1.example.com", &usual);
    let reason = format!("clade enc: cannot read the facts directory `{facts}`: ");
    assert!(absent.status == 1 && absent.stdout.starts_with(&reason), "{}", absent.stdout);
    std::fs::create_dir(&facts).unwrap();
    let unknown = machine.enc("web1.example.com", &usual);
    assert_eq!(
        (unknown.stdout.as_str(), unknown.stderr.as_str()),
        ("{\"classes\": {}, \"parameters\": {}, \"environment\": \"production\"}\n", "")
    );
    let body = r#"{"fact": {"os": {"family": "Debian"}}}"#;
    assert_eq!(daemon.request("POST", "/enc/web1.example.com", body).status, 200);
    assert_eq!(classes(&machine.enc("web1.example.com", &usual)), ["apt"]);
    let required =
        machine.enc("web1.example.com", &[&usual[..], &["--enc-facts", "required"]].concat());
    let reason = "clade enc: there are no facts of `web1.example.com` yet, and they are required\n";
    assert_eq!((required.status, required.stdout.as_str()), (1, reason));
}

#[test]
fn a_certificate_that_cannot_be_used_is_an_error() {
    let repository = repository();
    let daemon = Daemon::start(&["--repo", &repository.text_path()]);
    let machine = Machine::new();
    let signed = Authority::new().sign("web2.example.com", &[(1, 13, "web")]).0;
    let path = machine.write("signed/web1.example.com.pem", signed);
    let directory = machine.path("signed");
    let usual = ["--server", &url(&daemon), "--signed-dir", &directory];
    let done = machine.enc("web1.example.com", &usual);
    let reason = format!("clade enc: cannot use the certificate in `{path}`: ");
    let other = format!("{reason}it belongs to `web2.example.com`\n");
    assert_eq!((done.status, done.stdout, done.stderr), (1, other.clone(), other));
    machine.write("signed/web1.example.com.pem", "-----BEGIN CERTIFICATE-----\n");
    let broken = machine.enc("web1.example.com", &usual);
    assert!(broken.status == 1 && broken.stdout.starts_with(&reason), "{}", broken.stdout);
    std::fs::remove_file(&path).unwrap();
    assert!(classes(&machine.enc("web1.example.com", &usual)).is_empty());
}

#[test]
fn the_certificate_of_an_agent_overrides_its_trusted_data() {
    let (repository, machine) = (repository(), Machine::new());
    let authority = Authority::new();
    let agent = authority.sign("web1.example.com", &[(1, 13, "web")]);
    let puppet = authority.sign("puppet", &[]);
    let ca = machine.path(CA);
    let allowed = machine.write("allow.yaml", "- certname: puppet\n  roles: [classify]\n");
    let daemon = authority.serve(&machine, &repository, &["--tls-allow", &allowed]);
    let server = https(&daemon);
    // It says that it is in the rack, which only its certificate could prove.
    let forged = authority.sign("web1.example.com", &[(2, 1, "r12")]).0;
    machine.write("forged/web1.example.com.pem", forged);
    let names = "oid_mapping: {1.3.6.1.4.1.34380.1.2.1: {shortname: rack}}\n";
    let ask = |pair: &(String, String), claims: &[&str]| {
        let certificate = machine.write("own.pem", &pair.0);
        let key = machine.write("own-key.pem", &pair.1);
        let names = machine.write("names.yaml", names);
        let usual = ["--server", &server, "--tls-ca", &ca, "--tls-cert", &certificate, "--tls-key"];
        let more = [&key, "--oid-mapping-file", &names];
        machine.enc("web1.example.com", &[&usual[..], &more, claims].concat())
    };
    let directory = machine.path("forged");
    let claims = ["--signed-dir", &directory];
    assert_eq!(classes(&ask(&agent, &claims)), ["role::web"]);
    // Nor do its facts count for later requests about it.
    assert_eq!(classes(&ask(&puppet, &[])), Vec::<String>::new());
    assert_eq!(classes(&ask(&puppet, &claims)), ["rack"]);
}

#[test]
fn puppetdb_knows_nodes_that_never_asked() {
    let repository = repository();
    let body = r#"[{"certname":"web1","facts":{"os":{"family":"Debian"},"trusted":{"extensions":{"rack":"r12"}}},"trusted":{"certname":"web1","extensions":{"pp_role":"web"}}}]"#;
    let answer = format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    let puppetdb = Stub::saying(answer.leak());
    let start = |url: &str| Daemon::start(&["--repo", &repository.text_path(), "--puppetdb", url]);
    let daemon = start(&puppetdb.url);
    let machine = Machine::new();
    let known = daemon.get("/enc/web1").json();
    assert_eq!(known["classes"], json!({"apt": {}, "role::web": {"port": 80}}));
    // Trusted data of Puppet Server overrides that of PuppetDB.
    let asked = machine.enc("web1", &["--server", &url(&daemon)]);
    assert_eq!(classes(&asked), ["apt"]);
    // Without PuppetDB the facts are unknown, which is not the same as no facts.
    let daemon = start(&closed_port());
    let answer = daemon.get("/enc/web1");
    assert_eq!(
        (answer.status, answer.json()["kind"].as_str()),
        (503, Some("puppetdb-unreachable"))
    );
    assert_eq!(answer.header("Retry-After"), Some("5"));
    assert!(answer.body.contains("PuppetDB cannot be asked for the facts of web1: cannot reach"));
}

#[test]
fn root_sends_no_file_that_the_keeper_of_facts_links_to() {
    use std::os::unix::fs::{chown, symlink};

    let machine = Machine::new();
    let secret = machine.write("secret.json", r#"{"secret": "of root"}"#);
    machine.write("facts/web2.example.com.json", FACTS.replace("web1", "web2"));
    let facts = machine.path("facts");
    symlink(&secret, format!("{facts}/web1.example.com.json")).unwrap();
    let is_root = std::os::unix::fs::MetadataExt::uid(&std::fs::metadata(&facts).unwrap()) == 0;
    if !is_root || chown(&facts, Some(1234), None).is_err() {
        eprintln!("skipped: needs root");
        return;
    }
    let repository = repository();
    let daemon = Daemon::start(&["--repo", &repository.text_path()]);
    let usual = ["--server", &url(&daemon), "--facts-dir", &facts];
    let done = machine.enc("web1.example.com", &usual);
    let is_named = done.stdout.contains("user 1234 can change where");
    assert!(done.status == 1 && is_named, "{}", done.stdout);
    assert_eq!(classes(&machine.enc("web2.example.com", &usual)), ["apt"]);
    daemon.wait_until("the check-ins are kept", |it| {
        it.get("/v1/nodes/web2.example.com").status == 200
    });
    let nodes = daemon.get("/v1/nodes?facts=true").body;
    assert!(!nodes.contains("of root"), "{nodes}");
}
