//! Reading a rule, in either notation, never panics; what is read is written and read back the
//! same, and whatever is done with it agrees.
#![no_main]

use clade::internals::model::Node;
use clade::internals::rule::{self, QueryFormat};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(condition) = rule::read_console(text) {
        let again = rule::read_console(&condition.to_string()).expect("what is written is read");
        assert_eq!(rule::to_value(&again), rule::to_value(&condition));
    }
    let Ok(value) = serde_json::from_str(text) else { return };
    let Ok(condition) = rule::read(&value) else { return };
    let written = rule::to_value(&condition);
    let again = rule::read(&written).expect("what is written is read");
    assert_eq!(rule::to_value(&again), written);
    let mut node = Node::named("web1.example.com");
    for (key, value) in [("os", r#"{"family": "RedHat"}"#), ("x", "5"), ("y", r#"["a", "b"]"#)] {
        node.fact.insert(key.to_owned(), serde_json::from_str(value).unwrap());
    }
    let _ = rule::evaluate(&condition, &node);
    rule::explain(&condition, &node).to_value();
    for format in [QueryFormat::Nodes, QueryFormat::Inventory] {
        let _ = rule::to_query(&condition, format);
    }
    let (rest, pins) = rule::split_pins(condition.clone());
    if let Some(joined) = rule::with_pins(rest, &pins) {
        let holds = |rule| rule::evaluate(rule, &node).ok();
        assert_eq!(holds(&joined), holds(&condition), "{written}");
    }
});
