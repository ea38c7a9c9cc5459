//! The Helm chart: rendered by the real helm, and what it renders tried with the real daemon.

mod pod;
mod rendering;
mod values;

use std::path::PathBuf;
use std::process::{Command, Output};

use crate::program::root;
use crate::readme::updating;
use crate::table::each_row;

/// Runs helm in the root of the project.
fn helm(arguments: &[&str]) -> Option<Output> {
    let done = Command::new("helm").args(arguments).current_dir(root()).output();
    if done.is_err() {
        eprintln!("skipped: needs helm");
    }
    done.ok()
}

/// The releases that are tried: every file `charts/clade/ci/<name>-values.yaml`.
fn scenarios() -> Vec<(String, PathBuf)> {
    let mut found: Vec<(String, PathBuf)> = std::fs::read_dir(root().join("charts/clade/ci"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| {
            let name = path.file_name().unwrap().to_str().unwrap();
            (name.strip_suffix("-values.yaml").unwrap().to_owned(), path)
        })
        .collect();
    found.sort();
    assert!(found.len() >= 10, "the scenarios are there");
    found
}

/// Returns the manifests of a scenario.
fn render(scenario: &std::path::Path) -> Option<String> {
    let file = scenario.to_str().unwrap();
    let done = helm(&["template", "clade", "charts/clade", "--namespace", "puppet", "-f", file])?;
    assert!(done.status.success(), "{file}: {}", String::from_utf8_lossy(&done.stderr));
    Some(String::from_utf8(done.stdout).unwrap())
}

#[test]
fn every_scenario_passes_the_linter() {
    for (name, path) in scenarios() {
        let arguments = ["lint", "--strict", "charts/clade", "-f", path.to_str().unwrap()];
        let Some(done) = helm(&arguments) else { return };
        assert!(done.status.success(), "{name}: {}", String::from_utf8_lossy(&done.stdout));
    }
}

#[test]
fn every_scenario_renders_what_was_reviewed() {
    for (name, path) in scenarios() {
        let Some(manifests) = render(&path) else { return };
        let golden = root().join(format!("tests/fixtures/chart/{name}.yaml"));
        if updating() {
            std::fs::write(golden, manifests).unwrap();
        } else {
            let reviewed = std::fs::read_to_string(&golden).unwrap();
            assert!(
                manifests == reviewed,
                "{name}: run with UPDATE_DOCS=1 and read the difference: {manifests}"
            );
        }
    }
}

/// Returns what helm prints after the installation of a scenario.
///
/// It does so with a cluster only, so a template of the test's own prints it.
fn notes(scenario: &std::path::Path) -> Option<String> {
    let directory = tempfile::tempdir().unwrap();
    let chart = directory.path().join("clade");
    let copied = Command::new("cp").arg("-r").arg(root().join("charts/clade")).arg(&chart).status();
    assert!(copied.unwrap().success());
    let template = "notes: {{ include \"clade/templates/NOTES.txt\" . | toJson }}\n";
    std::fs::write(chart.join("templates/printed.yaml"), template).unwrap();
    let (chart, values) = (chart.to_str().unwrap(), scenario.to_str().unwrap());
    let done = helm(&[
        "template",
        "clade",
        chart,
        "--namespace",
        "puppet",
        "-f",
        values,
        "--show-only",
        "templates/printed.yaml",
    ])?;
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let printed = String::from_utf8(done.stdout).unwrap();
    let json = printed.split_once("notes: ").unwrap().1;
    Some(serde_json::from_str(json.trim()).unwrap())
}

#[test]
fn the_notes_say_how_to_ask_the_first_question() {
    let of = |name: &str| {
        let scenarios = scenarios();
        let (_, path) = scenarios.iter().find(|(it, _)| it == name).unwrap();
        notes(path)
    };
    let Some(minimal) = of("minimal") else { return };
    insta::assert_snapshot!(minimal, @r#"
Clade follows https://git.example.com/puppet/groups.git and answers at

  http://clade.puppet.svc:4433

Wait until it does, and ask the first question:

  kubectl -n puppet rollout status deployment/clade
  helm -n puppet test clade
  kubectl -n puppet port-forward service/clade 4433:4433 &
  curl http://127.0.0.1:4433/v1/classified/nodes/node.example.com

How one replica stands, and why a commit does not answer:

  kubectl -n puppet port-forward deployment/clade 4434 &
  curl http://127.0.0.1:4434/controller/status

WARNING: every client that can reach the service may classify and read, and nothing is encrypted. Set `tls.existingSecret` and
`tls.clientCA`, or `access.tokens.existingSecret`.
"#);
    insta::assert_snapshot!(of("tls-client-certificates").unwrap(), @r#"
Clade follows the branch production of https://git.example.com/puppet/groups.git and answers at

  https://clade.puppet.svc:4433

Wait until it does, and ask the first question:

  kubectl -n puppet rollout status deployment/clade
  helm -n puppet test clade
  kubectl -n puppet port-forward service/clade 4433:4433 &
  curl --cacert CA.pem --cert NODE.pem --key NODE.key --connect-to clade.puppet.svc:4433:127.0.0.1:4433 https://clade.puppet.svc:4433/v1/classified/nodes/node.example.com

How one replica stands, and why a commit does not answer:

  kubectl -n puppet port-forward deployment/clade 4434 &
  curl -k --cert NODE.pem --key NODE.key https://127.0.0.1:4434/controller/status
"#);
    let with_tokens = of("ssh-deploy-key").unwrap();
    assert!(with_tokens.contains("curl -H \"X-Authentication: $TOKEN\" http://127.0.0.1:4433/v1/"));
    assert!(with_tokens.contains("over http only with `--insecure-http`"), "{with_tokens}");
    assert!(
        with_tokens.contains("follows ssh://git.example.com/puppet/groups.git"),
        "{with_tokens}"
    );
}

#[test]
fn every_manifest_fits_the_schemas_of_kubernetes() {
    let directory = tempfile::tempdir().unwrap();
    // The oldest that the chart admits, and the newest whose schemas the validator has.
    for version in [&["-k", "1.30"][..], &[]] {
        for (name, path) in scenarios() {
            let Some(manifests) = render(&path) else { return };
            let file = directory.path().join(format!("{name}.yaml"));
            std::fs::write(&file, manifests).unwrap();
            let done = Command::new("kubernetes-validate")
                .args(version)
                .arg("--strict")
                .arg(&file)
                .output();
            let Ok(done) = done else {
                eprintln!("skipped: needs kubernetes-validate");
                return;
            };
            let said = String::from_utf8_lossy(&done.stdout).into_owned()
                + &String::from_utf8_lossy(&done.stderr);
            assert!(done.status.success(), "{name}: {said}");
            // Those of operators have no schema there.
            let unknown = said.lines().filter(|it| it.contains("Couldn't find schema"));
            for line in unknown {
                assert!(
                    line.contains("ServiceMonitor") || line.contains("HTTPRoute"),
                    "{name}: {line}"
                );
            }
            assert!(said.contains("passed for resource"), "{name}: {said}");
        }
    }
}

#[test]
fn what_does_not_go_together_is_refused() {
    let url = "repository.url=https://git.example.com/groups.git";
    let open = "access.allowAnonymous=true";
    let rows = [
        (&[open][..], "`repository.url` is missing"),
        (&[url], "every request would be refused"),
        (&[url, open, "replicaCount=0"], "replicaCount"),
        (&[url, open, "replicas=3"], "replicas"),
        (&[url, "tls.clientCA.existingSecret=ca"], "`tls.clientCA` needs `tls.existingSecret`"),
        (&[url, open, "tls.allow[0].certname=puppet"], "`tls.allow` needs `tls.clientCA`"),
        (
            &[url, open, "repository.credentials.type=token"],
            "`repository.credentials.existingSecret` is missing",
        ),
        (
            &[
                url,
                open,
                "repository.credentials.type=basic",
                "repository.credentials.existingSecret=s",
            ],
            "`repository.credentials.username` is missing",
        ),
        (
            &[
                url,
                open,
                "repository.credentials.type=ssh",
                "repository.credentials.existingSecret=s",
            ],
            "`repository.knownHosts` is missing",
        ),
        (&[url, open, "repository.verify.mode=head"], "`repository.verify.mode` needs"),
        (&[url, open, "repository.interval=often"], "repository.interval"),
        (&[url, open, "config.listen=0.0.0.0:1"], "config"),
        (&[url, open, "forge.existingSecret=s"], "`config.forge` is missing"),
        (&[url, open, "config.writes=commit"], "`writes` needs `replicaCount: 1`"),
        (&[url, open, "gateway.enabled=true"], "`gateway.parentRefs` is missing"),
        (&[url, open, "terminationGracePeriodSeconds=30"], "must be more than"),
    ];
    each_row(rows, |(sets, reason)| {
        let sets: Vec<&str> = sets.iter().flat_map(|it| ["--set", it]).collect();
        let arguments = [&["template", "clade", "charts/clade"], sets.as_slice()].concat();
        let Some(done) = helm(&arguments) else { return };
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(!done.status.success(), "{sets:?} is taken");
        assert!(said.contains(reason), "{sets:?}: {said}");
    });
}

#[test]
fn the_examples_of_wiring_name_what_is_there() {
    let read = |name: &str| {
        std::fs::read_to_string(root().join("examples/kubernetes").join(name)).unwrap()
    };
    let values: serde_json::Value =
        serde_yaml::from_str(&read("puppetserver-values.yaml")).unwrap();
    let script = &values["puppetserver"]["customentrypoints"]["configmaps"]["90-enc.sh"];
    for script in [script.as_str().unwrap(), &read("90-enc.sh")] {
        let checked = Command::new("sh").args(["-n", "-c", script]).status().unwrap();
        assert!(checked.success(), "{script}");
        assert!(script.contains("\"/opt/clade/clade enc --server"), "{script}");
    }
    let image = "COPY --from=clade /usr/bin/clade /opt/clade/clade\n";
    assert!(read("Dockerfile").contains(image), "the program is where the scripts start it");
    let classifier: serde_json::Value = serde_yaml::from_str(&read("nodeclassifier.yaml")).unwrap();
    let (repository, daemon) = crate::readme::serve_fleet();
    let request = &classifier["spec"]["request"];
    let path = request["path"].as_str().unwrap().replace("{certname}", "web1.example.com");
    // What the operator's program sends for `body: facts`.
    let body = r#"{"certname": "web1.example.com", "facts": {"os.family": "Debian"}}"#;
    let answer = daemon.request(request["method"].as_str().unwrap(), &path, body);
    assert_eq!(answer.status, 200, "{} {}", answer.body, repository.text_path());
    assert!(answer.json()["classes"].is_object());
}
