use std::borrow::Cow;

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::mask::PathMask;
use super::usual::USUAL;
use super::*;
use crate::model::{Condition, MASKED, Node};
use crate::rule;
use crate::table::each_row;

fn masks(all: &[&str]) -> Masks {
    let settings: Vec<MaskSetting> = all.iter().map(|it| it.parse().unwrap()).collect();
    Masks::of_settings(&settings)
}

fn object(value: &Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

/// Masks an object in both ways, which agree.
fn masked(masks: &Masks, root: DataRoot, value: &Value) -> Value {
    let mut map = object(value);
    masks.mask_map(root, &mut map, &mut |_| {});
    let by_value = Value::Object(map);
    let pretty = serde_json::to_string_pretty(value).unwrap();
    for text in [value.to_string(), pretty] {
        let by_text = masks.text(root, &text);
        assert_eq!(serde_json::from_str::<Value>(&by_text).unwrap(), by_value, "{text}");
        assert!(*value == by_value || matches!(by_text, Cow::Owned(_)), "{text}");
    }
    by_value
}

#[test]
fn the_values_at_the_paths_of_masks_are_replaced() {
    let m = MASKED;
    let rows = [
        (vec!["os"], json!({"os": {"a": 1}, "o": 1}), json!({"os": m, "o": 1})),
        (
            vec!["os.name"],
            json!({"os": {"name": 1, "b": 2}, "name": 3}),
            json!({"os": {"name": m, "b": 2}, "name": 3}),
        ),
        (vec!["fact.os.name"], json!({"os": {"name": [1]}}), json!({"os": {"name": m}})),
        (vec!["OS.Name"], json!({"os": {"NAME": 1}}), json!({"os": {"NAME": m}})),
        (
            vec!["\"a.b\".c"],
            json!({"a.b": {"c": 1}, "a": {"b": {"c": 1}}}),
            json!({"a.b": {"c": m}, "a": {"b": {"c": 1}}}),
        ),
        (vec!["\"*\""], json!({"*": 1, "a": 1}), json!({"*": m, "a": 1})),
        (
            vec!["a.*.c"],
            json!({"a": {"x": {"c": 1}, "y": {"d": 1}}}),
            json!({"a": {"x": {"c": m}, "y": {"d": 1}}}),
        ),
        (
            vec!["**.c"],
            json!({"c": 1, "a": {"c": 1, "b": [{"c": 1}, 2]}}),
            json!({"c": m, "a": {"c": m, "b": [{"c": m}, 2]}}),
        ),
        (
            vec!["a.**.c"],
            json!({"c": 1, "a": {"c": 1, "b": {"x": {"c": 1}}}}),
            json!({"c": 1, "a": {"c": m, "b": {"x": {"c": m}}}}),
        ),
    ];
    each_row(rows, |(paths, value, expected)| {
        let all: Vec<&str> = ["none"].into_iter().chain(paths).collect();
        assert_eq!(masked(&masks(&all), DataRoot::Facts, &value), expected);
    });
}

#[test]
fn a_mask_reaches_any_depth_lists_and_repeated_trusted_data() {
    let m = MASKED;
    let rows = [
        (
            vec!["**.a.b"],
            json!({"a": {"a": {"b": 1}, "b": 2}}),
            json!({"a": {"a": {"b": m}, "b": m}}),
        ),
        (vec!["**.*"], json!({"a": {"b": 1}, "c": 2}), json!({"a": m, "c": m})),
        (
            vec!["users.key"],
            json!({"users": [{"key": 1, "n": 2}, [{"key": 3}]]}),
            json!({"users": [{"key": m, "n": 2}, [{"key": m}]]}),
        ),
        (
            vec!["trusted.x"],
            json!({"x": 1, "trusted": {"x": 2, "y": 3}}),
            json!({"x": 1, "trusted": {"x": m, "y": 3}}),
        ),
        (
            vec!["fact.trusted.y"],
            json!({"trusted": {"x": 2, "y": 3}}),
            json!({"trusted": {"x": 2, "y": m}}),
        ),
        // Rules tell nothing from null.
        (vec!["a"], json!({"a": null}), json!({"a": null})),
        (vec!["a.b"], json!({"a": "b"}), json!({"a": "b"})),
        (vec![], json!({"password": 1}), json!({"password": 1})),
    ];
    each_row(rows, |(paths, value, expected)| {
        let all: Vec<&str> = ["none"].into_iter().chain(paths).collect();
        assert_eq!(masked(&masks(&all), DataRoot::Facts, &value), expected);
    });
    let trusted = masks(&["none", "trusted.extensions.*", "os"]);
    let value = json!({"certname": "n", "os": 1, "extensions": {"pp_role": "web"}});
    let expected = json!({"certname": "n", "os": 1, "extensions": {"pp_role": m}});
    assert_eq!(masked(&trusted, DataRoot::Trusted, &value), expected);
}

#[test]
fn the_usual_masks_find_what_facts_are_known_to_leak() {
    let guide = include_str!("../../docs/guides/privacy.md");
    for mask in USUAL {
        mask.parse::<PathMask>().unwrap();
        assert!(guide.contains(&format!("`{mask}`")), "the guide does not name {mask}");
    }
    let usual = Masks::default();
    let secrets = json!({
        "ec2_userdata": "#!/bin/sh",
        "ec2_metadata": {
            "ami-id": "ami-1",
            "iam": {"security-credentials": {"role": {"SecretAccessKey": "k", "Token": "t"}}},
            "identity-credentials": {"ec2": {"security-credentials": {"ec2-instance": "{}"}}},
        },
        "gce": {"instance": {"attributes": {"startup-script": "x", "kube-env": "x", "role": "web"}}},
        "az_metadata": {"compute": {"customData": "x", "location": "eu"}},
        "db": {"users": [{"name": "app", "passwordHash": "x"}]},
        "vault_token": "x", "api_key": "x", "aws_credentials": {"x": 1}, "ssl": {"private_key": "x"},
    });
    let m = MASKED;
    let shown = json!({
        "ec2_userdata": m,
        "ec2_metadata": {
            "ami-id": "ami-1",
            "iam": {"security-credentials": m},
            "identity-credentials": m,
        },
        "gce": {"instance": {"attributes": {"startup-script": m, "kube-env": m, "role": "web"}}},
        "az_metadata": {"compute": {"customData": m, "location": "eu"}},
        "db": {"users": [{"name": "app", "passwordHash": m}]},
        "vault_token": m, "api_key": m, "aws_credentials": m, "ssl": {"private_key": m},
    });
    assert_eq!(masked(&usual, DataRoot::Facts, &secrets), shown);
    let public = json!({
        "ssh": {"rsa": {"key": "AAAA", "fingerprints": {"sha1": "x"}}},
        "mountpoints": {"/run/credentials/systemd-sysctl.service": {"size": 1}},
        "sudoversion": "1.9", "puppet_cert_paths": {"client_key_path": "/x"},
        "identity": {"privileged": true}, "dmi": {"product": {"uuid": "x"}},
    });
    assert_eq!(masked(&usual, DataRoot::Facts, &public), public);
    let trusted = json!({"extensions": {"pp_preshared_key": "k", "1.3.6.1.4.1.34380.1.1.4": "k", "pp_role": "web"}});
    let shown = json!({"extensions": {"pp_preshared_key": m, "1.3.6.1.4.1.34380.1.1.4": m, "pp_role": "web"}});
    assert_eq!(masked(&usual, DataRoot::Trusted, &trusted), shown);
}

#[test]
fn a_node_without_masked_values_is_not_copied() {
    let node = |fact: Value| Node { fact: object(&fact), ..Node::named("n") };
    let usual = Masks::default();
    assert!(matches!(
        usual.node(&node(json!({"os": {"name": "x"}, "token": null}))),
        Cow::Borrowed(_)
    ));
    let secret = node(json!({"os": {"token": "x"}}));
    assert_eq!(usual.node(&secret).fact, object(&json!({"os": {"token": MASKED}})));
}

#[test]
fn text_that_is_declined_is_masked_all_the_same() {
    let usual = Masks::default();
    let rows = [
        ("{\"pass\\u0077ord\": \"x\"}", "{\"password\":\"[masked]\"}"),
        ("{\"a\": {\"\\\"token\": 1}}", "{\"a\":{\"\\\"token\":\"[masked]\"}}"),
        ("{\"token\": 1, \"token\": 2}", "{\"token\": \"[masked]\", \"token\": \"[masked]\"}"),
        ("{\"token\": 1} x", "{}"),
        ("[", "{}"),
    ];
    each_row(rows, |(text, expected)| {
        assert_eq!(usual.text(DataRoot::Facts, text), expected);
    });
}

#[test]
fn what_is_not_known_to_be_a_node_is_masked_wherever_a_path_may_begin() {
    let own = masks(&["none", "app.dsn", "trusted.x.y"]);
    let rows = [
        (
            json!({"fact": {"name": "n", "values": {"app": {"dsn": 1}}}}),
            json!({"fact": {"name": "n", "values": {"app": {"dsn": MASKED}}}}),
        ),
        (json!([{"x": {"y": 1}}]), json!([{"x": {"y": MASKED}}])),
        (json!("{\"app\": {\"dsn\": \"x\""), json!(MASKED)),
        (json!("{\"app\": {\"d\\u0073n\": \"x\""), json!(MASKED)),
        (json!("{\"os\": \"x\""), json!("{\"os\": \"x\"")),
    ];
    each_row(rows, |(mut value, expected)| {
        own.mask_anywhere(&mut value);
        assert_eq!(value, expected);
    });
}

#[test]
fn the_paths_of_rules_that_lead_to_masked_values_are_known() {
    let own = masks(&["none", "app", "users.key", "trusted.extensions.pp_secret"]);
    let rows = [
        (json!(["fact", "app"]), true),
        (json!(["facts", "app", "dsn"]), true),
        (json!(["fact", "users"]), false),
        (json!(["fact", "users", 0, "key"]), true),
        (json!(["fact", "users", 0, "name"]), false),
        (json!(["trusted", "extensions", "pp_secret"]), true),
        (json!(["fact", "trusted", "extensions", "pp_secret"]), true),
        (json!(["fact", "extensions", "pp_secret"]), false),
        (json!("name"), false),
    ];
    each_row(rows, |(path, expected)| {
        let Condition::Test(test) = rule::read(&json!(["=", path, "x"])).unwrap() else {
            panic!("a test")
        };
        assert_eq!(own.covers(&test.path), expected, "{path}");
    });
}

#[test]
fn explanations_show_no_masked_value() {
    let own = masks(&["none", "app.dsn", "trusted.key"]);
    let mut explanation = json!({"id": {"value": true, "form": ["and",
        {"value": true, "form": ["=", {"path": ["fact", "app", "dsn"], "value": "x"}, "x"]},
        {"value": true, "form": ["~", {"path": ["fact", "app"], "value": {"dsn": "x", "n": 1}}, "x"]},
        {"value": true, "form": ["=", {"path": ["trusted", "key"], "value": null}, "x"]},
        {"value": true, "form": ["=", {"path": "name", "value": "n"}, "n"]}]}});
    own.mask_explanation(&mut explanation);
    assert_eq!(
        explanation,
        json!({"id": {"value": true, "form": ["and",
        {"value": true, "form": ["=", {"path": ["fact", "app", "dsn"], "value": MASKED}, "x"]},
        {"value": true, "form": ["~", {"path": ["fact", "app"], "value": {"dsn": MASKED, "n": 1}}, "x"]},
        {"value": true, "form": ["=", {"path": ["trusted", "key"], "value": null}, "x"]},
        {"value": true, "form": ["=", {"path": "name", "value": "n"}, "n"]}]}})
    );
}

#[test]
fn what_a_rule_saw_at_a_path_is_masked() {
    let own = masks(&["none", "app.dsn", "users.key", "trusted.key"]);
    let rows = [
        ("app.dsn = x", json!("x"), json!(MASKED)),
        ("app.dsn.host = x", json!("x"), json!(MASKED)),
        ("app ~ x", json!({"dsn": "x", "n": 1}), json!({"dsn": MASKED, "n": 1})),
        ("users[0].key = x", json!("x"), json!(MASKED)),
        ("trusted.key = x", Value::Null, Value::Null),
        ("trusted.key = x", json!("x"), json!(MASKED)),
        ("name = x", json!("x"), json!("x")),
    ];
    each_row(rows, |(rule, mut value, expected)| {
        let Ok(Condition::Test(test)) = rule::read_console(rule) else { panic!("{rule}") };
        own.mask_at(&test.path, &mut value);
        assert_eq!(value, expected);
    });
}

#[test]
fn text_without_masked_values_is_not_copied() {
    let usual = Masks::default();
    for text in ["{}", "{\"os\": {\"a\": [1, {\"b\": \"token\"}]}}", "{\"token\": null}"] {
        assert!(matches!(usual.text(DataRoot::Facts, text), Cow::Borrowed(_)), "{text}");
    }
}

#[test]
#[ignore = "measures"]
fn masking_costs() {
    let mut facts = Map::new();
    for at in 0..250 {
        facts.insert(
            format!("fact_{at}"),
            json!({"a": "some text of a fact", "b": [1, 2, 3], "c": {"d": "x".repeat(20)}}),
        );
    }
    let clear = Value::from(facts.clone()).to_string();
    facts.insert("vault_token".to_owned(), "x".into());
    let secret = Value::from(facts).to_string();
    for (what, masks) in [("usual", Masks::default()), ("none", masks(&["none"]))] {
        for text in [&clear, &secret] {
            let mut best = std::time::Duration::MAX;
            for _ in 0..500 {
                #[expect(clippy::disallowed_methods, reason = "a measurement")]
                let began = std::time::Instant::now();
                std::hint::black_box(masks.text(DataRoot::Facts, text));
                best = best.min(began.elapsed());
            }
            println!("{what}, {} bytes: {best:?}", text.len());
        }
    }
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        "[a-z\"\\\\é]{0,4}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("(token|Secret|[a-c]|os|\"|x\\\\)", inner, 0..4)
                .prop_map(|it| Value::Object(it.into_iter().collect())),
        ]
    })
}

proptest! {
    /// Whatever stands there, text and values are masked alike, and nothing masked is left.
    #[test]
    fn text_and_values_are_masked_alike(value in any_value(), own in "(\\*\\*\\.)?[abc*](\\.[abc*]|\\.\\*\\*\\.a)?") {
        let Value::Object(_) = &value else { return Ok(()) };
        let Ok(mask) = own.parse::<MaskSetting>() else { return Ok(()) };
        let all = Masks::of_settings(&[mask]);
        let once = masked(&all, DataRoot::Facts, &value);
        prop_assert_eq!(masked(&all, DataRoot::Facts, &once), once.clone());
        let text = once.to_string();
        for key in ["token", "Secret"] {
            for (at, _) in text.match_indices(&format!("\"{key}\":")) {
                let behind = text.get(at + key.len() + 3..).unwrap();
                prop_assert!(behind.starts_with("\"[masked]\"") || behind.starts_with("null"), "{}", text);
            }
        }
    }
}
