//! Nodes with about 116 facts, 16 KB of compact JSON.

use clade::internals::model::Node;
use fastrand::Rng;
use serde_json::{Map, Value, json};

use super::Scale;

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

/// Returns the certname of a node of the fleet.
pub fn certname(number: usize, scale: Scale) -> String {
    let (role, datacenter) = place(number, scale);
    format!("role-{role}-{number}.dc{datacenter}.example.com")
}

fn place(number: usize, scale: Scale) -> (usize, usize) {
    (number % scale.roles, number / 7 % scale.datacenters)
}

/// Makes some nodes of the fleet.
pub fn nodes(scale: Scale, count: usize, seed: u64) -> Vec<Node> {
    let mut rng = Rng::with_seed(seed);
    (0..count).map(|_| node(rng.usize(..scale.nodes), scale, &mut rng)).collect()
}

/// Returns the body of the request that asks for a node's classification.
pub fn body(node: &Node) -> Vec<u8> {
    json!({"fact": node.fact, "trusted": node.trusted}).to_string().into_bytes()
}

fn node(number: usize, scale: Scale, rng: &mut Rng) -> Node {
    let name = certname(number, scale);
    let (role, datacenter) = place(number, scale);
    let trusted = json!({
        "authenticated": "remote",
        "certname": name,
        "domain": format!("dc{datacenter}.example.com"),
        "extensions": {
            "pp_environment": format!("env_{}", number % scale.environments),
            "pp_role": format!("role-{role}"),
        },
        "external": {},
        "hostname": format!("role-{role}-{number}"),
    });
    let mut fact = object(json!({
        "role": format!("role-{role}"),
        "datacenter": format!("dc{datacenter}"),
        "cluster": {"name": format!("cluster{}", number % scale.clusters), "size": rng.u8(..)},
        "kernel": "Linux",
        "uptime_seconds": rng.u32(..10_000_000),
        "is_virtual": rng.bool(),
        "os": {
            "architecture": "x86_64",
            "family": rng.choice(["RedHat", "Debian"]),
            "name": "AlmaLinux",
            "release": {"full": "9.4", "major": "9", "minor": "4"},
            "selinux": {"enabled": true, "enforced": true, "current_mode": "enforcing"},
        },
        "processors": {
            "count": rng.choice([2, 4, 8, 16, 64]),
            "isa": "x86_64",
            "models": vec!["Intel(R) Xeon(R) Gold 6248 CPU @ 2.50GHz"; rng.usize(2..9)],
            "physicalcount": 2,
        },
        "memory": {
            "system": {
                "total": "31.2 GiB",
                "total_bytes": rng.u64(1..128) << 30,
                "used_bytes": rng.u64(..1 << 34),
                "capacity": format!("{:.2}%", rng.f64() * 100.0),
            },
            "swap": {"total_bytes": 4_294_963_200_u64, "used_bytes": 0},
        },
        "load_averages": {"1m": rng.f64(), "5m": rng.f64(), "15m": rng.f64()},
    }));
    fact.insert("networking".to_owned(), networking(&name, rng));
    fact.insert("mountpoints".to_owned(), mountpoints(rng));
    fact.insert("partitions".to_owned(), mountpoints(rng));
    fact.insert("ssh".to_owned(), keys(rng));
    fill(&mut fact, rng);
    Node { name, fact, trusted: object(trusted) }
}

fn networking(name: &str, rng: &mut Rng) -> Value {
    let interface = |rng: &mut Rng| {
        let ip = format!("10.{}.{}.{}", rng.u8(..), rng.u8(..), rng.u8(..));
        json!({
            "bindings": [{"address": ip, "netmask": "255.255.255.0", "network": "10.0.0.0"}],
            "bindings6": [{"address": format!("fe80::{:x}", rng.u32(..)), "netmask": "ffff:ffff:ffff:ffff::", "scope6": "link"}],
            "ip": ip,
            "mac": format!("52:54:00:{:02x}:{:02x}:{:02x}", rng.u8(..), rng.u8(..), rng.u8(..)),
            "mtu": 1500,
            "operational_state": "up",
        })
    };
    let interfaces: Map<String, Value> =
        (0..rng.usize(6..16)).map(|it| (format!("eth{it}"), interface(rng))).collect();
    json!({"fqdn": name, "primary": "eth0", "interfaces": interfaces})
}

fn mountpoints(rng: &mut Rng) -> Value {
    let mount = |rng: &mut Rng| {
        json!({
            "available": format!("{:.2} GiB", rng.f64() * 100.0),
            "available_bytes": rng.u64(..1 << 40),
            "capacity": format!("{:.2}%", rng.f64() * 100.0),
            "device": format!("/dev/mapper/vg0-lv{}", rng.u8(..)),
            "filesystem": "xfs",
            "options": ["rw", "seclabel", "relatime", "attr2", "inode64", "logbufs=8"],
            "size_bytes": rng.u64(..1 << 40),
        })
    };
    (0..rng.usize(8..18))
        .map(|it| (format!("/srv/volume{it}"), mount(rng)))
        .collect::<Map<_, _>>()
        .into()
}

fn keys(rng: &mut Rng) -> Value {
    let mut text = |length: usize| -> String { (0..length).map(|_| rng.alphanumeric()).collect() };
    json!({
        "ecdsa": {"key": text(140), "type": "ecdsa-sha2-nistp256", "fingerprints": {"sha1": text(44), "sha256": text(70)}},
        "ed25519": {"key": text(68), "type": "ssh-ed25519", "fingerprints": {"sha1": text(44), "sha256": text(70)}},
        "rsa": {"key": text(540), "type": "ssh-rsa", "fingerprints": {"sha1": text(44), "sha256": text(70)}},
    })
}

/// Adds facts of a site until there are 116.
fn fill(fact: &mut Map<String, Value>, rng: &mut Rng) {
    while fact.len() < 116 {
        let name = format!("site_fact_{}", fact.len());
        let value = match rng.u8(..6) {
            0 => json!(rng.u32(..)),
            1 => json!(rng.bool()),
            2 => json!(["one", "two", format!("three {}", rng.u16(..))]),
            3 => {
                json!({"version": format!("{}.{}.1", rng.u8(..), rng.u8(..)), "path": "/opt/vendor/product/current", "installed": true})
            }
            _ => json!((0..rng.usize(6..60)).map(|_| rng.alphanumeric()).collect::<String>()),
        };
        fact.insert(name, value);
    }
}
