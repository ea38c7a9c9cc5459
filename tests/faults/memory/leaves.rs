//! Nodes in many groups that inherit many values: some that differ, and some that agree.

use std::fmt::Write as _;

use serde_json::Value;

use super::process_peak;
use crate::hub::Hub;
use crate::program::Daemon;

/// How many groups each node is in.
const GROUPS: usize = 600;

/// How many values each of them inherits.
const VALUES: usize = 8000;

/// Writes the groups; what they inherit has a text in it. The node `differ` is in groups that set another value of one
/// variable, and `agree` in groups that name the class of their parent.
fn files(text: &str) -> [(String, String); 2] {
    let parent = |name: &str, head: &str, indent: &str| {
        let mut parent = format!("name: Those that {name}\nrule: name = {name}\n{head}\n");
        for number in 0..VALUES {
            writeln!(parent, "{indent}v{number}: {text}{number}").unwrap();
        }
        parent
    };
    let group = |name: &str, number: usize, sets: &str| {
        format!("name: {name} {number}\nparent: Those that {name}\nrule: name = {name}\n{sets}\n")
    };
    let differ = (0..GROUPS)
        .map(|number| group("differ", number, &format!("variables: {{v1: {}}}", number % 7)));
    let agree = (0..GROUPS).map(|number| group("agree", number, "classes: {large: {}}"));
    let groups =
        [parent("differ", "variables:", "  "), parent("agree", "classes:\n  large:", "    ")];
    let children: Vec<String> = differ.chain(agree).collect();
    [
        ("groups/parents.yaml".to_owned(), groups.join("---\n")),
        ("groups/others.yaml".to_owned(), children.join("---\n")),
    ]
}

/// A daemon whose two commits have the groups, with other values.
pub(super) struct ManyLeaves {
    daemon: Daemon,
    _hub: Hub,
}

impl ManyLeaves {
    pub(super) fn new() -> Self {
        let hub = Hub::new(&[]);
        for text in ["a", "b"] {
            let files = files(text);
            let files = files.each_ref().map(|(path, text)| (&**path, &**text));
            hub.commit("Change", &files);
        }
        let daemon = hub.serve(&[]);
        daemon.wait_until("a commit answers", |it| it.get("/readyz").status == 200);
        Self { daemon, _hub: hub }
    }

    /// Asks for what a node gets, and why; each answer says in few words that groups differ, or how they do.
    pub(super) fn ask(&self) {
        let node = "/v1/classified/nodes/differ";
        let kind = |body: &Value| body["kind"].as_str().unwrap_or_default().to_owned();
        let post = |path: &str| self.daemon.request("POST", path, "{}");
        let answer = post(node).json();
        assert_eq!(kind(&answer), "classification-conflict");
        let sides = answer["details"]["variables"]["v1"].as_array().unwrap();
        assert!(sides.len() >= 2 && sides.iter().any(|it| it["value"] != sides[0]["value"]));
        let explanation = post(&format!("{node}/explanation"));
        assert_eq!(
            (explanation.status, kind(&explanation.json()).as_str()),
            (413, "payload-too-large")
        );
        self.daemon.wait_until("the check-in is stored", |it| {
            let node = it.get("/controller/nodes/differ");
            node.status == 200 && node.json()["answer"]["state"] == "conflict"
        });
        let answer = post("/v1/classified/nodes/agree");
        assert_eq!(answer.status, 200, "{}", answer.body);
        assert_eq!(answer.json()["classes"]["large"]["v7999"], "b7999");
        let diff = self.daemon.get("/controller/diff/HEAD~1/HEAD");
        assert_eq!(diff.status, 200, "{}", diff.body);
    }

    /// Returns the peak memory of the daemon in MiB.
    pub(super) fn peak_mib(&self) -> u64 {
        process_peak(self.daemon.id())
    }
}
