//! What helm makes of values that are long, odd or at odds with each other.

use serde::Deserialize as _;
use serde_json::{Value, json};

use super::helm;
use crate::table::each_row;

const BASE: &str =
    "{repository: {url: 'https://git.example.com/groups.git'}, access: {allowAnonymous: true}}";

/// Runs `helm template` with values beside the smallest ones; returns the objects, or the error.
fn rendered(release: &str, values: &str) -> Option<Result<Vec<Value>, String>> {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (base, values) = (write("base.yaml", BASE), write("values.yaml", values));
    let arguments = ["template", release, "charts/clade", "-n", "123", "-f", &base, "-f", &values];
    let done = helm(&arguments)?;
    if !done.status.success() {
        return Some(Err(String::from_utf8(done.stderr).unwrap()));
    }
    let text = String::from_utf8(done.stdout).unwrap();
    // Unlike one of JSON, this value has no key twice.
    let read = |it| serde_json::to_value(serde_yaml::Value::deserialize(it).unwrap()).unwrap();
    let all = serde_yaml::Deserializer::from_str(&text).map(read);
    Some(Ok(all.filter(|it: &Value| !it.is_null()).collect()))
}

fn of_kind<'a>(objects: &'a [Value], kind: &str) -> &'a Value {
    objects.iter().find(|it| it["kind"] == kind).unwrap_or_else(|| panic!("no {kind}"))
}

fn workload(objects: &[Value]) -> &Value {
    objects.iter().find(|it| it.pointer("/spec/template").is_some()).unwrap()
}

/// Returns every label, annotation and selector that is not a text.
fn not_texts(value: &Value, found: &mut Vec<String>) {
    for (key, inner) in value.as_object().into_iter().flatten() {
        if ["labels", "annotations", "matchLabels", "nodeSelector", "data"].contains(&key.as_str())
        {
            let all = inner.as_object().unwrap().iter().filter(|it| !it.1.is_string());
            found.extend(all.map(|(name, value)| format!("{key}.{name}: {value}")));
        }
        let is_name =
            ["name", "namespace", "path", "key", "secretName", "image"].contains(&key.as_str());
        if is_name && !inner.is_string() {
            found.push(format!("{key}: {inner}"));
        }
        not_texts(inner, found);
    }
    for inner in value.as_array().into_iter().flatten() {
        not_texts(inner, found);
    }
}

/// The name of a Service is a label of DNS that begins with a letter.
fn is_service_name(name: &str) -> bool {
    name.len() <= 63
        && name.starts_with(|it: char| it.is_ascii_lowercase())
        && name.chars().all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '-')
        && !name.ends_with('-')
}

#[test]
fn every_name_is_valid() {
    let (long, dots) = ("a".repeat(53), format!("{}.bcdefg", "a".repeat(46)));
    let rows = [
        ("clade", "", ""),
        (&long, "", ""),
        (&dots, "", ""),
        ("my.clade", "", ""),
        ("1clade", "", ""),
        ("123", "", ""),
        ("true", "", ""),
        ("x", "fullnameOverride: 'true'", ""),
        ("x", "fullnameOverride: '123'", ""),
        ("x", "fullnameOverride: ", &"b".repeat(63)),
        ("x", "fullnameOverride: ", &format!("{}--bb", "b".repeat(51))),
        ("x", "fullnameOverride: ", &format!("{}.-bbbbbb", "b".repeat(51))),
        ("x", "nameOverride: ", &"n".repeat(80)),
        ("x", "nameOverride: ", &format!("{}-.n", "n".repeat(62))),
    ];
    each_row(rows, |(release, value, rest)| {
        for persistence in [false, true] {
            let values = format!(
                "{value}{rest}\npersistence: {{enabled: {persistence}}}\ningress: {{enabled: true}}\nautoscaling: {{enabled: true}}\n"
            );
            let Some(objects) = rendered(release, &values) else { return };
            let objects = objects.unwrap();
            let mut found = Vec::new();
            for object in &objects {
                not_texts(object, &mut found);
                let name = object["metadata"]["name"].as_str().unwrap_or_default();
                assert!(is_service_name(name), "{release} {value}: {}: {name}", object["kind"]);
            }
            assert!(found.is_empty(), "{release} {value}: {found:?}");
            let most = if persistence { 52 } else { 55 };
            let name = workload(&objects)["metadata"]["name"].as_str().unwrap();
            assert!(name.len() <= most, "{release} {value}: {name}");
        }
    });
}

/// Every text that YAML may take for something else.
const ODD: &str = r#"
commonLabels: {"n": "1", t: "true"}
podLabels: {"n": "2", app.kubernetes.io/version: "0x1f"}
podAnnotations: {"n": "1", lines: "a\nb: c\n", quotes: "it's \"x\"", checksum/config: mine}
service: {annotations: {a: "true", b: "{}\n"}, labels: {"n": "3"}}
serviceAccount: {name: "123", annotations: {a: "1"}}
priorityClassName: "123"
image: {registry: "", repository: "123", tag: "1.0"}
extraEnv: [{name: A, value: "1"}, {name: B, value: "a: b\n\"c\""}]
persistence: {enabled: true, storageClass: "123", size: "1", annotations: {a: "1"}}
ingress: {enabled: true, className: "123", hosts: [{host: "123", paths: [{path: "/a: b#", pathType: Prefix}]}]}
access: {tokens: {existingSecret: "123", key: "1.5"}}
tls: {existingSecret: "1", clientCA: {existingSecret: "12", key: "1"}}
store: {existingSecret: "1", key: "a: #"}
config: {fetch-limit: 4294967296, write-trailer: ["a: b", "  lead\n\ntrail\n", "ä\t\"x'"]}
test: {tokenSecret: "1", tokenKey: "1"}
nodeSelector: {a: "1"}
repository:
  branch: "1.0"
  path: "a\"b"
  knownHosts: "  lead\nx\n\n  y: #\n"
  credentials: {type: basic, username: "a\"b\nc: d", existingSecret: "123", passwordKey: "pass: #"}
"#;

#[test]
fn a_text_stays_a_text() {
    for (release, more) in [("7", ""), ("clade", "existingConfigMap: '123'\n")] {
        let Some(objects) = rendered(release, &format!("{ODD}{more}")) else { return };
        let objects = objects.unwrap();
        let mut found = Vec::new();
        for object in &objects {
            not_texts(object, &mut found);
        }
        assert!(found.is_empty(), "{found:?}");
        let pod = &workload(&objects)["spec"]["template"];
        assert_eq!(pod["metadata"]["annotations"]["lines"], "a\nb: c\n");
        assert_eq!(pod["metadata"]["labels"]["n"], "2", "that of the pods wins");
        let container = &pod["spec"]["containers"][0];
        let arguments = container["args"].as_array().unwrap();
        assert!(arguments.contains(&json!("--git-username=a\"b\nc: d")), "{arguments:?}");
        let secret = json!({"secretKeyRef": {"name": "1", "key": "a: #"}});
        assert_eq!(container["env"][0], json!({"name": "CLADE_STORE", "valueFrom": secret}));
        let files = &of_kind(&objects, "ConfigMap")["data"];
        assert_eq!(files["known_hosts"], "lead\nx\n\n  y: #\n");
        if more.is_empty() {
            let config: Value =
                serde_yaml::from_str(files["clade.yaml"].as_str().unwrap()).unwrap();
            let odd: Value = serde_yaml::from_str(ODD).unwrap();
            assert_eq!(config, odd["config"]);
        }
    }
}

#[test]
fn check_ins_fit_into_the_volume_beside_the_mirror() {
    let rows = [
        ("{}", Some("536870912")),
        ("persistence: {emptyDirSizeLimit: 500M}", Some("250000000")),
        ("persistence: {enabled: true}", Some("536870912")),
        ("persistence: {enabled: true, size: 1.5Gi, emptyDirSizeLimit: 1Mi}", Some("805306368")),
        // The daemon's own limit is less, or as much.
        ("persistence: {enabled: true, size: 8Gi}", None),
        ("persistence: {enabled: true, size: 1Ti}", None),
        // They are elsewhere, or the limit may be.
        ("store: {existingSecret: nodes}", None),
        ("config: {store: 'postgres://clade@db/clade'}", None),
        ("config: {store-max-bytes: '1000000'}", None),
        ("existingConfigMap: own", None),
        ("envFrom: [{secretRef: {name: own}}]", None),
        ("extraEnv: [{name: CLADE_STORE, value: 'postgres://clade@db/clade'}]", None),
        ("extraEnv: [{name: RUST_LOG, value: debug}]", Some("536870912")),
        ("extraArgs: ['--store', 'postgres://clade@db/clade']", None),
        ("extraArgs: ['--store-max-bytes=1000000']", None),
        ("extraArgs: ['--store-facts=none']", Some("536870912")),
    ];
    each_row(rows, |(values, expected)| {
        let Some(objects) = rendered("clade", values) else { return };
        let objects = objects.unwrap();
        let containers = objects.iter().map(|it| &it["spec"]["template"]["spec"]["containers"][0]);
        let mut variables = containers.filter_map(|it| it["env"].as_array()).flatten();
        let limit = variables.find(|it| it["name"] == "CLADE_STORE_MAX_BYTES");
        assert_eq!(limit.and_then(|it| it["value"].as_str()), expected);
    });
}

#[test]
fn a_pod_has_the_time_that_its_grace_period_needs() {
    let rows = [
        ("{}", 35),
        ("config: {grace: 60s}", 70),
        ("config: {grace: 500ms}", 11),
        ("config: {grace: 1m 30s}", 100),
        ("config: {grace: 1h}", 3610),
        ("{preStopSleepSeconds: 100}", 130),
        ("{extraArgs: ['--grace=60s']}", 70),
        ("{extraArgs: ['--grace', 60s]}", 70),
        ("{extraEnv: [{name: CLADE_GRACE, value: 60s}]}", 70),
        ("{terminationGracePeriodSeconds: 33}", 33),
        ("{config: {grace: 1min}, terminationGracePeriodSeconds: 70}", 70),
        ("{config: {grace: 25sec}, terminationGracePeriodSeconds: 20}", 20),
        ("{config: {grace: 30 seconds}, terminationGracePeriodSeconds: 40}", 40),
        ("{config: {grace: PT30S}, terminationGracePeriodSeconds: 40}", 40),
        ("{terminationGracePeriodSeconds: 3000000}", 3_000_000),
    ];
    each_row(rows, |(values, seconds)| {
        let Some(objects) = rendered("clade", values) else { return };
        let objects = objects.unwrap();
        let spec = &workload(&objects)["spec"]["template"]["spec"];
        assert_eq!(spec["terminationGracePeriodSeconds"], seconds, "{values}");
    });
}

#[test]
fn a_deployment_with_a_claim_stops_its_pod_first() {
    let claim = |more: &str| {
        format!("extraVolumes: [{{name: a, persistentVolumeClaim: {{claimName: a{more}}}}}]\n")
    };
    let rolling =
        json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}});
    let recreate = json!({"type": "Recreate"});
    let chosen = format!("{}strategy: {{type: RollingUpdate}}\n", claim(""));
    each_row(
        [
            ("{}".to_owned(), &rolling),
            (claim(""), &recreate),
            (claim(", readOnly: true"), &rolling),
            ("strategy: {type: Recreate}".to_owned(), &recreate),
            (chosen, &rolling),
        ],
        |(values, strategy)| {
            let Some(objects) = rendered("clade", &values) else { return };
            assert_eq!(workload(&objects.unwrap())["spec"]["strategy"], *strategy, "{values}");
        },
    );
}

#[test]
fn what_a_strategy_leaves_out_stops_no_replica_before_another_is_ready() {
    let rows = [
        ("{type: RollingUpdate}", json!(1), json!(0)),
        ("{rollingUpdate: {maxSurge: 2}}", json!(2), json!(0)),
        ("{rollingUpdate: {maxSurge: 50%}}", json!("50%"), json!(0)),
        ("{rollingUpdate: {maxUnavailable: 1}}", json!(1), json!(1)),
        ("{rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}", json!(0), json!(1)),
        // Kubernetes refuses 0 for both.
        ("{rollingUpdate: {maxSurge: 0}}", json!(0), json!(1)),
        ("{type: RollingUpdate, rollingUpdate: {maxUnavailable: 0}}", json!(1), json!(0)),
    ];
    each_row(rows, |(strategy, surge, unavailable)| {
        let Some(objects) = rendered("clade", &format!("strategy: {strategy}")) else { return };
        let rolling = json!({"maxSurge": surge, "maxUnavailable": unavailable});
        let expected = json!({"type": "RollingUpdate", "rollingUpdate": rolling});
        assert_eq!(workload(&objects.unwrap())["spec"]["strategy"], expected);
    });
}

#[test]
fn the_temporary_directory_is_mounted_once() {
    let own = "{extraVolumes: [{name: tmp, emptyDir: {}}], extraVolumeMounts: [{name: tmp, mountPath: /tmp}]}";
    each_row([("{tmpSizeLimit: 1Gi}", Some("1Gi")), (own, None)], |(values, limit)| {
        let Some(objects) = rendered("clade", values) else { return };
        let objects = objects.unwrap();
        let pod = &workload(&objects)["spec"]["template"]["spec"];
        let count = |list: &Value, key: &str, value: &str| {
            list.as_array().unwrap().iter().filter(|it| it[key] == value).count()
        };
        assert_eq!(
            count(&pod["containers"][0]["volumeMounts"], "mountPath", "/tmp"),
            1,
            "{values}"
        );
        assert_eq!(count(&pod["volumes"], "name", "tmp"), 1, "{values}");
        let volumes = pod["volumes"].as_array().unwrap();
        let volume = volumes.iter().find(|it| it["name"] == "tmp").unwrap();
        assert_eq!(volume["emptyDir"]["sizeLimit"].as_str(), limit, "{values}");
    });
}

#[test]
fn what_is_null_is_left_out() {
    let container = |values: &str| {
        let objects = rendered("clade", values)?.unwrap_or_else(|it| panic!("{values}: {it}"));
        Some(workload(&objects)["spec"]["template"]["spec"]["containers"][0].clone())
    };
    let Some(every) = container("{}") else { return };
    for probe in ["startupProbe", "livenessProbe", "readinessProbe"] {
        let mut others = every.clone();
        assert!(others.as_object_mut().unwrap().remove(probe).is_some(), "{probe}");
        assert_eq!(container(&format!("{probe}: null")).unwrap(), others, "{probe}");
        assert_eq!(container(&format!("{probe}: {{}}")).unwrap(), every, "{probe}: the defaults");
    }
    for values in ["config: null", "podAnnotations: null", "commonLabels: null"] {
        assert_eq!(container(values).unwrap(), every, "{values}");
    }
}

#[test]
fn a_network_policy_lets_out_what_is_added() {
    let rule = r"{ports: [{protocol: TCP, port: 5432}]}";
    let values = format!("networkPolicy: {{enabled: true, extraEgress: [{rule}]}}");
    let Some(objects) = rendered("clade", &values) else { return };
    let objects = objects.unwrap();
    let egress = of_kind(&objects, "NetworkPolicy")["spec"]["egress"].as_array().unwrap();
    assert_eq!(egress.len(), 3);
    assert_eq!(egress[2], json!({"ports": [{"protocol": "TCP", "port": 5432}]}));
}

#[test]
fn a_network_policy_lets_the_pod_of_the_test_in() {
    let values = "{nameOverride: '123', commonLabels: {a: b}, networkPolicy: {enabled: true, from: [{ipBlock: {cidr: 192.0.2.0/24}}]}}";
    let Some(objects) = rendered("7", values) else { return };
    let objects = objects.unwrap();
    let from = &of_kind(&objects, "NetworkPolicy")["spec"]["ingress"][0]["from"];
    assert_eq!(from.as_array().unwrap().len(), 2);
    let selected = from[1]["podSelector"]["matchLabels"].as_object().unwrap();
    let labels = &of_kind(&objects, "Pod")["metadata"]["labels"];
    for (name, value) in selected {
        assert_eq!(labels[name], *value, "{name}");
    }
    let daemon = &workload(&objects)["spec"]["template"]["metadata"]["labels"];
    assert!(selected.iter().any(|(name, value)| daemon[name] != *value), "the test alone");
    let open = rendered("7", "networkPolicy: {enabled: true}").unwrap().unwrap();
    assert_eq!(of_kind(&open, "NetworkPolicy")["spec"]["ingress"][0].get("from"), None);
}

#[test]
fn what_is_added_twice_is_refused() {
    let takes_once = "which the chart sets itself and the daemon takes once";
    let own_volume = "where the chart mounts a volume of its own";
    let mount = |path: &str| {
        format!(
            "{{extraVolumes: [{{name: a, emptyDir: {{}}}}], extraVolumeMounts: [{{name: a, mountPath: {path}}}]}}"
        )
    };
    let rows = [
        ("{extraArgs: ['--listen=0.0.0.0:1']}".to_owned(), takes_once),
        ("{extraArgs: ['--data-dir', /data]}".to_owned(), takes_once),
        ("{extraArgs: ['--interval=1m']}".to_owned(), takes_once),
        ("{extraArgs: ['--allow-anonymous']}".to_owned(), takes_once),
        ("{config: {grace: 20s}, extraArgs: ['--config=/a.yaml']}".to_owned(), takes_once),
        (mount("/var/lib/clade"), own_volume),
        (mount("/var/lib/../lib/clade/"), own_volume),
        (format!("{{config: {{grace: 20s}}, {}", &mount("/etc/clade/config")[1..]), own_volume),
        ("{extraArgs: ['--writes=commit']}".to_owned(), "`writes` needs `replicaCount: 1`"),
        ("{extraArgs: ['--writes', propose]}".to_owned(), "`writes` needs `replicaCount: 1`"),
        (
            "{extraEnv: [{name: CLADE_WRITES, value: commit}]}".to_owned(),
            "`writes` needs `replicaCount: 1`",
        ),
        (
            "{replicaCount: 1, autoscaling: {enabled: true}, extraArgs: ['--writes=commit']}"
                .to_owned(),
            "`writes` needs `replicaCount: 1`",
        ),
    ];
    each_row(rows, |(values, reason)| {
        let Some(done) = rendered("clade", &values) else { return };
        let Err(said) = done else { panic!("{values} is taken") };
        assert!(said.contains(reason), "{values}: {said}");
    });
}

#[test]
fn what_is_added_once_is_taken() {
    let rows = [
        "{extraArgs: ['--mask', none, '--mask=a.b', '--allowed-hosts=a']}",
        "{extraArgs: ['--config=/etc/own/clade.yaml']}",
        "{extraArgs: ['--listen-address-of-another-flag']}",
        "{config: {grace: 20s}, extraArgs: ['--grace=25s']}",
        "{config: {writes: commit}, extraArgs: ['--writes=off']}",
        "{replicaCount: 1, extraArgs: ['--writes=commit']}",
        "{extraEnv: [{name: CLADE_WRITES, value: 'off'}]}",
        "{extraVolumes: [{name: a, emptyDir: {}}], extraVolumeMounts: [{name: a, mountPath: /var/lib/clade/facts}]}",
    ];
    each_row(rows, |values| {
        let Some(done) = rendered("clade", values) else { return };
        assert_eq!(done.err(), None, "{values}");
    });
}

#[test]
fn what_would_not_work_is_refused() {
    let rows = [
        ("{fullnameOverride: Clade_x}", "fullnameOverride"),
        ("{fullnameOverride: '---'}", "fullnameOverride"),
        ("{nameOverride: 'a b'}", "nameOverride"),
        ("{commonLabels: {app.kubernetes.io/name: x}}", "by which Services find the pods"),
        ("{podLabels: {app.kubernetes.io/instance: x}}", "by which Services find the pods"),
        ("{extraVolumes: [{name: data, emptyDir: {}}]}", "has the name `data`"),
        ("{extraEnv: [{name: A, value: 1}]}", "extraEnv"),
        ("{terminationGracePeriodSeconds: 32}", "at least 33"),
        ("{config: {grace: 60s}, terminationGracePeriodSeconds: 35}", "must be more than"),
        ("{config: {grace: 60}}", "`grace` is `60`: write a duration"),
        ("{config: {grace: PT30S}}", "or set `terminationGracePeriodSeconds`"),
        ("{config: {store: 'postgres://u:p@h/d'}}", "has a URL with a password"),
        ("{config: {store: 'postgres://u:p/w@h/d'}}", "has a URL with a password"),
        ("{config: {store: 'postgres://h/d?password=x'}}", "has a URL with a password"),
        ("{config: {git-proxy: 'http://u:p@h:3128'}}", "has a URL with a password"),
        ("{config: {store: 'postgres://h/d'}, store: {existingSecret: s}}", "the same setting"),
        ("{repository: {url: 'https://u:p@h/x'}}", "`repository.url` has credentials"),
        ("{repository: {url: 'https://token@h/x'}}", "`repository.url` has credentials"),
        ("{networkPolicy: {enabled: true, gitPorts: []}}", "gitPorts"),
        ("{autoscaling: {enabled: true, minReplicas: 5, maxReplicas: 2}}", "is more than"),
        ("service: null", "service is required"),
        ("{service: {port: null}}", "port is required"),
        ("test: null", "test is required"),
        ("replicaCount: null", "replicaCount is required"),
    ];
    each_row(rows, |(values, reason)| {
        let Some(done) = rendered("clade", values) else { return };
        let Err(said) = done else { panic!("{values} is taken") };
        assert!(said.contains(reason), "{values}: {said}");
    });
    let fine = "config: {store: 'postgres://clade@h:5432/d', git-proxy: 'http://h:3128/a@b'}";
    let Some(done) = rendered("clade", fine) else { return };
    assert_eq!(done.err(), None);
}
