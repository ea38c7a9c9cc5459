//! Blame agrees with a classification at every commit, over random histories: whatever was blamed before, for
//! whichever node, with whichever facts.

use std::collections::{BTreeMap, HashMap};

use clade::internals::classification::{Outcome, Version, classified, classify};
use clade::internals::git::Repository;
use clade::internals::hierarchy::Estate;
use clade::internals::model::{Budget, CommitId, Node};
use clade::internals::reconcile::{Blame, BlameCache, BlamedValue, load};
use serde_json::{Value, json};

use crate::program::GitRepository;

/// It mentions no fact, so which facts matter depends on the commits that are walked.
const BASE: &str = "name: Base\nrule: name ~ \"[a-z]\"\nclasses: {base: {}}\n";

/// A source of numbers that a seed determines.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % end
    }
}

/// Returns a file of a random state: a group that may match, be a child, be pinned, be invalid.
fn random_file(numbers: &mut Numbers, name: &str) -> String {
    let rules = [
        "name ~ web",
        "name ~ db",
        "os.family = Debian",
        "os.family = RedHat",
        "site = a",
        "name ~ web and not site = b",
        "trusted.extensions.pp_role = web",
    ];
    let rule = match numbers.below(9) {
        8 => String::new(),
        at => format!("rule: {}\n", rules[at % rules.len()]),
    };
    let parent = match numbers.below(4) {
        0 => "parent: A\n",
        1 => "parent: B\n",
        _ => "",
    };
    let id = match numbers.below(8) {
        0 => format!("id: 6ba7b810-9dad-11d1-80b4-00c04fd430c{}\n", numbers.below(3)),
        _ => String::new(),
    };
    let environment = if numbers.below(4) == 0 { "environment: staging\n" } else { "" };
    let name = if numbers.below(14) == 0 { "[" } else { name };
    let value = ["0", "1", "2", "'${site}'"][numbers.below(4)];
    let class = ["apache", "ntp"][numbers.below(2)];
    // Without a rule, a group concerns all nodes, and hides that another one in its file has a rule.
    let more =
        if numbers.below(5) == 0 { format!("---\nname: {name} plain\n") } else { String::new() };
    format!(
        "name: {name}\n{id}{parent}{rule}{environment}classes: {{{class}: {{v: {value}}}}}\nvariables: {{x{}: {}}}\n{more}",
        numbers.below(2),
        numbers.below(2)
    )
}

/// The values that the API gives to a node.
fn values_of(estate: &Estate, node: &Node) -> Values {
    let mut values = BTreeMap::new();
    let Ok(explanation) = classify(estate, node) else { return values };
    let Outcome::Classified(result) = &explanation.outcome else { return values };
    let document = classified(&explanation, result, Version::V2);
    for group in document["groups"].as_array().unwrap() {
        values.insert(format!("groups.{}", group["name"].as_str().unwrap()), group["id"].clone());
    }
    values.insert("environment".into(), document["environment"].clone());
    for (class, parameters) in document["classes"].as_object().unwrap() {
        values.insert(format!("classes.{class}"), json!({}));
        for (key, value) in parameters.as_object().unwrap() {
            values.insert(format!("classes.{class}.{key}"), value.clone());
        }
    }
    for (name, value) in document["parameters"].as_object().unwrap() {
        values.insert(format!("variables.{name}"), value.clone());
    }
    values
}

/// The values that a node gets, by key.
type Values = BTreeMap<String, Value>;

/// Repositories that are compared, with what was found out of them so far.
struct Compared {
    opened: Repository,
    /// What each commit says, loaded once; none if it is not valid.
    estates: HashMap<CommitId, Option<Estate>>,
    values: HashMap<(CommitId, String), Values>,
}

impl Compared {
    fn values_at(&mut self, commit: CommitId, node: &Node) -> Option<Values> {
        let load = || load(&self.opened, commit, "").unwrap().estate;
        let estate = self.estates.entry(commit).or_insert_with(load).as_ref()?;
        let mut inputs = node.clone();
        inputs.fact.remove("uptime");
        let entry = self.values.entry((commit, serde_json::to_string(&inputs).unwrap()));
        Some(entry.or_insert_with(|| values_of(estate, node)).clone())
    }

    /// Returns the commit of each value by a classification at every commit; none if there is nothing to
    /// blame.
    fn expected(&mut self, head: CommitId, node: &Node) -> Option<BTreeMap<String, CommitId>> {
        let mut chain = self.opened.log(head, usize::MAX).unwrap();
        chain.reverse();
        let valid: Vec<(CommitId, Values)> =
            chain.iter().filter_map(|it| Some((*it, self.values_at(*it, node)?))).collect();
        let (last, values) = valid.last()?;
        if *last != head || values.is_empty() {
            return None;
        }
        let origin = |(key, value): (&String, &Value)| {
            let alike = valid.iter().rev().take_while(|it| it.1.get(key) == Some(value));
            (key.clone(), alike.last().unwrap().0)
        };
        Some(values.iter().map(origin).collect())
    }

    fn blamed(
        &self,
        head: CommitId,
        node: &Node,
        key: Option<&str>,
        cache: &BlameCache,
    ) -> BTreeMap<String, CommitId> {
        let mut found: Vec<BlamedValue> = Vec::new();
        let blame = Blame::new(&self.opened, "", Budget::DEFAULT, &|| true).with_cache(cache);
        blame.run(head, node, key, &mut |it| found.push(it)).unwrap();
        assert!(found.iter().all(|it| !it.is_boundary));
        found.into_iter().map(|it| (it.key, it.commit.id)).collect()
    }
}

/// One of some nodes, with random facts and trusted data; the uptime matters to no rule.
fn random_node(numbers: &mut Numbers) -> Node {
    let mut one_of = |words: &[&'static str]| words[numbers.below(words.len())];
    let name = one_of(&["web1", "web1", "web2", "db1"]);
    let (family, site) = (one_of(&["Debian", "RedHat"]), one_of(&["a", "b"]));
    let role = one_of(&["web", "db"]);
    let uptime = numbers.below(1_000_000);
    serde_json::from_value(json!({
        "name": name,
        "fact": {"os": {"family": family}, "site": site, "uptime": uptime},
        "trusted": {"certname": name, "extensions": {"pp_role": role}},
    }))
    .unwrap()
}

/// Commits a random change on top of what is checked out.
fn commit_at_random(repository: &GitRepository, numbers: &mut Numbers, number: usize) -> CommitId {
    let name = ["A", "B", "C", "D"][numbers.below(4)];
    let paths = ["", "sub/", "sub/below/"].map(|it| format!("groups/{it}{name}.yaml"));
    let present = paths.iter().find(|it| repository.path().join(it).exists());
    let text = present.map(|it| std::fs::read_to_string(repository.path().join(it)).unwrap());
    let node = "classes: {own: {v: 1}}\n";
    let root = "name: All Nodes\nclasses: {ntp: {}}\n";
    let files: Vec<(&str, String)> = match (numbers.below(16), present) {
        (0, Some(path)) => vec![(path, String::new())],
        (1, _) => {
            vec![("nodes/web1.yaml", format!("{node}variables: {{x0: {}}}\n", numbers.below(2)))]
        }
        (2, _) => vec![("nodes/web2.yaml", format!("{node}# {number}\n"))],
        (3, _) => vec![("README.md", format!("{number}\n"))],
        (12, _) => vec![("clade.yaml", format!("interpolate: {}\n", numbers.below(2) > 0))],
        (13, _) if repository.path().join("groups/root.yaml").exists() => {
            vec![("groups/root.yaml", String::new())]
        }
        (13..16, _) => {
            vec![("groups/root.yaml", format!("{root}variables: {{x0: {}}}\n", numbers.below(3)))]
        }
        // A file moves, with what it says or with something else.
        (moves @ (4 | 5), Some(path)) => {
            let to = &paths[numbers.below(3)];
            let text = text.filter(|_| moves == 4).unwrap_or_else(|| random_file(numbers, name));
            if path == to { vec![(to, text)] } else { vec![(path, String::new()), (to, text)] }
        }
        (_, path) => vec![(path.unwrap_or(&paths[0]), random_file(numbers, name))],
    };
    let files: Vec<(&str, &str)> =
        files.iter().map(|(path, text)| (*path, text.as_str())).collect();
    repository.commit(&format!("c{number}"), &files).parse().unwrap()
}

/// Checks out another commit of the branch, as a force push does; what follows is another history.
fn rewind(repository: &GitRepository, to: CommitId) {
    let git = repository.git();
    let commit = git.find_commit(to.to_string().parse().unwrap()).unwrap();
    git.reset(commit.as_object(), git2::ResetType::Hard, None).unwrap();
}

/// Merges other commits, with the tree of the last: that may say something else than the first parent's.
fn merge(repository: &GitRepository, others: &[CommitId], number: usize) -> CommitId {
    let git = repository.git();
    let head = git.head().unwrap().peel_to_commit().unwrap();
    let find = |it: &CommitId| git.find_commit(it.to_string().parse().unwrap()).unwrap();
    let others: Vec<git2::Commit<'_>> = others.iter().map(find).collect();
    let (tree, author) = (others.last().unwrap().tree().unwrap(), head.author());
    let parents: Vec<&git2::Commit<'_>> = std::iter::once(&head).chain(&others).collect();
    let merged =
        git.commit(Some("HEAD"), &author, &author, &format!("m{number}"), &tree, &parents).unwrap();
    let merged = merged.to_string().parse().unwrap();
    rewind(repository, merged);
    merged
}

#[test]
fn blame_agrees_with_a_classification_at_every_commit_whatever_was_blamed_before() {
    let mut compared = 0;
    for seed in 0..20 {
        let mut numbers = Numbers(seed);
        let repository = GitRepository::new();
        let opened = Repository::discover(&repository.path()).unwrap();
        let mut estate = Compared { opened, estates: HashMap::new(), values: HashMap::new() };
        let mut commits = vec![
            repository.commit("base", &[("groups/base.yaml", BASE)]).parse::<CommitId>().unwrap(),
        ];
        let cache = BlameCache::default();
        for number in 0..24 {
            let any = commits[numbers.below(commits.len())];
            commits.push(match numbers.below(8) {
                0 => {
                    rewind(&repository, any);
                    commit_at_random(&repository, &mut numbers, number)
                }
                1 => merge(&repository, &[any], number),
                2 => merge(&repository, &[any, commits[0], any], number),
                _ => commit_at_random(&repository, &mut numbers, number),
            });
            // The newest, mostly, as people ask; and any other.
            for _ in 0..4 {
                let newest = commits.len() - 1;
                let at = if numbers.below(3) > 0 { newest } else { numbers.below(newest + 1) };
                let node = random_node(&mut numbers);
                let Some(expected) = estate.expected(commits[at], &node) else { continue };
                let key = expected.keys().nth(numbers.below(3 * expected.len()));
                let found = estate.blamed(commits[at], &node, key.map(String::as_str), &cache);
                match key {
                    None => assert_eq!(found, expected, "seed {seed}, commit {at} of {number}"),
                    Some(key) => {
                        assert_eq!(found.get(key), expected.get(key), "seed {seed}, {key}");
                    }
                }
                assert!(found.iter().all(|(key, commit)| expected[key] == *commit), "seed {seed}");
                compared += found.len();
            }
        }
    }
    assert!(compared > 1_000, "{compared} values were compared");
}
