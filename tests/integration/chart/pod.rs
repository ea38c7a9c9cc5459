//! A rendered pod on this machine: its files, its arguments, its probes.

use std::process::Command;

use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, CertifiedIssuer, DnType,
    IsCa, KeyIdMethod, KeyPair, KeyUsagePurpose, SerialNumber,
};
use serde::Deserialize as _;
use serde_json::Value;

use super::{render, scenarios};
use crate::program::{Daemon, GitRepository, clade, root, run};

/// What a release finds in its namespace, by key.
struct Secrets(Vec<(&'static str, String)>);

impl Secrets {
    fn new() -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "Puppet CA");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let names = ["puppet.example.com", "clade.puppet.svc", "127.0.0.1"].map(str::to_owned);
        let mut params = CertificateParams::new(names).unwrap();
        params.distinguished_name.push(DnType::CommonName, "puppet.example.com");
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &authority).unwrap();
        let revoked = CertificateRevocationListParams {
            this_update: rcgen::date_time_ymd(2020, 1, 1),
            next_update: rcgen::date_time_ymd(2040, 1, 1),
            crl_number: SerialNumber::from(1),
            issuing_distribution_point: None,
            revoked_certs: Vec::new(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        let revoked = revoked.signed_by(&authority).unwrap().pem().unwrap();
        // The hash is that of the token.
        let tokens = "- name: test\n  sha256: 2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824\n  roles: [classify]\n";
        Self(vec![
            ("tls.crt", certificate.pem()),
            ("tls.key", key.serialize_pem()),
            ("ca.crt", authority.pem()),
            ("ca_crt.pem", authority.pem()),
            ("ca_crl.pem", revoked),
            ("tokens.yaml", tokens.to_owned()),
            ("token", "hello".to_owned()),
            ("password", "secret".to_owned()),
            ("secret", "secret\n".to_owned()),
            ("ssh-privatekey", key.serialize_pem()),
            ("clade.yaml", "max-staleness: 1h\n".to_owned()),
        ])
    }

    fn get(&self, key: &str) -> &str {
        let found = self.0.iter().find(|(name, _)| *name == key);
        found.map_or_else(|| panic!("no secret `{key}`"), |(_, content)| content.as_str())
    }
}

/// A pod, or what one is made from.
struct Pod {
    arguments: Vec<String>,
    container: Value,
    directory: tempfile::TempDir,
}

fn documents(manifests: &str) -> Vec<Value> {
    let read = |document| Value::deserialize(document).unwrap();
    serde_yaml::Deserializer::from_str(manifests).map(read).filter(|it| !it.is_null()).collect()
}

fn strings(value: &Value) -> Vec<String> {
    let all = value.as_array().map(Vec::as_slice).unwrap_or_default();
    all.iter().map(|it| it.as_str().unwrap().to_owned()).collect()
}

impl Pod {
    /// Mounts what a pod mounts below a directory of its own.
    fn mount(kinds: &[&str], documents: &[Value], secrets: &Secrets) -> Self {
        let is_it = |it: &&Value| kinds.contains(&it["kind"].as_str().unwrap());
        let document = documents.iter().find(is_it).unwrap();
        let spec = document.pointer("/spec/template/spec").unwrap_or(&document["spec"]);
        let container = spec["containers"][0].clone();
        let directory = tempfile::tempdir().unwrap();
        let below = |path: &str| directory.path().join(path.trim_start_matches('/'));
        let volumes = spec["volumes"].as_array().map(Vec::as_slice).unwrap_or_default();
        for mount in container["volumeMounts"].as_array().map(Vec::as_slice).unwrap_or_default() {
            let place = below(mount["mountPath"].as_str().unwrap());
            std::fs::create_dir_all(&place).unwrap();
            let volume = volumes.iter().find(|it| it["name"] == mount["name"]);
            // That of a claim is none of the pod's.
            let Some(volume) = volume else { continue };
            let own = documents.iter().find(|it| {
                it["kind"] == "ConfigMap" && it["metadata"]["name"] == volume["configMap"]["name"]
            });
            if let Some(own) = own {
                for (key, content) in own["data"].as_object().unwrap() {
                    std::fs::write(place.join(key), content.as_str().unwrap()).unwrap();
                }
                continue;
            }
            let source = ["secret", "configMap"].iter().find_map(|it| volume.get(*it));
            let Some(source) = source else { continue };
            let whole = vec![serde_json::json!({"key": "clade.yaml", "path": "clade.yaml"})];
            for item in source["items"].as_array().unwrap_or(&whole) {
                let content = secrets.get(item["key"].as_str().unwrap());
                std::fs::write(place.join(item["path"].as_str().unwrap()), content).unwrap();
            }
        }
        let moved = |argument: String| match argument.split_once("=/") {
            Some((flag, path)) => format!("{flag}={}", below(path).display()),
            None => argument,
        };
        let arguments = strings(&container["args"]).into_iter().map(moved).collect();
        Self { arguments, container, directory }
    }

    /// Gives a flag another value.
    fn set(&mut self, flag: &str, value: &str) {
        let start = format!("{flag}=");
        let found = self.arguments.iter_mut().find(|it| it.starts_with(&start));
        *found.unwrap_or_else(|| panic!("no {flag}")) = format!("{flag}={value}");
    }

    fn arguments(&self) -> Vec<&str> {
        self.arguments.iter().map(String::as_str).collect()
    }
}

#[test]
fn the_daemon_accepts_the_arguments_of_every_scenario() {
    let secrets = Secrets::new();
    for (name, path) in scenarios() {
        let Some(manifests) = render(&path) else { return };
        let pod = Pod::mount(&["Deployment", "StatefulSet"], &documents(&manifests), &secrets);
        let done = run(&[pod.arguments().as_slice(), &["--check"]].concat());
        assert_eq!(done.status, 0, "{name}: {}", done.stderr);
        for argument in &pod.arguments {
            let flag = argument.trim_start_matches("--").split('=').next().unwrap();
            let shown = done.stdout.lines().find(|it| it.starts_with(&format!("{flag}: ")));
            let by_flag = shown.is_some_and(|it| it.ends_with("# flag"));
            assert!(
                by_flag || ["serve", "config"].contains(&flag),
                "{name}: {argument}: {shown:?}"
            );
        }
        let from_file = done.stdout.lines().filter(|it| it.ends_with("# file")).count();
        let with_file = pod.arguments.iter().any(|it| it.starts_with("--config"));
        assert_eq!(from_file > 0, with_file, "{name}: {}", done.stdout);
    }
}

fn curl(arguments: &[&str]) -> Option<String> {
    let done = Command::new("curl").arg("-sk").args(arguments).output();
    if done.is_err() {
        eprintln!("skipped: needs curl");
    }
    Some(String::from_utf8(done.ok()?.stdout).unwrap())
}

/// The group repository of a scenario.
fn repository() -> GitRepository {
    let group = "name: All\nrule: [\"~\", \"name\", \".*\"]\nclasses: {role::base: {}}\n";
    let repository = GitRepository::new();
    let commit = repository
        .commit("first", &[("groups/all.yaml", group), ("classification/groups/all.yaml", group)]);
    let commit = commit.parse().unwrap();
    repository.git().reference("refs/heads/production", commit, false, "").unwrap();
    repository
}

#[test]
fn a_rendered_pod_answers_its_probes_and_its_test() {
    let secrets = Secrets::new();
    let repository = repository();
    for scenario in ["minimal", "tls-client-certificates", "service-monitor"] {
        let (_, path) = scenarios().into_iter().find(|(name, _)| name == scenario).unwrap();
        let Some(manifests) = render(&path) else { return };
        let documents = documents(&manifests);
        let mut pod = Pod::mount(&["Deployment"], &documents, &secrets);
        pod.set("--repo", &repository.text_path());
        pod.set("--listen", "127.0.0.1:0");
        pod.set("--admin-listen", "127.0.0.1:0");
        pod.set("--interval", "50ms");
        let daemon = Daemon::launch(clade(&pod.arguments()));
        let admin = daemon.admin_address();

        for probe in ["startupProbe", "livenessProbe", "readinessProbe"] {
            let get = &pod.container[probe]["httpGet"];
            assert_eq!(get["port"], "admin");
            let scheme = get["scheme"].as_str().unwrap().to_lowercase();
            let url = format!("{scheme}://{admin}{}", get["path"].as_str().unwrap());
            let Some(code) = curl(&["-o", "/dev/null", "-w", "%{http_code}", &url]) else { return };
            assert_eq!(code, "200", "{scenario}: {probe}");
        }
        if let Some(monitor) = documents.iter().find(|it| it["kind"] == "ServiceMonitor") {
            let endpoint = &monitor["spec"]["endpoints"][0];
            let scheme = endpoint["scheme"].as_str().unwrap();
            let url = format!("{scheme}://{admin}{}", endpoint["path"].as_str().unwrap());
            assert!(curl(&[&url]).unwrap().contains("clade_snapshot_groups 2"), "{scenario}");
        }
        if scenario != "service-monitor" {
            classifies_a_node(scenario, &documents, &secrets, &daemon.address);
        }
    }
}

/// Runs the pod of `helm test`.
fn classifies_a_node(scenario: &str, documents: &[Value], secrets: &Secrets, address: &str) {
    let mut pod = Pod::mount(&["Pod"], documents, secrets);
    let scheme = if scenario == "minimal" { "http" } else { "https" };
    let asked = pod.arguments.iter().find(|it| it.starts_with("--server=")).unwrap();
    assert_eq!(*asked, format!("--server={scheme}://clade.puppet.svc:4433"), "{scenario}");
    pod.set("--server", &format!("{scheme}://{address}"));
    let done = clade(&pod.arguments()).env("HOME", pod.directory.path()).output().unwrap();
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success(), "{scenario}: {said}");
    assert!(said.contains("\"role::base\": {}"), "{scenario}: {said}");
}

/// Loopback, where the test above asks, is a network that a token may cross; that of a cluster is none. So each test pod
/// asks the name of its service here, and gets as far as looking that up.
#[test]
fn the_test_pod_of_every_scenario_may_send_its_credentials() {
    let secrets = Secrets::new();
    for (name, _) in scenarios() {
        let golden = root().join(format!("tests/fixtures/chart/{name}.yaml"));
        let documents = documents(&std::fs::read_to_string(golden).unwrap());
        let pod = Pod::mount(&["Pod"], &documents, &secrets);
        let done = clade(&pod.arguments()).env("HOME", pod.directory.path()).output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr);
        let (_, host) =
            said.split_once("cannot reach `http").unwrap_or_else(|| panic!("{name}: {said}"));
        assert!(host.contains(".puppet.svc:4433`: "), "{name}: {said}");
    }
}

#[test]
fn a_pod_may_run_as_any_uid_and_needs_no_more_than_its_data() {
    for (name, path) in scenarios() {
        let Some(manifests) = render(&path) else { return };
        for document in documents(&manifests) {
            let Some(spec) = document.pointer("/spec/template/spec") else { continue };
            let container = &spec["containers"][0];
            assert_eq!(spec["automountServiceAccountToken"], false, "{name}");
            assert_eq!(spec["enableServiceLinks"], false, "{name}");
            assert_eq!(spec["securityContext"]["runAsNonRoot"], true, "{name}");
            assert_eq!(container["securityContext"]["readOnlyRootFilesystem"], true, "{name}");
            assert_eq!(container["securityContext"]["allowPrivilegeEscalation"], false, "{name}");
            let mounts = container["volumeMounts"].as_array().unwrap();
            let writable = mounts.iter().filter(|it| it["readOnly"] != true);
            let writable: Vec<_> = writable.map(|it| it["mountPath"].as_str().unwrap()).collect();
            assert_eq!(writable, ["/var/lib/clade", "/tmp"], "{name}");
        }
    }
}
