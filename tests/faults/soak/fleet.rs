//! The nodes: 100,000 names, each with a role, a datacenter and a cluster of its own, and facts of 24 KB.

use clade::internals::model::Node;
use serde_json::{Map, Value, json};

use crate::world::nodes::{certname, nodes};
use crate::world::{Scale, estates};

/// How many different sets of facts there are beside those that tell nodes apart.
const TEMPLATES: usize = 200;

/// How many groups take turns at being changed by commits: each has the nodes whose number ends with its digit.
pub(super) const CHANGED: u64 = 10;

/// What share of the nodes is in one of these groups.
pub(super) const CHANGED_SHARE: f64 = 0.1;

/// What share of the nodes is in the group that writes change: those whose number ends with 77.
pub(super) const WRITTEN_SHARE: f64 = 0.01;

/// The group that writes change.
pub(super) const WRITTEN: &str = "eeeeeeee-0000-4000-8000-000000000001";

/// Where it stands.
pub(super) const WRITTEN_FILE: &str = "groups/written.yaml";

pub(super) struct Fleet {
    scale: Scale,
    templates: Vec<Template>,
}

struct Template {
    facts: Map<String, Value>,
    /// The same without the braces.
    text: String,
}

impl Fleet {
    pub(super) fn new(names: u32) -> Self {
        let scale = Scale { nodes: names as usize, ..Scale::of(1_000) };
        let templates = nodes(scale, TEMPLATES, 6).into_iter().map(|node| {
            let mut facts = node.fact;
            facts.retain(|key, _| {
                !["role", "datacenter", "cluster", "uptime_seconds"].contains(&key.as_str())
            });
            let text = serde_json::to_string(&facts).unwrap();
            Template { facts, text: inner(&text).to_owned() }
        });
        Self { scale, templates: templates.collect() }
    }

    /// Returns the files of the estate, with the groups that commits and writes change.
    pub(super) fn files(&self) -> Vec<(String, String)> {
        let mut files = estates::files(self.scale, 5);
        files.extend((0..CHANGED).map(|digit| changed(digit, 0)));
        let written = format!(
            "name: Written\nid: {WRITTEN}\nrule: [\"~\", name, \"77\\\\.dc\"]\nclasses:\n  written: {{number: 0}}\n"
        );
        files.push((WRITTEN_FILE.to_owned(), written));
        files
    }

    pub(super) fn name(&self, number: u32) -> String {
        certname(number as usize, self.scale)
    }

    /// Returns a node as it is in a round of check-ins.
    pub(super) fn node(&self, number: u32, round: u32) -> Node {
        let name = self.name(number);
        let mut fact = self.own_facts(number, round);
        fact.extend(self.template(number).facts.clone());
        let trusted = self.trusted(number, &name);
        Node { name, fact, trusted }
    }

    /// Returns the body of its request.
    pub(super) fn body(&self, number: u32, round: u32) -> String {
        let own = Value::Object(self.own_facts(number, round)).to_string();
        let trusted = Value::Object(self.trusted(number, &self.name(number)));
        let (own, more) = (inner(&own), &self.template(number).text);
        format!(r#"{{"fact":{{{own},{more}}},"trusted":{trusted}}}"#)
    }

    fn template(&self, number: u32) -> &Template {
        &self.templates[number as usize % TEMPLATES]
    }

    /// The facts that tell nodes and their check-ins apart.
    fn own_facts(&self, number: u32, round: u32) -> Map<String, Value> {
        let (role, datacenter) = self.place(number);
        let cluster = number as usize % self.scale.clusters;
        object(json!({
            "role": role,
            "datacenter": datacenter,
            "cluster": {"name": format!("cluster{cluster}"), "size": 3},
            "uptime_seconds": 1800 * u64::from(round) + u64::from(number),
        }))
    }

    fn trusted(&self, number: u32, name: &str) -> Map<String, Value> {
        let (role, datacenter) = self.place(number);
        let environment = number as usize % self.scale.environments;
        object(json!({
            "authenticated": "remote",
            "certname": name,
            "domain": format!("{datacenter}.example.com"),
            "extensions": {"pp_environment": format!("env_{environment}"), "pp_role": role},
            "external": {},
            "hostname": format!("{role}-{number}"),
        }))
    }

    /// The role and the datacenter, as the name of a node has them.
    fn place(&self, number: u32) -> (String, String) {
        let number = number as usize;
        let (role, datacenter) = (number % self.scale.roles, number / 7 % self.scale.datacenters);
        (format!("role-{role}"), format!("dc{datacenter}"))
    }
}

/// Returns the text of an object without its braces.
fn inner(text: &str) -> &str {
    text.strip_prefix('{').and_then(|it| it.strip_suffix('}')).unwrap()
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

/// Returns what a commit changes: the group of a digit, with the number of the commit.
pub(super) fn changed(digit: u64, number: u64) -> (String, String) {
    let text = format!(
        "name: Changed {digit}\nrule: [\"~\", name, \"{digit}\\\\.dc\"]\nclasses:\n  changed_{digit}: {{number: {number}}}\n"
    );
    (format!("groups/changed/{digit}.yaml"), text)
}

/// Returns whether a node is in the group of a digit.
pub(super) fn is_changed(name: &str, digit: u64) -> bool {
    name.contains(&format!("{digit}.dc"))
}
