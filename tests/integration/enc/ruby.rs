//! What we print is what Ruby reads: Puppet's own way to read the output of an ENC.

use std::io::Write as _;
use std::process::{Command, Stdio};

use clade::internals::classification::to_yaml11;
use clade::internals::model::same;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use serde_json::{Map, Value, json};

/// Reads YAML as Puppet does, one document a line, and writes each as JSON, or why it cannot.
const RUBY: &str = r"
require 'yaml'
require 'json'
STDIN.each_line do |line|
  begin
    read = YAML.safe_load(line.chomp, permitted_classes: [Symbol], aliases: true)
    puts JSON.generate([read], max_nesting: 0)
  rescue StandardError => error
    puts JSON.generate(error.message)
  end
end
";

/// Lets Ruby read each text; `None` without Ruby.
fn read_by_ruby(texts: &[String]) -> Option<Vec<Value>> {
    let child = Command::new("ruby")
        .args(["-Eutf-8", "-e", RUBY])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut child) = child else {
        eprintln!("skipped: needs ruby");
        return None;
    };
    let mut stdin = child.stdin.take().unwrap();
    let lines = texts.join("\n");
    let writer = std::thread::spawn(move || stdin.write_all(lines.as_bytes()).unwrap());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    let read: Vec<Value> = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(read.len(), texts.len());
    Some(read)
}

fn check(values: &[Value]) {
    let texts: Vec<String> = values.iter().map(to_yaml11).collect();
    let Some(read) = read_by_ruby(&texts) else { return };
    for ((value, text), read) in values.iter().zip(&texts).zip(&read) {
        match read {
            Value::Array(read) => assert!(same(&read[0], value), "{value} as {text} is {read:?}"),
            reason => panic!("{value} as {text}: {reason}"),
        }
    }
}

/// Any value, but for the key `<<`, which Ruby merges even in quotes.
fn any_value() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        any::<String>(),
        "[ -~]{0,12}",
        "[\\x00-\\x1f\\x7f-\\xa0\u{2028}\u{2029}\u{feff}\u{fffe}\u{ffff}\u{1f600}a: #\"'\\\\-]{0,8}",
        "[0-9:._+eExXobn~yYtTfF-]{1,8}",
    ];
    let number = prop_oneof![
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_filter("JSON has no others", |it| it.is_finite()).prop_map(Value::from),
        "-?[1-9][0-9]{0,40}".prop_map(|it| serde_json::from_str(&it).unwrap()),
        "-?[0-9]\\.[0-9]{1,5}[eE][+-]?[0-9]{1,2}".prop_map(|it| serde_json::from_str(&it).unwrap()),
        "-?[0-9][eE][+-]?[0-9]{1,2}".prop_map(|it| serde_json::from_str(&it).unwrap()),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        number,
        text.clone().prop_map(Value::from),
    ];
    let key = text.prop_filter("merged", |it| it != "<<");
    leaf.prop_recursive(5, 48, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((key.clone(), inner), 0..6)
                .prop_map(|it| it.into_iter().collect::<Map<_, _>>().into()),
        ]
    })
}

#[test]
fn any_value_is_read_by_ruby_as_it_is() {
    let mut runner = TestRunner::deterministic();
    let strategy = any_value();
    let values: Vec<Value> =
        (0..4000).map(|_| strategy.new_tree(&mut runner).unwrap().current()).collect();
    check(&values);
}

#[test]
fn what_is_something_else_without_quotes_stays_a_string() {
    let strings = [
        "2024-01-31",
        "2001-12-14t21:59:43.10-05:00",
        "2001-12-14 21:59:43",
        "yes",
        "on",
        "no",
        "off",
        "y",
        "n",
        "true",
        "null",
        "~",
        "",
        " ",
        "0755",
        "0o17",
        "0x1F",
        "0b11",
        "1_000",
        "1,000",
        "12:30:45",
        "1:30",
        "1.10",
        "1e3",
        ".inf",
        ".NaN",
        ":foo",
        ":\"foo\"",
        "!ruby/object:Object {}",
        "!!binary aGk=",
        "&a",
        "*a",
        "<<",
        "=",
        "- x",
        "? x",
        "a: b",
        "a #b",
        "%YAML",
        "---",
        "...",
        "{}",
        "[]",
        "|",
        ">",
        "@x",
        "`x",
        "\"",
        "'",
        "\\",
        "\\/",
        "/",
        "\u{1}",
        "\u{0}",
        "\u{7f}",
        "\u{80}",
        "\u{85}",
        "\u{9f}",
        "\u{a0}",
        "\u{2028}",
        "\u{2029}",
        "\u{feff}",
        "\u{fffe}",
        "\u{ffff}",
        "\u{fffd}",
        "a\u{feff}b",
        "\t",
        "\n",
        "\r\n",
        "a\n b",
        "😀",
        "\u{10ffff}",
        "${trusted['certname']}",
    ];
    let mut values: Vec<Value> = strings.map(Value::from).into();
    values.extend(strings.iter().filter(|it| **it != "<<").map(|it| json!({ *it: [*it] })));
    for length in [900, 998, 999, 1022, 1023, 1024, 5000] {
        values.push(json!({ "k".repeat(length): 1, "z": {"\u{7f}".repeat(length): [2]} }));
    }
    values.push(Value::from("v".repeat(100_000)));
    check(&values);
}

#[test]
fn numbers_keep_their_kind() {
    let numbers = [
        "0",
        "-1",
        "1e3",
        "1E3",
        "1e16",
        "1.5e300",
        "1e-7",
        "1.5E-7",
        "-0.0",
        "0.1",
        "1.0",
        "100.0",
        "1e22",
        "5e-324",
        "12345678901234567890123",
        "-9223372036854775809",
    ];
    let values = numbers.map(|it| serde_json::from_str(it).unwrap());
    check(&values);
    let nested = (0..60).fold(json!([1, null, true]), |inner, _| json!({"a": [inner]}));
    check(&[nested]);
}
