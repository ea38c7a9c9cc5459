mod answers;
mod plain;

use std::ops::Range;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::model::{Node, STORED_PATHS};
use crate::table::each_row;

fn node() -> Node {
    let node = json!({
        "name": "web1.example.com",
        "fact": {
            "ipaddress": "192.0.2.1",
            "os": {"family": "Debian", "release": {"major": "12", "full": "12.5"}},
            "processors": {"count": 4, "physicalcount": 1, "models": ["a \"b\"", "c\\d"]},
            "disks": {"sda 1": {"size": 1}, "[x]": 2, "": 3, "0": "key"},
            "nested": [[1, null], {"k": [true, 1.50]}],
            "is_virtual": false,
            "load": 1e3,
            "none": null,
            "trusted": {"certname": "forged"},
            "injected": "${os} $os \\$ \"}\n\u{2028}",
            "facts": {"os": 1},
        },
        "trusted": {
            "certname": "web1.example.com",
            "extensions": {"pp_role": "web", "1.3.6.1.4.1.34380.1.1.13": "oid"},
        },
    });
    serde_json::from_value(node).unwrap()
}

fn expand(text: &str, node: &Node) -> Result<String, ExpansionFault> {
    let mut expander = Expander::new(node, WithheldFacts::Refuse);
    match Template::parse(text) {
        Some(template) => expander.text(&template),
        None => Ok(text.to_owned()),
    }
}

#[test]
fn facts_take_the_place_of_their_names() {
    let node = node();
    let rows = [
        // The forms of the documentation.
        ("I live at $ipaddress.", "I live at 192.0.2.1."),
        ("${ipaddress}${$ipaddress}", "192.0.2.1192.0.2.1"),
        (
            "$processors[count]",
            "{\"count\" => 4,\"physicalcount\" => 1,\"models\" => [\"a \\\"b\\\"\",\"c\\\\d\"]}[count]",
        ),
        ("${processors[count]} ${$processors['count']} ${processors[\"count\"]}", "4 4 4"),
        ("${processors[models][0]}|${processors['models'][1]}", "a \"b\"|c\\d"),
        ("${processors[0]} ${processors[0][0]} ${processors[1][1]}", "[\"count\",4] count 1"),
        ("${trusted[certname]} ${trusted['certname']}", "web1.example.com web1.example.com"),
        ("${trusted[extensions][pp_role]}", "web"),
        ("${trusted[extensions][1.3.6.1.4.1.34380.1.1.13]}", "oid"),
        ("\\$1\\$salt\\$hash", "$1$salt$hash"),
        ("\\${os} \\$os", "${os} $os"),
        // Keys in quotes.
        ("${disks['sda 1'][size]} ${disks[\"[x]\"]} ${disks['']} ${disks['0']}", "1 2 3 key"),
        ("${disks[0][0]}", "sda 1"),
        // What values look like.
        ("$is_virtual $load ${os[release][full]}", "false 1000.0 12.5"),
        ("$nested", "[[1,undef],{\"k\" => [true,1.5]}]"),
        // What is not there.
        ("<$absent><${absent[a][0]}><$none><${os[absent]}><${nested[7]}>", "<><><><><>"),
        ("<${os[family][0]}><${nested[k]}><${processors[99999999999999999999]}>", "<><><>"),
        // What facts say is never read again.
        ("$injected", "${os} $os \\$ \"}\n\u{2028}"),
        // A backslash means something before a dollar sign alone.
        (r"C:\dir\$x \\$os \n", r"C:\dir$x \$os \n"),
        ("no dollar \\ at all", "no dollar \\ at all"),
        ("é$ipaddressé", "é192.0.2.1é"),
        // It is a fact like any other.
        ("${facts[os]}", "1"),
    ];
    each_row(rows, |(text, expected)| {
        assert_eq!(expand(text, &node).as_deref(), Ok(expected), "{text}");
        assert_eq!(plain::expand(text, &node), expected, "{text}");
    });
}

/// Illegal forms, and where they are.
type Illegal = Vec<(IllegalReason, Range<usize>)>;

fn check_illegal<const N: usize>(rows: [(&str, Illegal); N]) {
    let node = node();
    each_row(rows, |(text, expected)| {
        assert_eq!(expand(text, &node).as_deref(), Ok(text), "{text}");
        let found = Template::illegal_forms(text).into_iter();
        let found: Illegal = found.map(|it| (it.reason, it.bytes)).collect();
        assert_eq!(found, expected, "{text}");
    });
}

#[test]
fn what_is_not_a_legal_form_stays_as_it_is() {
    use IllegalReason::{
        Digit, Expression, Keyword, Lone, Name, NodeGroups, Scope, Trusted, Unclosed,
    };
    check_illegal([
        ("$", vec![(Lone, 0..1)]),
        ("a $ b, 5$", vec![(Lone, 2..3), (Lone, 8..9)]),
        ("$1$", vec![(Digit, 0..1), (Lone, 2..3)]),
        ("$Os", vec![(Name, 0..3)]),
        ("${Os}", vec![(Name, 0..5)]),
        ("$::os x", vec![(Scope, 0..5)]),
        ("$os::family x", vec![(Scope, 0..11)]),
        ("${::os} ${$::os} ${os::a}", vec![(Scope, 0..7), (Scope, 8..16), (Scope, 17..25)]),
        ("$pe_node_groups ${pe_node_groups[0]}", vec![(NodeGroups, 0..15), (NodeGroups, 16..36)]),
        ("$trusted ${trusted}", vec![(Trusted, 0..8), (Trusted, 9..19)]),
        ("${$trusted[certname]} ${trusted[0]}", vec![(Trusted, 0..21), (Trusted, 22..35)]),
        ("${undef}", vec![(Keyword, 0..8)]),
        ("${$os + 1}", vec![(Expression, 0..10)]),
        ("${lookup('os')}${}", vec![(Expression, 0..15), (Expression, 15..18)]),
        ("${ os }", vec![(Expression, 0..7)]),
        ("${os", vec![(Unclosed, 0..2)]),
    ]);
}

#[test]
fn an_index_is_a_key_or_a_number() {
    use IllegalReason::{Index, Number, Operator, Regex, Variable};
    check_illegal([
        ("${os[$os]}${os[\"$os\"]}", vec![(Variable, 0..10), (Variable, 10..22)]),
        ("${os[1+1]}${os[-1]}", vec![(Operator, 0..10), (Operator, 10..19)]),
        ("${os[2-1]}${os[4/2]}", vec![(Operator, 0..10), (Operator, 10..20)]),
        ("${os[0x1F]}${os[007]}", vec![(Number, 0..11), (Number, 11..21)]),
        ("${os[/fam/]}", vec![(Regex, 0..12)]),
        ("${os[]}${os[a b]}", vec![(Index, 0..7), (Index, 7..17)]),
        ("${os['a]}${os[undef]}", vec![(Index, 0..9), (Index, 9..21)]),
    ]);
}

#[test]
fn what_was_not_stored_is_not_taken_for_missing() {
    let of = |fact: Value| Node {
        fact: fact.as_object().unwrap().clone(),
        ..Node::named("web1.example.com")
    };
    let masked = of(json!({"ec2": "[masked]", "os": {"name": "x", "key": "[masked]"}}));
    let listed = of(json!({
        STORED_PATHS: [["os", "name"], ["absent"], ["net"], ["net", true], ["list"]],
        "os": {"name": "x"}, "net": {"a": {"b": 1}}, "list": ["x"],
    }));
    let rows = [
        (&masked, "${os[name]}", Ok("x")),
        (&masked, "${os[absent]}", Ok("")),
        (&masked, "$os", Err("os")),
        (&masked, "${os[key]}", Err("os.key")),
        (&masked, "${ec2[region]}", Err("ec2.region")),
        (&masked, "${os[0]}", Ok("[\"name\",\"x\"]")),
        (&masked, "${os[1][0]}", Ok("key")),
        (&masked, "${os[1][1]}", Err("os[1][1]")),
        (&listed, "${os[name]}", Ok("x")),
        (&listed, "$absent", Ok("")),
        (&listed, "$os", Err("os")),
        (&listed, "${os[family]}", Err("os.family")),
        (&listed, "$net", Ok("{\"a\" => {\"b\" => 1}}")),
        (&listed, "${net[a][b]} ${net[absent]} ${net[0][0]}", Ok("1  a")),
        // Of a list that rules compare, objects in it are not stored.
        (&listed, "$list", Err("list")),
        (&listed, "${list[0]}", Err("list[0]")),
    ];
    each_row(rows, |(node, text, expected)| {
        let expected = expected.map(str::to_owned).map_err(Into::into);
        let expected = expected.map_err(|path| ExpansionFault::Withheld { path });
        assert_eq!(expand(text, node), expected, "{text}");
        if expected.is_err() {
            let template = Template::parse(text).unwrap();
            let marked = Expander::new(node, WithheldFacts::Mark).text(&template);
            assert_eq!(marked.as_deref(), Ok("[masked]"), "{text}");
        }
    });
}

#[test]
fn an_answer_has_room_for_so_much() {
    let mut node = Node::named("web1.example.com");
    node.fact.insert("big".to_owned(), "x".repeat(1 << 20).into());
    let one = expand("<$big>", &node).unwrap();
    assert_eq!(one.len(), (1 << 20) + 2, "a fact of 1 MiB is one string");
    let mut expander = Expander::new(&node, WithheldFacts::Refuse);
    let values = |count: usize| json!(vec!["$big"; count]);
    assert!(expander.value(&values(8)).is_ok());
    assert_eq!(expander.value(&json!("\\$")), Err(ExpansionFault::TooLong), "it is full");
    // It ends where the room does, not when all is written.
    let bomb = "$big".repeat(1_000);
    assert_eq!(expand(&bomb, &node).err(), Some(ExpansionFault::TooLong));
    node.fact.insert("big".to_owned(), json!(vec![json!({"k": "\"\"\"\"\"\"\"\"\""}); 200_000]));
    assert_eq!(expand("$big$big", &node).err(), Some(ExpansionFault::TooLong));
}

#[test]
fn a_string_has_1000_references_at_most() {
    let bomb = "$a".repeat(300_000);
    let template = Template::parse(&bomb).unwrap();
    assert_eq!(template.references().count(), 1_000);
    let illegal = Template::illegal_forms(&bomb);
    let reasons: Vec<IllegalReason> = illegal.iter().map(|it| it.reason).collect();
    assert_eq!(reasons, [IllegalReason::TooMany]);
    // What never ends is read once.
    for bomb in ["${", "${a[", "${a['", "\\$", "$::", "$a::", "${a[$"] {
        Template::parse(&bomb.repeat(200_000));
    }
}

#[test]
fn a_reference_leads_no_deeper_than_facts_are_read() {
    for root in ["a", "trusted"] {
        let reference = |indexes| format!("${{{root}{}}}", "[b]".repeat(indexes));
        let template = Template::parse(&reference(200)).unwrap();
        assert_eq!(template.references().count(), 1);
        for indexes in [201, 20_000] {
            let text = reference(indexes);
            assert_eq!(Template::parse(&text).unwrap().references().count(), 0);
            let found = Template::illegal_forms(&text);
            let reasons: Vec<IllegalReason> = found.iter().map(|it| it.reason).collect();
            assert_eq!(reasons, [IllegalReason::TooDeep]);
            assert_eq!(found[0].bytes, 0..text.len());
        }
    }
}

#[test]
fn keys_stay_as_they_are_and_strings_stay_strings() {
    let written = json!({"$os": ["$is_virtual", 1, null, {"${os}": "${processors[count]}"}]});
    let node = node();
    let found = Expander::new(&node, WithheldFacts::Refuse).value(&written).unwrap();
    let expected = json!({"$os": ["false", 1, null, {"${os}": "4"}]});
    assert_eq!(found, Some(expected));
    let plain = json!({"$os": ["a", 1]});
    assert_eq!(Expander::new(&node, WithheldFacts::Refuse).value(&plain), Ok(None));
}

/// Text that is mostly made of what references are made of.
fn text() -> impl Strategy<Value = String> {
    let part = prop::sample::select(vec![
        "$",
        "${",
        "$os",
        "${os",
        "${$os",
        "trusted",
        "[family]",
        "['a b']",
        "[\"k\"]",
        "[0]",
        "[",
        "]",
        "}",
        "\\",
        "\\$",
        "::",
        "a",
        "0",
        "0x1",
        "01",
        " ",
        "'",
        "\"",
        "é",
        "\n",
        "pe_node_groups",
        "undef",
        "+",
        "-",
        "/",
        "${trusted[certname]}",
        "${trusted[extensions][pp_role]}",
        "\u{2028}",
        "{",
        "A",
    ]);
    prop::collection::vec(part, 0..12).prop_map(|it| it.concat())
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        text().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    let key =
        prop::sample::select(vec!["family", "a b", "k", "a", "0", "certname", "pp_role", "\""]);
    leaf.prop_recursive(3, 24, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::vec((key.clone(), inner), 0..4).prop_map(|fields| {
                Value::Object(fields.into_iter().map(|(key, it)| (key.to_owned(), it)).collect())
            }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn expansion_is_that_of_a_plain_expander(
        text in text(),
        [os, a, trusted, forged, extensions] in prop::array::uniform5(value()),
    ) {
        let object = |value: Value| value.as_object().cloned().unwrap_or_default();
        let mut node = Node::named("web1.example.com");
        node.fact.extend([("os".to_owned(), os), ("a".to_owned(), a), ("trusted".to_owned(), forged)]);
        node.trusted = object(trusted);
        node.trusted.insert("extensions".to_owned(), extensions);
        let expected = plain::expand(&text, &node);
        prop_assert_eq!(expand(&text, &node), Ok(expected.clone()), "{}", text);
        // What a node has beside what the references name has no part.
        let illegal = Template::illegal_forms(&text);
        prop_assert_eq!(illegal.iter().all(|it| text.get(it.bytes.clone()).is_some()), true);
    }
}
