//! One type name, one meaning.

use std::collections::BTreeMap;

use regex::Regex;

use super::sources;

/// Names that several files define, and why; the list only gets shorter.
const REPEATED: &[(&str, &str)] = &[
    ("Access", "a connection's rights; how a file is opened"),
    ("All", "two lists of responses of OpenAPI"),
    ("Check", "of a signature; of groups"),
    ("Client", "of daemons; of ssh"),
    ("Condition", "of a rule, as Puppet says; of a state, as Kubernetes says"),
    ("Deliveries", "of webhooks; of receipts"),
    ("Entries", "of a table; of two caches"),
    ("Entry", "of a mapping; of caches and key files"),
    ("Fetched", "from a remote; by the source"),
    ("Guard", "what a rule requires; of a transport"),
    ("Inner", "what handles share"),
    ("Match", "of a group; of a certificate"),
    ("Node", "of Puppet; of a YAML document"),
    ("Outcome", "of a classification; of a commit"),
    ("Pack", "of git, received and stored"),
    ("Parameters", "of a query; of a class"),
    ("Place", "in a file; of an answer; of a remote"),
    ("Progress", "of lists; of commands; of the source"),
    ("Provider", "of webhooks; of an API"),
    ("Source", "of the branch; of objects"),
    ("Span", "of a file; of time"),
    ("State", "of a stage, private to it"),
    ("Stream", "one of each transport"),
    ("Verdict", "on a host key, a test, a commit"),
];

/// Returns the types at the top of a file. Those of its tests are indented, or in files of their own.
fn types(text: &str) -> impl Iterator<Item = &str> {
    let definition =
        Regex::new(r"^(?:pub(?:\([^)]*\))? )?(?:struct|enum|union|trait|type) (\w+)").unwrap();
    text.lines().filter_map(move |it| Some(definition.captures(it)?.get(1)?.as_str()))
}

#[test]
fn a_type_name_has_one_meaning() {
    let mut defined: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (path, text) in sources() {
        // The type on the wire has the name of what it describes.
        if path.contains("tests") || path.starts_with("src/http/types/") {
            continue;
        }
        for name in types(&text) {
            defined.entry(name.to_owned()).or_default().push(path.clone());
        }
    }
    defined.retain(|_, paths| paths.len() > 1);
    let listed = |name: &str| REPEATED.iter().any(|it| it.0 == name);
    let repeated: Vec<_> = defined.iter().filter(|(name, _)| !listed(name)).collect();
    assert!(repeated.is_empty(), "several files define these types: {repeated:#?}");
    for (name, _) in REPEATED {
        assert!(defined.contains_key(*name), "`{name}` is defined once now: take it off the list");
    }
}
