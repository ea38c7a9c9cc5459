//! Nodes of which each rule finds some.

use serde_json::{Map, Value, json};

use clade::internals::model::Node;

use super::server::{NOW, PuppetDb};

/// Strings of numbers with an exponent, which no query finds by their number.
pub(super) const EXPONENTS: [&str; 3] = ["1e3", "-2.5E+2", "7e0"];

/// Values that `PuppetDB`, `PostgreSQL` or we could take for something else.
fn values() -> Vec<Value> {
    let mut values = vec![
        json!(null),
        json!(true),
        json!(false),
        json!("true"),
        json!("false"),
        json!("null"),
        json!(5),
        json!(5.0),
        json!("5"),
        json!("5.0"),
        json!("05"),
        json!(" 5\t"),
        json!("5."),
        json!(".5"),
        json!(0.5),
        json!(-5),
        json!("-5"),
        json!("+5"),
        json!(0),
        json!("0"),
        json!("-0"),
        json!(10),
        json!("10"),
        json!("9"),
        json!(7.25),
        json!("7.25"),
        json!("10K"),
        json!("0x10"),
        json!(9_007_199_254_740_993_u64),
        json!("9007199254740993"),
        json!(17_179_869_184_u64),
        json!("12345678901234567890"),
        json!("5 5"),
        json!("٥"),
        json!(""),
        json!(" "),
        json!("a"),
        json!("A"),
        json!("abc"),
        json!("ab"),
        json!("a.c"),
        json!("a\nb"),
        json!("a\n"),
        json!("a\r\n"),
        json!("a\r"),
        json!("a\u{2028}"),
        json!("é"),
        json!("e\u{301}"),
        json!("😀"),
        json!("Straße"),
        json!("ſ"),
        json!("K"),
        json!("[z"),
        json!("{z"),
        json!("[\"a\"]"),
        json!("a\\b"),
        json!("a\"b"),
        json!("a'b?"),
        json!([]),
        json!(["a"]),
        json!(["a", "b", 5]),
        json!(["5", true, null]),
        json!([["a"]]),
        json!([{"a": "b"}]),
        json!([5.0, 10]),
        json!({}),
        json!({"a": "b"}),
        json!({"0": "z"}),
        json!(["z"]),
        json!({"a": ["b"]}),
        json!({"0": ["z"]}),
        json!("z"),
        json!("web01"),
        json!("Debian"),
        json!({"5": 5}),
        json!(["", " "]),
    ];
    values.extend(EXPONENTS.map(Value::from));
    values
}

/// Facts and trusted data as agents have them.
fn real() -> Vec<(String, Value)> {
    let node = |name: &str, family: &str, major: &str, memory: u64, role: &str, cpus: u64| {
        let (host, domain) = name.split_once('.').unwrap();
        let facts = json!({
            "os": {"family": family, "name": family, "release": {"major": major, "full": format!("{major}.4")}},
            "kernel": if family == "windows" { "windows" } else { "Linux" },
            "kernelmajversion": "6.1",
            "memory": {"system": {"total_bytes": memory, "total": format!("{} GiB", memory >> 30)}},
            "processors": {"count": cpus, "models": vec!["Xeon"; usize::try_from(cpus).unwrap()]},
            "networking": {"fqdn": name, "ip": format!("10.0.{cpus}.7"), "interfaces": {"eth0": {"mtu": 1500}, "eth0.5": {"mtu": 9000}}},
            "is_virtual": cpus < 16,
            "load_averages": {"1m": 0.25 * f64::from(u32::try_from(cpus).unwrap())},
            "partitions": {"/dev/sda1": {"mount": "/"}},
            "trusted": {
                "authenticated": "remote", "certname": name, "hostname": host, "domain": domain,
                "extensions": {"pp_role": role, "1.3.6.1.4.1.34380.1.1.9812": "puppet/server"},
                "external": {},
            },
        });
        (name.to_owned(), facts)
    };
    vec![
        node("web1.example.com", "Debian", "12", 17_179_869_184, "web", 4),
        node("web2.example.com", "Debian", "9", 4_294_967_296, "web", 2),
        node("db1.example.com", "RedHat", "9", 274_877_906_944, "db", 32),
        node("db2.test.example.com", "RedHat", "8", 137_438_953_472, "db", 16),
        node("mail.example.org", "RedHat", "10", 8_589_934_592, "mail::relay", 8),
        node("win7.corp.example.org", "windows", "2022", 34_359_738_368, "desktop", 8),
    ]
}

/// Certname and facts of all nodes; `trusted` among them is the trusted data, as `PuppetDB` has it.
fn all() -> Vec<(String, Value)> {
    let mut nodes = real();
    for (number, value) in values().into_iter().enumerate() {
        let name = format!("v{number:02}");
        let facts = json!({
            "x": value, "UPPER": value, "dot.ted": value, "a-b": value, "é": value, "7": value,
            "deep": {
                "v": value, "list": [value, "z", {"k": value}], "sp ace": value, "dot.ted": value,
                "a'b?": value, "0": value, "-1": value,
            },
            "trusted": {"certname": name, "extensions": {"pp_role": value, "1.3.6.1": value}},
        });
        nodes.push((name, facts));
    }
    nodes.push(("bare".to_owned(), json!({"y": "only"})));
    nodes.push(("5".to_owned(), json!({"x": 4, "trusted": {"certname": "5"}})));
    nodes
}

/// Stores all nodes, as Puppet Server does; the last one has a catalog only.
pub(super) fn store(pdb: &PuppetDb) {
    for (name, facts) in all() {
        let payload = json!({
            "certname": name, "environment": "production", "producer": "p",
            "producer_timestamp": NOW, "values": facts,
        });
        pdb.command("replace_facts", 5, &name, &payload.to_string());
    }
    let catalog = json!({
        "certname": "catalog", "version": "1", "environment": "production", "producer": "p",
        "producer_timestamp": NOW, "transaction_uuid": null, "catalog_uuid": null, "code_id": null,
        "job_id": null, "edges": [], "resources": [],
    });
    pdb.command("replace_catalog", 9, "catalog", &catalog.to_string());
}

/// Returns the nodes as `PuppetDB` gives them, which is as they were stored.
pub(super) fn read(pdb: &PuppetDb) -> Vec<Node> {
    let entries = pdb.query("inventory", &json!(["~", "certname", ".*"])).unwrap();
    let stored = all();
    assert_eq!(entries.len(), stored.len());
    let mut nodes: Vec<Node> = entries
        .into_iter()
        .map(|mut entry| {
            let name = entry["certname"].as_str().unwrap().to_owned();
            let facts = &stored.iter().find(|(it, _)| *it == name).unwrap().1;
            assert_eq!(entry["facts"], *facts, "{name}");
            let mut object = |key: &str| match entry[key].take() {
                Value::Object(object) => object,
                _ => Map::new(),
            };
            let (mut fact, trusted) = (object("facts"), object("trusted"));
            fact.remove("trusted");
            Node { name, fact, trusted }
        })
        .collect();
    nodes.sort_by(|a, b| a.name.cmp(&b.name));
    nodes
}
