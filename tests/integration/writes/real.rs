//! Clients of other projects, where a checkout is given: no registry that CI can reach carries
//! them, so `CLIENTS` names a directory with checkouts of `puppetlabs-node_manager` and `puppet-classify`.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::Hub;
use super::clients::hub;
use crate::git::server::tls;
use crate::program::{Daemon, root};

/// The SHA-256 of `hello`.
const TOKENS: &str = "- name: ci\n  sha256: 2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824\n  roles: [classify, read, write, operate]\n";

fn checkout(name: &str) -> Option<PathBuf> {
    let found = Path::new(&std::env::var_os("CLIENTS")?).join(name);
    found.exists().then_some(found)
}

/// Serves a hub over TLS to clients with the token.
fn serve(hub: &Hub) -> Daemon {
    let tokens = hub.path().join("tokens.yaml");
    std::fs::write(&tokens, TOKENS).unwrap();
    let file = |path: &Path| path.to_str().unwrap().to_owned();
    hub.serve(&[
        "--tls-cert",
        &file(&tls("server.pem")),
        "--tls-key",
        &file(&tls("server-key.pem")),
        "--tokens-file",
        &file(&tokens),
    ])
}

fn port(daemon: &Daemon) -> &str {
    daemon.address.rsplit_once(':').unwrap().1
}

#[test]
#[ignore = "CLIENTS must name a directory with the checkout"]
fn the_gem_puppetclassify_does_all_that_it_can() {
    let checkout = checkout("puppet-classify").unwrap();
    let hub = hub();
    hub.commit(
        "Classes",
        &[("environments/production.yaml", "classes: {apache: {}, puppet_enterprise: {}}\n")],
    );
    let daemon = serve(&hub);
    let url = format!("https://localhost:{}/classifier-api", port(&daemon));
    let done = Command::new("ruby")
        .arg(root().join("tests/clients/puppetclassify.rb"))
        .arg(checkout)
        .arg(url)
        .arg(tls("ca.pem"))
        .arg("hello")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success() && said.is_empty(), "{said}");
    assert_eq!(hub.log().len(), 9, "{:?}", hub.log());
}

const LAB: &str = "node_group { 'Lab':
  ensure => present, environment => 'production', parent => 'PE Master',
  rule => ['and', ['=', ['fact', 'kernel'], 'Linux']],
  classes => { 'apache' => { 'x' => 'y' } }, variables => { 'a' => '1' }, description => 'first',
}";

#[test]
#[ignore = "CLIENTS must name a directory with the checkout"]
fn node_manager_keeps_groups_as_manifests_say() {
    let checkout = checkout("puppetlabs-node_manager").unwrap();
    let hub = hub();
    let daemon = serve(&hub);
    let home = tempfile::tempdir().unwrap();
    let path = |name: &str| home.path().join(name);
    for directory in ["conf", "modules"] {
        std::fs::create_dir(path(directory)).unwrap();
    }
    std::os::unix::fs::symlink(checkout, path("modules/node_manager")).unwrap();
    let settings = format!("server: localhost\nport: {}\ntoken: hello\n", port(&daemon));
    std::fs::write(path("conf/node_manager.yaml"), settings).unwrap();
    let puppet = |arguments: &[&str]| {
        let mut command = Command::new("puppet");
        command.args(arguments).args(["--color", "false", "--modulepath"]).arg(path("modules"));
        command.arg("--confdir").arg(path("conf")).arg("--vardir").arg(path("var"));
        let done = command.output().unwrap();
        let text = String::from_utf8_lossy(&done.stdout) + String::from_utf8_lossy(&done.stderr);
        (done.status.code(), text.into_owned())
    };
    let apply = |manifest: &str| puppet(&["apply", "--detailed-exitcodes", "-e", manifest]);
    let changed = LAB.replace("'a' => '1'", "'b' => '2'").replace("first", "second");
    let gone = "node_group { 'Lab': ensure => absent }".to_owned();
    // 2 is changes, 0 is none: the second run finds everything as it is to be.
    for manifest in [LAB.to_owned(), changed, gone, LAB.to_owned()] {
        assert_eq!(apply(&manifest).0, Some(2), "{:?}", apply(&manifest));
        let again = apply(&manifest);
        assert_eq!(again.0, Some(0), "{}", again.1);
    }
    let (_, listed) = puppet(&["resource", "node_group"]);
    assert!(listed.contains("node_group { 'Lab'") && listed.contains("'a' => '1'"), "{listed}");
    let group = "aaaaaaaa-0000-4000-8000-000000000001";
    for (arguments, said) in [
        (vec!["groups"], "Lab"),
        (vec!["environments"], "true"),
        (vec!["classified", "m"], "puppet_enterprise"),
        (vec!["classified", "m", "--explain"], "\"value\": true"),
        (vec!["pin", "x.example.com", "--node_group", group], "Success"),
        (vec!["unpin", "x.example.com", "--all"], "PE Master"),
        (vec!["classes", "--update"], "Success"),
    ] {
        let (status, text) = puppet(&[&["node_manager"], arguments.as_slice()].concat());
        assert!(status == Some(0) && text.contains(said), "{arguments:?}: {text}");
    }
    let log = hub.log();
    let expected = [
        "Begin",
        "Add the group \"Lab\" below \"PE Master\"",
        "Edit the group \"Lab\": description, variables",
        "Remove the group \"Lab\"",
        "Add the group \"Lab\" below \"PE Master\"",
        "Pin x.example.com to the group \"PE Master\"",
        "Unpin x.example.com from all groups",
    ];
    assert_eq!(log, expected);
}
