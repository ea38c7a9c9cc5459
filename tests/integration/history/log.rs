//! Random fleets: the test keeps a log of the answers that the daemon gives, and the history must be that log.
//!
//! What a node gets from a commit is found out by the library, which reads the commits of the repository itself.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use clade::internals::answer::{AnswerDigest, AnswerRecord, NodeState};
use clade::internals::git::Repository;
use clade::internals::hierarchy::Estate;
use clade::internals::model::Node;
use clade::internals::reconcile::load;
use serde_json::{Map, Value, json};

use super::follow;
use crate::program::{Daemon, GitRepository};

/// The same fleets each time, so that a failure can be looked into.
const SEED: u64 = 20_261_122;

const NODES: [&str; 3] = ["n1", "n2", "n3"];

const GROUPS: [&str; 4] = ["A", "B", "C", "D"];

/// What the rules of the groups can mention, and how the rules write it.
const MENTIONED: [&str; 3] = ["role", "os.family", "trusted.extensions.pp_role"];

/// The values of what is mentioned.
const VALUES: [&str; 2] = ["web", "db"];

/// A step of a fleet.
#[derive(Clone, Copy, Debug)]
enum Step {
    CheckIn,
    ChangeFacts,
    ChangeOtherFacts,
    Commit,
    Pin,
    Resume,
    Rewrite,
    Restart,
    KillAfterFlush,
    Forget,
}

/// Each step as often as it is drawn.
const STEPS: [(Step, usize); 10] = [
    (Step::CheckIn, 14),
    (Step::ChangeFacts, 14),
    (Step::ChangeOtherFacts, 2),
    (Step::Commit, 6),
    (Step::Pin, 1),
    (Step::Resume, 2),
    (Step::Rewrite, 1),
    (Step::Restart, 1),
    (Step::KillAfterFlush, 1),
    (Step::Forget, 1),
];

/// What the daemon knows of a node.
struct Seen {
    node: Node,
    commit: String,
    digest: AnswerDigest,
}

/// A change that the history must have.
struct Logged {
    commit: String,
    commit_before: Option<String>,
    cause: &'static str,
    /// The cause as far as it can be told without building the old commit, which the daemon keeps built for a
    /// while only.
    cause_without_old_commit: &'static str,
    /// The facts of before.
    facts_before: Option<Node>,
    facts: Node,
    record: AnswerRecord,
    /// What the daemon answered: status and body.
    answer: (u16, Value),
}

/// A node as it is.
struct Machine {
    node: Node,
    seen: Option<Seen>,
    log: Vec<Logged>,
}

/// A commit: what it says, and the text of its files.
struct Known {
    estate: Estate,
    text: String,
}

struct World {
    chance: fastrand::Rng,
    repository: GitRepository,
    data: tempfile::TempDir,
    daemon: Option<Daemon>,
    machines: BTreeMap<&'static str, Machine>,
    /// The commits of the branch, oldest first.
    branch: Vec<String>,
    known: HashMap<String, Known>,
    pinned: Option<String>,
    counter: usize,
}

impl World {
    fn new(seed: u64) -> Self {
        let machines = NODES.iter().map(|name| {
            let mut node = Node::named(*name);
            node.trusted = object(json!({"certname": name}));
            (*name, Machine { node, seen: None, log: Vec::new() })
        });
        let mut world = Self {
            chance: fastrand::Rng::with_seed(seed),
            repository: GitRepository::new(),
            data: tempfile::tempdir().unwrap(),
            daemon: None,
            machines: machines.collect(),
            branch: Vec::new(),
            known: HashMap::new(),
            pinned: None,
            counter: 0,
        };
        world.commit();
        world.start();
        world
    }

    fn start(&mut self) {
        let remote = format!("file://{}", self.repository.text_path());
        let data = self.data.path().to_str().unwrap();
        self.daemon = Some(Daemon::start(&[
            "--repo",
            &remote,
            "--data-dir",
            data,
            "--branch",
            "main",
            "--interval",
            "20ms",
            "--rewind-grace",
            "0s",
        ]));
        self.follow();
    }

    fn daemon(&self) -> &Daemon {
        self.daemon.as_ref().unwrap()
    }

    fn live(&self) -> &str {
        self.pinned.as_ref().unwrap_or_else(|| self.branch.last().unwrap())
    }

    fn follow(&self) {
        follow(self.daemon(), self.live());
    }

    fn step(&mut self) {
        let all: usize = STEPS.iter().map(|it| it.1).sum();
        let mut at = self.chance.usize(..all);
        let drawn = STEPS.iter().find(|(_, weight)| {
            let is_here = at < *weight;
            at = at.saturating_sub(*weight);
            is_here
        });
        let name = NODES[self.chance.usize(..NODES.len())];
        match drawn.unwrap().0 {
            Step::CheckIn => self.check_in(name),
            Step::ChangeFacts => {
                let path = self.chance.usize(..MENTIONED.len());
                let now = get(&self.machines[name].node, MENTIONED[path]);
                let is_gone = now.is_some() && self.chance.u8(..5) == 0;
                let other = VALUES.iter().find(|it| now.as_ref().is_none_or(|now| now != **it));
                set(&mut self.machine(name).node, path, other.copied().filter(|_| !is_gone));
                if self.chance.bool() {
                    self.check_in(name);
                }
            }
            Step::ChangeOtherFacts => {
                let uptime = self.chance.u32(..);
                self.machine(name).node.fact.insert("uptime".to_owned(), uptime.into());
            }
            Step::Commit => {
                self.commit();
                self.follow();
            }
            Step::Pin => {
                let pinned = self.branch[self.chance.usize(..self.branch.len())].clone();
                let body = json!({"commit": pinned}).to_string();
                // Under a pin, nothing waits for the branch to be fetched.
                self.daemon().wait_until("the commit is here", |it| {
                    it.request("POST", "/controller/pin", &body).status == 200
                });
                self.pinned = Some(pinned);
                self.follow();
            }
            Step::Resume => {
                assert_eq!(self.daemon().request("POST", "/controller/resume", "").status, 202);
                self.pinned = None;
                self.follow();
            }
            Step::Rewrite => self.rewrite(),
            Step::Restart => {
                assert_eq!(self.daemon.take().unwrap().terminate(), 0);
                self.start();
            }
            Step::KillAfterFlush => {
                // A list of all nodes is written before it is read.
                assert_eq!(self.daemon().get("/controller/nodes").status, 200);
                self.daemon.take().unwrap().kill();
                self.start();
            }
            Step::Forget => {
                let path = format!("/controller/nodes/{name}");
                let status = self.daemon().request("DELETE", &path, "").status;
                let machine = self.machine(name);
                assert_eq!(status, if machine.seen.is_some() { 204 } else { 404 });
                machine.seen = None;
                machine.log.clear();
            }
        }
    }

    fn machine(&mut self, name: &str) -> &mut Machine {
        self.machines.get_mut(name).unwrap()
    }

    /// Commits a random change of one file.
    fn commit(&mut self) {
        self.counter += 1;
        let is_first = self.counter == 1;
        let name = if is_first { "A" } else { GROUPS[self.chance.usize(..GROUPS.len())] };
        let path = format!("groups/{name}.yaml");
        // The others can be children of the first.
        let may_go = name != "A" && self.repository.path().join(&path).exists();
        let (path, text) = match self.chance.u8(..8) {
            0 if may_go => (path, String::new()),
            1 if !is_first => {
                let value = self.chance.u8(..2);
                ("nodes/n1.yaml".to_owned(), format!("variables: {{own: {value}}}\n"))
            }
            _ => (path, self.group(name)),
        };
        // The same text is another commit all the same.
        let count = format!("{}\n", self.counter);
        let files = [(path.as_str(), text.as_str()), ("COUNT", &count)];
        let id = self.repository.commit(&format!("change {}", self.counter), &files);
        let opened = Repository::discover(&self.repository.path()).unwrap();
        let estate = load(&opened, id.parse().unwrap(), "").unwrap().estate.unwrap();
        let text = GROUPS.iter().filter_map(|name| {
            std::fs::read_to_string(self.repository.path().join(format!("groups/{name}.yaml"))).ok()
        });
        self.known.insert(id.clone(), Known { estate, text: text.collect() });
        self.branch.push(id);
    }

    fn group(&mut self, name: &str) -> String {
        let rule = match self.chance.u8(..10) {
            0 => "rule: name ~ '^n'\n".to_owned(),
            1 => String::new(),
            _ => {
                let path = MENTIONED[self.chance.usize(..MENTIONED.len())];
                format!("rule: {path} = {}\n", VALUES[self.chance.usize(..2)])
            }
        };
        // Only a later letter has an earlier one as its parent, so that there are no circles.
        let has_parent = name != "A"
            && self.chance.bool()
            && self.repository.path().join("groups/A.yaml").exists();
        let parent = if has_parent { "parent: A\n" } else { "" };
        let environment = if self.chance.u8(..5) == 0 { "environment: staging\n" } else { "" };
        let (class, variable) = (self.chance.u8(..3), self.chance.u8(..6));
        let values = [self.chance.u8(..2), self.chance.u8(..2)];
        format!(
            "name: {name}\nid: 00000000-0000-4000-8000-{:012x}\n{parent}{rule}{environment}classes: {{c{class}: {{p{name}: {}}}}}\nvariables: {{v{variable}: {}}}\nconfig_data: {{c{class}: {{k{name}: [1]}}}}\n",
            name.as_bytes()[0],
            values[0],
            values[1]
        )
    }

    /// Replaces the last commit of the branch by another one.
    fn rewrite(&mut self) {
        if self.branch.len() < 2 || self.pinned.is_some() {
            return;
        }
        self.branch.pop();
        let base = self.branch.last().unwrap().parse().unwrap();
        {
            let git = self.repository.git();
            let base = git.find_commit(base).unwrap();
            git.reset(base.as_object(), git2::ResetType::Hard, None).unwrap();
        }
        self.commit();
        self.follow();
    }

    fn check_in(&mut self, name: &'static str) {
        let node = self.machines[name].node.clone();
        let body = json!({"fact": node.fact, "trusted": node.trusted}).to_string();
        let path = format!("/v2/classified/nodes/{name}");
        let answer = self.daemon().request("POST", &path, &body);
        let commit = answer.header("X-Clade-Commit").unwrap().to_owned();
        assert_eq!(commit, self.live());
        // Of check-ins that are written together and get the same answer, the store takes the facts of the last.
        assert_eq!(self.daemon().get("/controller/nodes?limit=1").status, 200);
        let record = self.record(&commit, &node);
        let seen = self.machine(name).seen.take();
        if seen.as_ref().is_none_or(|it| it.digest != record.digest()) {
            let [cause, cause_without_old_commit] =
                self.causes(seen.as_ref(), &record, &node, &commit);
            let logged = Logged {
                commit: commit.clone(),
                commit_before: seen.as_ref().map(|it| it.commit.clone()),
                cause,
                cause_without_old_commit,
                facts_before: seen.map(|it| it.node),
                facts: node.clone(),
                record: record.clone(),
                answer: (answer.status, answer.json()),
            };
            self.machine(name).log.push(logged);
        }
        self.machine(name).seen = Some(Seen { node, commit, digest: record.digest() });
    }

    fn record(&self, commit: &str, node: &Node) -> AnswerRecord {
        AnswerRecord::of(&self.known[commit].estate, node)
    }

    fn causes(
        &self,
        before: Option<&Seen>,
        after: &AnswerRecord,
        node: &Node,
        commit: &str,
    ) -> [&'static str; 2] {
        let Some(before) = before else { return ["first"; 2] };
        if before.commit == commit {
            return ["facts"; 2];
        }
        let of_commit = self.record(commit, &before.node).digest();
        let of_facts = self.record(&before.commit, node).digest();
        let known = match [of_commit, of_facts].map(|it| it == after.digest()) {
            [true, false] => "commit",
            [false, true] => "facts",
            _ => "both",
        };
        let guessed = match of_commit {
            it if it == after.digest() => "commit",
            it if it == before.digest => "facts",
            _ => "both",
        };
        [known, guessed]
    }

    /// Compares what the daemon says of each node with the log.
    fn check(&self) -> usize {
        self.machines.iter().map(|(name, machine)| self.check_node(name, machine)).sum()
    }

    fn check_node(&self, name: &str, machine: &Machine) -> usize {
        let history = self.daemon().get(&format!("/controller/nodes/{name}/history?limit=1000"));
        if machine.seen.is_none() {
            assert_eq!(history.status, 404, "{name}");
            return 0;
        }
        assert_eq!(history.status, 200, "{name}: {}", history.body);
        let mut history: Vec<Value> = serde_json::from_str(&history.body).unwrap();
        history.reverse();
        let shown: Vec<_> = history.iter().map(|it| (&it["commit"]["id"], &it["cause"])).collect();
        let logged: Vec<_> = machine.log.iter().map(|it| (&it.commit, it.cause)).collect();
        assert_eq!(history.len(), machine.log.len(), "{name}: {shown:#?} {logged:#?}");
        let mut values = BTreeMap::new();
        for (at, (change, logged)) in history.iter().zip(&machine.log).enumerate() {
            let at = format!("{name}, change {at}: {change:#}");
            assert_eq!(change["commit"]["id"], logged.commit, "{at}");
            assert_eq!(change["commit_before"].as_str(), logged.commit_before.as_deref(), "{at}");
            let causes = [logged.cause, logged.cause_without_old_commit];
            assert!(causes.contains(&change["cause"].as_str().unwrap()), "{at}: {causes:?}");
            self.check_facts(change, logged, &at);
            apply(&mut values, change, &at);
            assert_eq!(values, expected(logged), "{at}");
            let time = change["time"].as_str().unwrap();
            let then = self.daemon().get(&format!("/v1/groups?at={time}"));
            assert_eq!(then.header("X-Clade-Commit"), Some(logged.commit.as_str()), "{at}");
        }
        history.len()
    }

    /// The facts of a change are those that a rule of either commit mentions, and that differ.
    fn check_facts(&self, change: &Value, logged: &Logged, at: &str) {
        let (Some(before), Some(commit)) = (&logged.facts_before, &logged.commit_before) else {
            return;
        };
        let differing = |commits: &[&String]| -> BTreeMap<&str, Value> {
            let is_mentioned = |path: &str| {
                commits.iter().any(|it| self.known[*it].text.contains(&format!("rule: {path} ")))
            };
            let mentioned = MENTIONED.iter().filter(|path| is_mentioned(path));
            let changed = mentioned.filter_map(|path| {
                let (before, after) = (get(before, path), get(&logged.facts, path));
                let change = json!({"path": path, "before": before, "after": after});
                (before != after).then_some((*path, change))
            });
            changed.collect()
        };
        let facts = change["facts"].as_array().unwrap().iter();
        let found: BTreeMap<&str, Value> =
            facts.map(|it| (it["path"].as_str().unwrap(), it.clone())).collect();
        // The old commit is kept built for a while only, and what it alone mentions is known as long.
        let all = differing(&[commit, &logged.commit]);
        assert!(found.iter().all(|(path, it)| all.get(path) == Some(it)), "{at}: {all:?}");
        let sure = differing(&[&logged.commit]);
        assert!(sure.keys().all(|path| found.contains_key(path)), "{at}: {sure:?}");
    }
}

fn object(value: Value) -> Map<String, Value> {
    serde_json::from_value(value).unwrap()
}

/// Sets or removes what rules can mention.
fn set(node: &mut Node, path: usize, value: Option<&str>) {
    let text = || value.unwrap().into();
    match (path, value.is_some()) {
        (0, true) => drop(node.fact.insert("role".to_owned(), text())),
        (0, false) => drop(node.fact.remove("role")),
        (1, true) => drop(node.fact.insert("os".to_owned(), json!({"family": value}))),
        (1, false) => drop(node.fact.remove("os")),
        (_, true) => {
            drop(node.trusted.insert("extensions".to_owned(), json!({"pp_role": value})));
        }
        (_, false) => drop(node.trusted.remove("extensions")),
    }
}

fn get(node: &Node, path: &str) -> Option<Value> {
    match path {
        "role" => node.fact.get("role").cloned(),
        "os.family" => node.fact.get("os")?.get("family").cloned(),
        _ => node.trusted.get("extensions")?.get("pp_role").cloned(),
    }
}

/// Applies the changes of a value each to the values of before.
fn apply(values: &mut BTreeMap<String, Value>, change: &Value, at: &str) {
    let mut keys = BTreeSet::new();
    for change in change["changes"].as_array().unwrap() {
        let key = change["key"].as_str().unwrap().to_owned();
        assert!(keys.insert(key.clone()), "{at}: {key} changes twice");
        let before = values.remove(&key);
        assert_eq!(change["before"], before.unwrap_or_default(), "{at}: {key}");
        if !change["after"].is_null() {
            values.insert(key, change["after"].clone());
        }
    }
    assert!(!keys.is_empty(), "{at}");
}

/// Returns the values that the daemon answered.
fn expected(logged: &Logged) -> BTreeMap<String, Value> {
    let (status, body) = &logged.answer;
    let mut values = BTreeMap::new();
    let mut insert = |key: String, value: &Value| drop(values.insert(key, value.clone()));
    if let AnswerRecord::Conflict(conflict) = &logged.record {
        assert_eq!((*status, body["kind"].as_str()), (500, Some("classification-conflict")));
        assert!(body["msg"].as_str().unwrap().starts_with(&conflict.summary), "{body}");
        insert("state".to_owned(), &"conflict".into());
        let said = json!({"summary": conflict.summary, "details": conflict.details});
        insert("conflict".to_owned(), &said);
        for group in &conflict.groups {
            insert(format!("groups.{}", group.name), &group.name.as_str().into());
        }
        return values;
    }
    assert_eq!((*status, logged.record.state()), (200, NodeState::Classified));
    insert("state".to_owned(), &"classified".into());
    insert("environment".to_owned(), &body["environment"]);
    for group in body["groups"].as_array().unwrap() {
        insert(format!("groups.{}", group["name"].as_str().unwrap()), &group["name"]);
    }
    for (class, parameters) in body["classes"].as_object().unwrap() {
        insert(format!("classes.{class}"), &json!({}));
        for (key, value) in parameters.as_object().unwrap() {
            insert(format!("classes.{class}.{key}"), value);
        }
    }
    for (name, value) in body["parameters"].as_object().unwrap() {
        insert(format!("variables.{name}"), value);
    }
    for (class, keys) in body.get("config_data").and_then(Value::as_object).into_iter().flatten() {
        for (key, value) in keys.as_object().unwrap() {
            insert(format!("config_data.{class}.{key}"), value);
        }
    }
    values
}

/// Random fleets of the same seed are the same, so what they cover can be counted.
#[test]
fn the_history_is_the_log_of_the_answers() {
    let (mut changes, mut causes) = (0, BTreeSet::new());
    for seed in 0..3 {
        let mut world = World::new(SEED + seed);
        for number in 1..=120 {
            world.step();
            if number % 40 == 0 {
                changes += world.check();
            }
        }
        let logs = world.machines.values().flat_map(|it| &it.log);
        causes.extend(logs.map(|it| (it.cause, it.record.state().as_str())));
    }
    assert!(changes > 60, "{changes} changes were compared");
    let causes: BTreeSet<&str> = causes.into_iter().map(|it| it.0).collect();
    assert_eq!(causes, BTreeSet::from(["both", "commit", "facts", "first"]));
}
