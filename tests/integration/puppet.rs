//! A real Puppet Server compiles catalogs from our answers: over `clade enc`, then through the node
//! terminus. One boot of the server does all of it.

mod module;
mod server;

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::guides::{self, Machine, PUPPET_SERVER};
use crate::program::{Daemon, GitRepository, clade, root};
use server::{Agent, PuppetServer, Way};

/// Everything that YAML could spoil, in parameters and variables.
const GROUPS: &str = r#"name: Web
rule: trusted.extensions.pp_role = web
classes:
  ntp:
    servers: [a.example, "12:30"]
    panic: false
    maxpoll: 10
    drift: 1.0e+16
    mode: "0644"
    options: {tinker: {step: 3, "on": "off"}, none: null, list: [1, 2.5, true, null, "é😀\u0085"]}
    absent: '\$6\$salt\$c.d/e'
  role::web: {}
variables:
  tier: "2026-11-20"
  count: 12
  ratio: 0.5
  flag: false
  list: [1, [2], {a: "yes"}]
  map: {deep: {deeper: {"": "~"}}}
  date: "2001-12-14t21:59:43.10-05:00"
  none: null
  long: {? LONG : 1}
  hash: '\$6\$salt\$a.b/c'
  who: "${trusted['certname']} of ${kernel}$absent"
config_data: {role::web: {banner: from the classifier}}
---
name: Linux
rule: kernel = Linux
variables: {kernel_group: true}
---
name: Staging
environment: staging
environment_trumps: true
rule: ["=", ["fact", "stage"], "staging"]
---
name: Agent specified
environment: agent-specified
environment_trumps: true
rule: name = free.example.com
"#;

/// The last lines of the groups above.
const FREE: &str = "rule: name = free.example.com\n";

/// What a group has behind them: password hashes without a backslash, and what would be a reference.
const RAW_HASHES: &str = r#"classes: {ntp: {mode: "$6$salt$c.d/e"}}
variables: {hash: "$6$salt$a.b/c", who: "${trusted['certname']} costs \\$5"}
"#;

/// The variable that says that the test runs on a machine of its own.
const INSIDE: &str = "GUIDE_INSIDE";

fn groups() -> String {
    GROUPS.replace("LONG", &"k".repeat(1010))
}

/// Returns why the test cannot run.
fn missing() -> Option<&'static str> {
    let runs = |program: &str| Command::new(program).arg("--version").output().is_ok();
    if !Path::new("/usr/share/puppetserver/puppetserver.jar").exists() || !runs("puppetserver") {
        return Some("puppetserver");
    }
    (!runs("puppet")).then_some("puppet-agent")
}

/// The daemon behind Puppet Server, over TLS with certificates of Puppet's CA.
fn daemon(repository: &GitRepository, puppet: &PuppetServer) -> Daemon {
    let allow =
        puppet.write("allow.yaml", "- certname: localhost\n  roles: [classify, check-in, read]\n");
    Daemon::start(&[
        "--repo",
        &repository.text_path(),
        "--tls-cert",
        &puppet.path("ssl/certs/localhost.pem"),
        "--tls-key",
        &puppet.path("ssl/private_keys/localhost.pem"),
        "--tls-client-ca",
        &puppet.path("ca/ca_crt.pem"),
        "--tls-client-crl",
        &puppet.path("ca/ca_crl.pem"),
        "--tls-allow",
        &allow,
    ])
}

/// Returns the parameters of a resource.
fn parameters(catalog: &Value, kind: &str, title: &str) -> Value {
    let mut resources = catalog["resources"].as_array().unwrap().iter();
    let found = resources.find(|it| it["type"] == kind && it["title"] == title);
    found.unwrap_or_else(|| panic!("no {kind}[{title}]"))["parameters"].clone()
}

/// Checks a catalog of a node in the groups above.
fn check_catalog(catalog: &Value, environment: &str, certname: &str) {
    let classes = catalog["classes"].as_array().unwrap();
    for class in ["ntp", "role::web"] {
        assert!(classes.iter().any(|it| it == class), "{classes:?}");
    }
    assert_eq!(catalog["environment"], environment);
    let parameters = |kind: &str, title: &str| parameters(catalog, kind, title);
    let ntp = parameters("Class", "Ntp");
    for (parameter, value) in [
        ("servers", json!(["a.example", "12:30"])),
        ("panic", json!(false)),
        ("maxpoll", json!(10)),
        ("mode", json!("0644")),
        ("absent", json!("$6$salt$c.d/e")),
        (
            "options",
            json!({"tinker": {"step": 3, "on": "off"}, "none": null, "list": [1, 2.5, true, null, "é😀\u{85}"]}),
        ),
    ] {
        assert_eq!(ntp[parameter], value, "{parameter}");
    }
    assert_eq!(ntp["drift"].as_f64(), Some(1e16));
    assert_eq!(
        parameters("Role::Seen", "variables")["value"],
        json!({
            "tier": "2026-11-20",
            "count": 12,
            "ratio": 0.5,
            "flag": false,
            "list": [1, [2], {"a": "yes"}],
            "map": {"deep": {"deeper": {"": "~"}}},
            "date": "2001-12-14t21:59:43.10-05:00",
            "none": null,
            "long": {"k".repeat(1010): 1},
            "hash": "$6$salt$a.b/c",
            "who": format!("{certname} of Linux"),
        })
    );
    assert_eq!(parameters("Role::Seen", "environment")["value"], environment);
    assert_eq!(parameters("Role::Seen", "pp_role")["value"], "web");
    assert_eq!(parameters("Role::Seen", "hiera")["value"], "from the classifier");
    assert_eq!(parameters("Class", "Role::Web")["banner"], "from the classifier");
}

/// The checks of both ways; they end the daemon.
fn check_way(puppet: &PuppetServer, way: Way, agent: &Agent) {
    let repository = GitRepository::new();
    let settings = ("clade.yaml", "interpolate: true\n");
    repository.commit("groups", &[settings, ("groups/all.yaml", &groups())]);
    let daemon = daemon(&repository, puppet);
    puppet.ask(way, &daemon.address);

    // A first run, in which facts come with the catalog's request only; they put the node elsewhere.
    agent.fact("stage", "staging");
    let done = agent.run(puppet, &[]);
    assert_eq!(done.status, 0, "{way:?}: {}\n{}", done.text, puppet.log());
    check_catalog(&agent.catalog(), "staging", &agent.name);
    let seen = daemon_says(puppet, &daemon, &format!("/v1/nodes/{}?facts=true", agent.name));
    assert_eq!(seen["trusted"]["extensions"], json!({"pp_role": "web"}));
    assert_eq!(seen["fact"]["stage"], "staging");
    assert_eq!(seen["fact"].get("trusted"), None, "the forged fact is dropped");
    assert_eq!(seen["transaction_uuid"].is_string(), way == Way::Terminus);

    // A pushed commit changes the next catalog.
    let changed =
        groups().replace("tier: \"2026-11-20\"", "tier: back").replace("stage\"]", "stag\"]");
    let commit = repository.commit("changed", &[("groups/all.yaml", &changed)]);
    daemon_answers(puppet, &daemon, &commit);
    let done = agent.run(puppet, &[]);
    assert_eq!(done.status, 0, "{way:?}: {}", done.text);
    let catalog = agent.catalog();
    assert_eq!(catalog["environment"], "production");
    assert!(catalog.to_string().contains(r#""tier":"back""#));

    // A conflict fails the run, and the agent's error names it.
    let rival = "---\nname: Rival\nrule: kernel = Linux\nclasses: {ntp: {maxpoll: 11}}\n";
    let torn = repository.commit("torn", &[("groups/rival.yaml", rival)]);
    daemon_answers(puppet, &daemon, &torn);
    let done = agent.run(puppet, &[]);
    assert_eq!(done.status, 1, "{way:?}: {}", done.text);
    for part in ["classified into groups named", "Rival", "Web", "maxpoll"] {
        assert!(done.text.contains(part), "{way:?}: {}", done.text);
    }
    let mended = repository.commit("mended", &[("groups/rival.yaml", "")]);
    daemon_answers(puppet, &daemon, &mended);

    // Without the daemon runs use the last good answer, and a log line says so.
    daemon.kill();
    let done = agent.run(puppet, &[]);
    assert_eq!(done.status, 0, "{way:?}: {}", done.text);
    assert!(agent.catalog().to_string().contains(r#""tier":"back""#));
    assert!(puppet.log().contains("using the last good answer"), "{}", puppet.log());
}

/// Sends a request to the daemon as Puppet Server.
fn daemon_says(puppet: &PuppetServer, daemon: &Daemon, path: &str) -> Value {
    let port = daemon.address.rsplit_once(':').unwrap().1;
    let output = Command::new("curl")
        .args(["-sf", "--cacert", &puppet.path("ca/ca_crt.pem")])
        .args(["--cert", &puppet.path("ssl/certs/localhost.pem")])
        .args(["--key", &puppet.path("ssl/private_keys/localhost.pem")])
        .arg(format!("https://localhost:{port}{path}"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{path}: {output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn daemon_answers(puppet: &PuppetServer, daemon: &Daemon, commit: &str) {
    daemon.wait_until("the commit answers", |it| {
        daemon_says(puppet, it, "/controller/status")["active"]["commit"] == commit
    });
}

#[test]
#[ignore = "boots a Puppet Server, which takes minutes; .ci/run does"]
fn a_real_puppet_server_compiles_catalogs_from_our_answers() {
    if let Some(missing) = missing() {
        eprintln!("skipped: needs {missing}");
        return;
    }
    // The guide needs `/etc` and port 4433 for itself.
    let is_inside = std::env::var_os(INSIDE).is_some();
    if !is_inside {
        match Machine::new() {
            Ok(machine) => return run_inside(&machine),
            Err(missing) => eprintln!("skipped: needs {missing}"),
        }
    }
    let mut puppet = PuppetServer::prepare();
    puppet.start(Way::Exec);
    let agent = Agent::new(&puppet, "web1.example.com", Some("web"));
    // A node can claim any fact.
    agent.forge_trusted_fact();
    check_way(&puppet, Way::Exec, &agent);
    puppet.reload(Way::Terminus);
    let agent = Agent::new(&puppet, "web2.example.com", Some("web"));
    agent.forge_trusted_fact();
    check_way(&puppet, Way::Terminus, &agent);
    check_agent_specified(&puppet);
    check_command_line(&puppet);
    if is_inside {
        check_guide(&puppet);
    }
}

/// Runs this test again on a machine of its own.
fn run_inside(machine: &Machine) {
    let done = machine
        .command(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "--nocapture"])
        .arg("puppet::a_real_puppet_server_compiles_catalogs_from_our_answers")
        .env("HOME", "/root")
        .env(INSIDE, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    eprintln!("{text}{}", String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success() && text.contains("1 passed"), "{}", done.status);
}

/// The guide, from the first block to the last, with the server that runs already.
fn check_guide(puppet: &PuppetServer) {
    puppet.install();
    let mut shell = Command::new("bash");
    shell
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("LC_ALL", "C.UTF-8")
        .env("GUIDE_ROOT", root())
        .env("PUPPETSERVER_PID", puppet.path("run/server.pid"))
        .env("PUPPETSERVER_RESTARTS", puppet.path("run/restart"));
    guides::check(&root().join(PUPPET_SERVER), shell);
}

/// A group may leave the environment to the agent.
fn check_agent_specified(puppet: &PuppetServer) {
    let repository = GitRepository::new();
    // Without `interpolate`, values reach the agent as they are written.
    let raw = groups().replace(FREE, &format!("{FREE}{RAW_HASHES}"));
    repository.commit("groups", &[("groups/all.yaml", &raw)]);
    let daemon = daemon(&repository, puppet);
    puppet.ask(Way::Terminus, &daemon.address);
    puppet.ask(Way::Exec, &daemon.address);
    let free = Agent::new(puppet, "free.example.com", None);
    let done = free.run(puppet, &["--environment", "staging"]);
    assert_eq!(done.status, 0, "{}", done.text);
    let catalog = free.catalog();
    assert_eq!(catalog["environment"], "staging");
    assert_eq!(parameters(&catalog, "Class", "Ntp")["mode"], "$6$salt$c.d/e");
    let variables = parameters(&catalog, "Role::Seen", "variables");
    assert_eq!(variables["value"]["hash"], "$6$salt$a.b/c");
    assert_eq!(variables["value"]["who"], r"${trusted['certname']} costs \$5");
}

/// The commands of Puppet that need no server.
fn check_command_line(puppet: &PuppetServer) {
    let repository = GitRepository::new();
    repository.commit("groups", &[("groups/all.yaml", &groups())]);
    let daemon = daemon(&repository, puppet);
    let enc = puppet.ask(Way::Exec, &daemon.address);
    puppet.ask(Way::Terminus, &daemon.address);
    for way in [Way::Exec, Way::Terminus] {
        let node =
            puppet.command(way, &["node", "find", "web1.example.com", "--render-as", "json"]);
        let found: Value = serde_json::from_str(node.trim()).unwrap_or_else(|_| panic!("{node}"));
        assert_eq!(found["environment"], "staging", "{way:?}: {node}");
        if way == Way::Exec {
            // Its certificate is with the authority; the terminus sees those of callers only.
            assert_eq!(found["classes"]["ntp"]["maxpoll"], 10, "{node}");
        }
        assert_eq!(found["parameters"]["kernel_group"], true, "{way:?}: {node}");
    }
    let manifest =
        puppet.write("say.pp", "notice(\"kernel_group=${kernel_group} in ${environment}\")\n");
    // With `clade enc` the facts are those that the server keeps, with the terminus those of now.
    for (way, name, environment) in
        [(Way::Exec, "web1.example.com", "staging"), (Way::Terminus, "localhost", "production")]
    {
        let applied = puppet.command(way, &["apply", &manifest, "--certname", name]);
        let expected = format!("kernel_group=true in {environment}");
        assert!(applied.contains(&expected), "{way:?}: {applied}");
    }
    // The settings are those of the file; this is the command that puppet.conf names.
    let done = clade(&["enc", "web1.example.com", "--config", &enc]).output().unwrap();
    assert!(done.status.success() && done.stderr.is_empty(), "{done:?}");
}
