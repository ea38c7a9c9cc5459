use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::super::format;
use super::*;
use crate::table::each_row;

pub(super) fn value_of(text: &str) -> Value {
    documents(text).expect(text).first().map_or(Value::Null, Node::to_value)
}

/// Edits one document of a text.
fn edit(
    text: &str,
    number: usize,
    target: &Value,
    layout: &dyn Fn(&[&str]) -> ValueLayout,
) -> Result<String, EditError> {
    edit_documents(text, &BTreeMap::from([(number, target.clone())]), layout)
}

fn removed(text: &str, numbers: &[usize]) -> String {
    remove_documents(text, &numbers.iter().copied().collect()).expect(text)
}

/// Edits the one document of a text by changing what it reads as.
pub(super) fn edited(text: &str, change: impl FnOnce(&mut Value)) -> String {
    let mut target = value_of(text);
    change(&mut target);
    edit(text, 0, &target, &house).expect(text)
}

fn house(way: &[&str]) -> ValueLayout {
    match way {
        ["classes" | "variables" | "pinned"] | ["classes", _] => ValueLayout::Block,
        _ => ValueLayout::Flow,
    }
}

fn assert_edit((text, target, expected): (&str, &str, &str)) {
    let target: Value = serde_json::from_str(target).expect(target);
    let found = edit(text, 0, &target, &house).expect(text);
    assert_eq!(found, expected, "{text}");
}

const GROUP: &str = r#"# Web servers
name: "Webs"   # as in the CMDB
parent: All Nodes

rule: ["and", ["~", "name", "^web"],   # by name
       ["=", ["fact", "x"], '1']]
pinned:
  - web1.example.com   # the canary
  # the old one
  - web2.example.com
classes:
  # Apache itself
  apache:
    port: 80  # plain
    # of the vhost
    docroot: '/srv'

  ssl: {}
variables: {a: 1, b: [x, y]}   # two
"#;

#[test]
fn a_value_changes_in_its_place_and_keeps_its_quotes() {
    let text = edited(GROUP, |it| {
        it["name"] = "New".into();
        it["classes"]["apache"]["port"] = 81.into();
        it["classes"]["apache"]["docroot"] = "/it's".into();
        it["variables"]["b"][1] = "z".into();
        it["rule"][2][2] = "2".into();
    });
    let expected = GROUP
        .replace("\"Webs\"", "\"New\"")
        .replace("port: 80 ", "port: 81 ")
        .replace("'/srv'", "'/it''s'")
        .replace("[x, y]", "[x, z]")
        .replace("'1'", "'2'");
    assert_eq!(text, expected);
}

#[test]
fn what_is_gone_takes_its_lines_along_and_no_others() {
    let text = edited(GROUP, |it| {
        it["classes"].as_object_mut().unwrap().shift_remove("apache");
        it["pinned"].as_array_mut().unwrap().remove(0);
        it["variables"].as_object_mut().unwrap().shift_remove("b");
    });
    insta::assert_snapshot!(text, @r##"
    # Web servers
    name: "Webs"   # as in the CMDB
    parent: All Nodes

    rule: ["and", ["~", "name", "^web"],   # by name
           ["=", ["fact", "x"], '1']]
    pinned:
      # the old one
      - web2.example.com
    classes:

      ssl: {}
    variables: {a: 1}   # two
    "##);
}

#[test]
fn what_is_new_stands_where_it_does_in_what_is_wanted() {
    let text = edited(GROUP, |it| {
        let fields = it.as_object_mut().unwrap();
        fields.shift_insert(1, "description".to_owned(), "all of them".into());
        fields["classes"]["apache"]["mpm"] = "event".into();
        fields["classes"]["ntp"] = json!({"servers": ["a", "b"]});
        fields["pinned"].as_array_mut().unwrap().push("web3.example.com".into());
        fields["variables"]["c"] = json!({"k": null});
        fields["rule"].as_array_mut().unwrap().push(json!(["=", "name", "x"]));
    });
    insta::assert_snapshot!(text, @r##"
    # Web servers
    name: "Webs"   # as in the CMDB
    description: all of them
    parent: All Nodes

    rule: ["and", ["~", "name", "^web"],   # by name
           ["=", ["fact", "x"], '1'], ["=", "name", "x"]]
    pinned:
      - web1.example.com   # the canary
      # the old one
      - web2.example.com
      - web3.example.com
    classes:
      # Apache itself
      apache:
        port: 80  # plain
        # of the vhost
        docroot: '/srv'
        mpm: event

      ssl: {}
      ntp:
        servers: ["a", "b"]
    variables: {a: 1, b: [x, y], c: {k: null}}   # two
    "##);
}

/// Each row: the text, what it shall read as, the text then.
const LAYOUTS: &[(&str, &str, &str)] = &[
    // absent values
    ("a:\nb: 1\n", r#"{"a": 2, "b": 1}"#, "a: 2\nb: 1\n"),
    ("a: # c\nb: 1\n", r#"{"a": 2, "b": 1}"#, "a: 2 # c\nb: 1\n"),
    ("a: 2 # c\nb: 1\n", r#"{"a": null, "b": 1}"#, "a: # c\nb: 1\n"),
    ("{a: , b}\n", r#"{"a": 1, "b": 2}"#, "{a: 1 , b: 2}\n"),
    // no line break at the end
    ("a: 1", r#"{"a": 1, "b": 2}"#, "a: 1\nb: 2"),
    ("a: 1\nb: 2", r#"{"a": 1}"#, "a: 1\n"),
    // the line breaks of the file
    ("a: 1\r\nc: 3\r\n", r#"{"a": 1, "b": 2, "c": 3}"#, "a: 1\r\nb: 2\r\nc: 3\r\n"),
    ("a: 1\r\n", r#"{"a": 1, "classes": {"b": {}}}"#, "a: 1\r\nclasses:\r\n  b: {}\r\n"),
    // an integer is not the float beside it
    ("a: 1\n", r#"{"a": 1.0}"#, "a: 1.0\n"),
    ("a: 1.0\n", r#"{"a": 1}"#, "a: 1\n"),
    ("a: [1.50]\n", r#"{"a": [1.5]}"#, "a: [1.50]\n"),
    ("a: 9007199254740993\n", r#"{"a": 9007199254740993.0}"#, "a: 9007199254740993.0\n"),
    // from one layout to another
    ("classes:\n  a:\n    b: 1\nz: 1\n", r#"{"classes": {}, "z": 1}"#, "classes: {}\nz: 1\n"),
    ("classes: # c\n  a: 1\nz: 1\n", r#"{"classes": null, "z": 1}"#, "classes: # c\nz: 1\n"),
    ("classes: {} # c\n", r#"{"classes": {"a": {}}}"#, "classes: # c\n  a: {}\n"),
    ("classes:\nz: 1\n", r#"{"classes": {"a": {}}, "z": 1}"#, "classes:\n  a: {}\nz: 1\n"),
    ("a: |\n  x\n  y\n\nb: 1\n", r#"{"a": "z", "b": 1}"#, "a: z\n\nb: 1\n"),
    ("a: >-\n  x\n  y\nb: 1\n", r#"{"b": 1}"#, "b: 1\n"),
    ("a: 'x'\n", r#"{"a": "x\ny"}"#, "a: \"x\\ny\"\n"),
    ("a: x\n", r#"{"a": "yes"}"#, "a: \"yes\"\n"),
    ("a: \"x\"\n", r#"{"a": 5}"#, "a: 5\n"),
    // JSON stays JSON
    ("{\"a\": 1}\n", r#"{"a": 1, "b": ["x"]}"#, "{\"a\": 1, \"b\": [\"x\"]}\n"),
    (
        "{\n  \"a\": 1,\n  \"b\": 2\n}\n",
        r#"{"a": 1, "b": 2, "c": 3}"#,
        "{\n  \"a\": 1,\n  \"b\": 2,\n  \"c\": 3\n}\n",
    ),
    ("{\n  \"a\": 1,\n  \"b\": 2\n}\n", r#"{"a": 1}"#, "{\n  \"a\": 1\n}\n"),
    ("{\n  \"a\": 1,\n  \"b\": 2\n}\n", r#"{"b": 2}"#, "{\n  \"b\": 2\n}\n"),
    // brackets over several lines
    (
        "r: [\n  a, # 1\n  b, # 2\n]\n",
        r#"{"r": ["a", "b", "c"]}"#,
        "r: [\n  a, # 1\n  b, # 2\n  \"c\",\n]\n",
    ),
    (
        "r: [\n  a, # 1\n  b # 2\n]\n",
        r#"{"r": ["a", "b", "c"]}"#,
        "r: [\n  a, # 1\n  b, # 2\n  \"c\"\n]\n",
    ),
    ("r: [\n  a, # 1\n  b, # 2\n]\n", r#"{"r": ["a"]}"#, "r: [\n  a, # 1\n]\n"),
    ("r: [\n  a, # 1\n  b # 2\n]\n", r#"{"r": ["a"]}"#, "r: [\n  a # 1\n]\n"),
    ("r: [a, b, c]\n", r#"{"r": ["c"]}"#, "r: [c]\n"),
    ("r: [a, b, c]\n", r#"{"r": ["z", "a", "c"]}"#, "r: [\"z\", a, c]\n"),
    ("r: [a]\n", r#"{"r": []}"#, "r: []\n"),
    // lists
    ("p:\n- a\n- b # x\nq: 1\n", r#"{"p": ["b", "c"], "q": 1}"#, "p:\n- b # x\n- c\nq: 1\n"),
    ("- name: a\n  x: 1\n- name: b\n", r#"[{"x": 1}, {"name": "b"}]"#, "- x: 1\n- name: b\n"),
    ("- name: a\n", r#"[{"id": 1, "name": "a"}]"#, "- id: 1\n  name: a\n"),
    ("- a\n-\n- c\n", r#"["a", "b", "c"]"#, "- a\n- b\n- c\n"),
    ("- - a\n  - b\n", r#"[["a"]]"#, "- - a\n"),
    // keys with their quotes, and with a blank before the colon
    ("\"a\" : 1\n", r#"{"a": 2}"#, "\"a\" : 2\n"),
    // keys with question marks
    ("? a\n: 1\n? b\n: 2\n", r#"{"a": 1, "b": 3}"#, "? a\n: 1\n? b\n: 3\n"),
    (
        "# top\n? a # a\n# of a\n: 1 # c\n# b\n? \"b\"\n:\n  x: 1\nc: 2\n",
        r#"{"b": {"x": 1, "y": 2}, "c": 2, "d": 3}"#,
        "# top\n# b\n? \"b\"\n:\n  x: 1\n  y: 2\nc: 2\nd: 3\n",
    ),
    ("- ? a\n  : 1\n  b: 2\n", r#"[{"b": 2}]"#, "- b: 2\n"),
    ("? a\n:\n? b\n: 2\n", r#"{"a": {"p": [1]}, "b": 2}"#, "? a\n: {p: [1]}\n? b\n: 2\n"),
    ("?\n  a\n: 1\nb: 2\n", r#"{"a": 1, "b": 3}"#, "?\n  a\n: 1\nb: 3\n"),
    ("a: x\n  y ?\nb: w?\nc: 1\n", r#"{"a": "x y ?", "b": "w?"}"#, "a: x\n  y ?\nb: w?\n"),
    (
        "m:\n# why?\n      a: 1 # one\n      b: 2\n",
        r#"{"m": {"a": 3, "b": 2}}"#,
        "m:\n# why?\n      a: 3 # one\n      b: 2\n",
    ),
    ("m:\n- ? a\n  : 1 # one\n", r#"{"m": [{"a": 3}]}"#, "m:\n- ? a\n  : 3 # one\n"),
    // what stands in the place of a mapping whose first key has a question mark
    ("- ? a\n  : 1\n- b # b\n", r#"[null, "b"]"#, "- null\n- b # b\n"),
    ("- ? a\n  : 1\n- b # b\n", r#"[[], "b"]"#, "- []\n- b # b\n"),
    ("- ? a\n  : 1\n- b # b\n", r#"[{"x": 1}, "b"]"#, "- x: 1\n- b # b\n"),
    ("-\n  ? a\n  : 1\n- b # b\n", r#"[2, "b"]"#, "- 2\n- b # b\n"),
    ("k:\n  ? a\n  : 1\nl: 2 # l\n", r#"{"k": "x", "l": 2}"#, "k: x\nl: 2 # l\n"),
    ("k:\n  ? a\n  : 1\nl: 2 # l\n", r#"{"k": {"y": 3}, "l": 2}"#, "k:\n  y: 3\nl: 2 # l\n"),
    ("# top\n? a\n: 1\n", r#"{"x": 1}"#, "# top\nx: 1\n"),
    // anchors stand before what takes the place of what was theirs
    (
        "a: 1 # one\nb: &x\n  p: 1\n  # q\nc: 2 # two\n",
        r#"{"a": 1, "b": {}, "c": 2}"#,
        "a: 1 # one\nb: &x {}\n  # q\nc: 2 # two\n",
    ),
    ("# top\na: &x\n  p: 1\n", r#"{"a": "0644"}"#, "# top\na: &x \"0644\"\n"),
    ("# top\na: &x # c\n  p: 1\n", r#"{"a": []}"#, "# top\na: &x [] # c\n"),
    ("# top\na: &x # c\nb: 1\n", r#"{"a": "y z", "b": 1}"#, "# top\na: &x y z # c\nb: 1\n"),
    ("- &a\n  k: 1\n- b # bb\n- c\n", r#"[{"k": 1}, "b", "d"]"#, "- &a\n  k: 1\n- b # bb\n- d\n"),
    // the aliases of other anchors stay
    (
        "p: &p [80, 443]\na: *p # same\nb: &b\n  x: 1\nc: *b\n",
        r#"{"p": [80, 443], "a": [80, 443], "c": {"x": 1}}"#,
        "p: &p [80, 443]\na: *p # same\nc: {x: 1}\n",
    ),
    // the comment beside the mark of a text stays
    ("m: |  # why\n  a b\n  c d\nn: 1\n", r#"{"m": "short", "n": 1}"#, "m: short  # why\nn: 1\n"),
    // without a colon there is no line to keep
    ("? a\nb: 2\n", r#"{"a": null, "b": 3}"#, "a:\nb: 3\n"),
    // anchors: what refers to them is written out where it must stay as it is
    ("a: &x 1\nb: *x\n", r#"{"a": 2, "b": 1}"#, "a: &x 2\nb: 1\n"),
    ("a: &x {p: 1}\nb: *x\n", r#"{"a": {"p": 1}, "b": {"p": 2}}"#, "a: &x {p: 1}\nb: {p: 2}\n"),
    ("a: &x [1]\nb: *x\nc: 1\n", r#"{"b": [1], "c": 1}"#, "b: [1]\nc: 1\n"),
    (
        "a: &x\n  p: 1\nb: *x\n",
        r#"{"a": {"p": 1, "q": 2}, "b": {"p": 1, "q": 2}}"#,
        "a: &x\n  p: 1\n  q: 2\nb: {p: 1, q: 2}\n",
    ),
    ("\u{feff}é: 'ü'  # c\n", r#"{"é": "ß", "b": 1}"#, "\u{feff}é: 'ß'  # c\nb: 1\n"),
];

#[test]
fn every_layout_is_edited_as_it_is() {
    each_row(LAYOUTS, |row| assert_edit(*row));
}

/// Each row: the text, what it shall read as, the text then.
const COMMENTS: &[(&str, &str, &str)] = &[
    // comments between entries
    ("a: 1\n# about b\nb: 2\n", r#"{"a": 1}"#, "a: 1\n"),
    ("a: 1\n\n# on all\n\n# b\nb: 2\nc: 3\n", r#"{"a": 1, "c": 3}"#, "a: 1\n\n# on all\n\nc: 3\n"),
    ("# top\na: 1\nb: 2\n", r#"{"b": 2}"#, "# top\nb: 2\n"),
    ("# top\na: 1\n", r#"{"new": 0, "a": 1}"#, "# top\na: 1\nnew: 0\n"),
    (
        "a:\n  # x\n  x: 1\n  # clade: ignore k\nb: 1\n",
        r#"{"a": {"w": 0, "x": 1, "y": 2}, "b": 1}"#,
        "a:\n  w: 0\n  # x\n  x: 1\n  y: 2\n  # clade: ignore k\nb: 1\n",
    ),
    ("# clade: ignore k\n\na: 1\nb: 1\n", r#"{"b": 1}"#, "b: 1\n"),
    ("a:\n  # clade: ignore k\n  x: 1\nb: 1\n", r#"{"a": {}, "b": 1}"#, "a: {}\nb: 1\n"),
    ("a:\n  # clade: ignore k\n  x: 1\nb: 1\n", r#"{"a": {"y": 1}, "b": 1}"#, "a:\n  y: 1\nb: 1\n"),
    (
        "r: [\n  # of a\n  a,\n  # of b\n  b,\n  c\n]\n",
        r#"{"r": ["z", "a", "c"]}"#,
        "r: [\n  \"z\",\n  # of a\n  a,\n  c\n]\n",
    ),
    // comments in brackets that are not spread over lines
    (
        "r: [a, # of a\n  b, # of b\n  c]\n",
        r#"{"r": ["a", "b"]}"#,
        "r: [a, # of a\n  b # of b\n  ]\n",
    ),
    ("r: [a, # of a\n  b, # of b\n  c]\n", r#"{"r": ["b", "c"]}"#, "r: [b, # of b\n  c]\n"),
    ("r: [a, # of a\n  b, # of b\n  c]\n", r#"{"r": ["a", "c"]}"#, "r: [a, # of a\n  c]\n"),
    ("r: [a, # of a\n  b, # of b\n  c]\n", r#"{"r": ["a"]}"#, "r: [a # of a\n  ]\n"),
    ("r: [a, # of a\n  b # of b\n  ]\n", r#"{"r": ["a"]}"#, "r: [a # of a\n  ]\n"),
    ("r: [a,\n  b # of b\n  ]\n", r#"{"r": ["a"]}"#, "r: [a\n  ]\n"),
    ("r: [a # of a\n  , b]\n", r#"{"r": ["a"]}"#, "r: [a # of a\n  ]\n"),
    ("r: [a, b, # of both\n  c]\n", r#"{"r": ["a", "c"]}"#, "r: [a, # of both\n  c]\n"),
    ("r: [a, b,\n  # of c\n  c, d]\n", r#"{"r": ["a", "c", "d"]}"#, "r: [a,\n  # of c\n  c, d]\n"),
    ("r: [a,\n  # of c\n  c, d]\n", r#"{"r": ["c", "d"]}"#, "r: [\n  # of c\n  c, d]\n"),
    ("r: [a,\n  # of c\n  c, d]\n", r#"{"r": ["a", "d"]}"#, "r: [a,\n  # of c\n  d]\n"),
    (
        "r: [a,\n  # of b\n  b,\n  # of c\n  c, d]\n",
        r#"{"r": ["a", "c", "d"]}"#,
        "r: [a,\n  # of c\n  c, d]\n",
    ),
    ("r: {a: 1, # of a\n  b: 2}\n", r#"{"r": {"a": 1}}"#, "r: {a: 1 # of a\n  }\n"),
    ("r: [a, # of a\n  b]\n", r#"{"r": ["a", "c"]}"#, "r: [a, # of a\n  c]\n"),
    (
        "a:\n  x: 1\n  # below x\n# about b\nb: 2\n",
        r#"{"a": {"x": 1, "y": 2}, "b": 2}"#,
        "a:\n  x: 1\n  y: 2\n  # below x\n# about b\nb: 2\n",
    ),
];

#[test]
fn comments_go_with_what_they_belong_to() {
    each_row(COMMENTS, |row| assert_edit(*row));
}

#[test]
fn one_document_of_several_is_edited_or_removed() {
    let text = "# all\nname: a # 1\n---\n# b\nname: b\n--- # c\nname: c\n";
    assert_eq!(
        edit(text, 1, &json!({"name": "x"}), &house).unwrap(),
        text.replace("name: b", "name: x")
    );
    assert_eq!(removed(text, &[0]), "# all\n# b\nname: b\n--- # c\nname: c\n");
    assert_eq!(removed(text, &[1]), "# all\nname: a # 1\n--- # c\nname: c\n");
    assert_eq!(removed(text, &[2]), "# all\nname: a # 1\n---\n# b\nname: b\n");
    assert_eq!(removed(text, &[0, 1]), "# all\nname: c\n");
    assert_eq!(removed(text, &[1, 2]), "# all\nname: a # 1\n");
    assert_eq!(removed(text, &[0, 2]), "# all\n# b\nname: b\n");
    let marked = "---\nname: a\n---\nname: b\n---\nname: c\n";
    assert_eq!(removed(marked, &[0, 1]), "---\nname: c\n");
    assert_eq!(edit("a: [", 0, &json!({}), &house), Err(EditError::Unreadable));
    assert_eq!(edit(text, 3, &json!({}), &house), Err(EditError::Unreadable));
}

/// A file that would be too large was tried once for each of its documents.
#[test]
fn a_file_that_would_be_too_large_is_refused_with_its_size() {
    let text = "a: 1\n---\n".repeat(60);
    let long = json!({"a": "x".repeat(20_000)});
    let targets: BTreeMap<usize, Value> = (0..60).map(|it| (it, long.clone())).collect();
    let done = edit_documents(&text, &targets, &house);
    assert_eq!(done, Err(EditError::TooLarge(60 * (20_000 + "a: \"\"\n---\n".len()))));
    let fitting: BTreeMap<usize, Value> = targets.into_iter().take(50).collect();
    assert!(edit_documents(&text, &fitting, &house).is_ok());
    let alone = edit("a: 1\n", 0, &json!({"a": "x".repeat(2 << 20)}), &house).unwrap_err();
    assert_eq!(alone.to_string(), "the file would have 2097158 bytes, 1048576 are allowed");
}

/// Each row: a file; what its documents shall read as, where they change; the file then.
/// A file, what its documents become, and the file then.
type EditedFile = (&'static str, &'static [(usize, &'static str)], &'static str);

const FILES: &[EditedFile] = &[
    (
        "# all\nn: a # 1\n---\n# b\nn: b\n--- # c\nn: c\nk: |\n  x\n\n---\nn: d",
        &[(0, r#"{"n": 1}"#), (2, r#"{"n": "c", "k": "x\n", "l": 3}"#), (3, r#"{"n": 4, "m": 5}"#)],
        "# all\nn: 1 # 1\n---\n# b\nn: b\n--- # c\nn: c\nk: |\n  x\nl: 3\n\n---\nn: 4\nm: 5",
    ),
    ("{n: a}\n--- {n: b}\n", &[(0, r#"{"n": 1}"#), (1, r#"{"n": 2}"#)], "{n: 1}\n--- {n: 2}\n"),
    // An anchor of a document means nothing to the next one.
    (
        "a: &x 1\nb: *x\n---\na: &x 2\nb: *x\n",
        &[(0, r#"{"a": 3, "b": 1}"#), (1, r#"{"a": 4, "b": 2}"#)],
        "a: &x 3\nb: 1\n---\na: &x 4\nb: 2\n",
    ),
    (
        "\u{feff}n: a\n...\n---\nn: b\n...\n",
        &[(1, r#"{"n": 2}"#)],
        "\u{feff}n: a\n...\n---\nn: 2\n...\n",
    ),
    // Documents without a marker between them.
    ("n: a\n...\nn: b # b\n", &[(0, r#"{"n": 1}"#), (1, r#"{"n": 2}"#)], "n: 1\n...\nn: 2 # b\n"),
    ("n: a\r\n---\r\nn: b\r\n", &[(0, r#"{"n": "a", "m": 1}"#)], "n: a\r\nm: 1\r\n---\r\nn: b\r\n"),
];

#[test]
fn several_documents_of_a_file_are_edited_together() {
    each_row(FILES, |(text, targets, expected)| {
        let targets = targets.iter().map(|(at, it)| (*at, serde_json::from_str(it).expect(it)));
        let found = edit_documents(text, &targets.collect(), &house).expect(text);
        assert_eq!(found, *expected, "{text}");
    });
}

/// Of a list in a document of a file that is as large as it may be, two elements go.
fn without_two(list: &str, count: usize, (first, last): (usize, usize)) -> (String, String) {
    let (open, element, close): (&str, fn(usize) -> String, &str) = match list {
        "lines" => ("p:\n", |it| format!("- n{it:04} # {it}\n"), "q: 1\n"),
        "one line" => ("p: [", |it| format!("n{it:05},"), "]\nq: 1\n"),
        _ => ("p:\n", |it| format!("  k{it}: 1 # {it}\n"), "q: 1\n"),
    };
    let text = |all: &mut dyn Iterator<Item = usize>| {
        format!("{open}{}{close}", all.map(element).collect::<String>())
    };
    let after = text(&mut (0..count).filter(|it| *it != first && *it != last));
    (text(&mut (0..count)), after)
}

/// A list or mapping that fills a file takes no time that grows with its square.
#[test]
fn of_a_long_list_or_mapping_the_lines_of_what_goes_go() {
    for (list, count) in
        [("lines", 1500), ("lines", 20_000), ("one line", 30_000), ("mapping", 20_000)]
    {
        let (before, after) = without_two(list, count, (3, count - 100));
        let found = edit(&before, 0, &value_of(&after), &house).unwrap();
        assert!(found == after, "{list} {count}");
        assert!(edit(&after, 0, &value_of(&before), &house).is_ok(), "{list} {count}");
    }
}

#[test]
fn a_document_is_removed_beside_empty_ones_markers_with_content_and_directives() {
    let rows = [
        (
            "name: A\n---\n# ---- web ----\n---\nname: B\n",
            0,
            "---\n# ---- web ----\n---\nname: B\n",
        ),
        ("name: A\n--- {name: B}\n", 0, "--- {name: B}\n"),
        ("name: A\n--- {name: B}\n---\nname: C\n", 1, "name: A\n---\nname: C\n"),
        ("name: A\n...\nname: B\n", 0, "name: B\n"),
        ("name: A\n...\n---\nname: B\n", 1, "name: A\n...\n"),
        (
            "%YAML 1.2\n---\nname: B\n...\n%YAML 1.2\n---\nname: A\n",
            1,
            "%YAML 1.2\n---\nname: B\n...\n",
        ),
        ("%YAML 1.2\n---\nname: B\n...\n%YAML 1.2\n---\nname: A\n", 0, "%YAML 1.2\n---\nname: A\n"),
    ];
    each_row(rows, |(text, number, expected)| {
        let text = removed(text, &[number]);
        assert_eq!(text, expected);
    });
}

#[test]
fn many_documents_of_a_file_are_edited_and_removed_together() {
    let documents = |owner: &str| -> String {
        let all = (0..1000).map(|it| format!("---\nname: n{it}  # {it}\npinned: [x, {owner}]\n"));
        all.collect()
    };
    let (before, after) = (documents("a"), documents("b"));
    let wanted = super::documents(&after).unwrap();
    let targets = wanted.iter().map(Node::to_value).enumerate().collect();
    assert!(edit_documents(&before, &targets, &house).unwrap() == after);
    let odd: Vec<usize> = (0..1000).filter(|it| it % 2 == 1).collect();
    assert_eq!(super::documents(&removed(&before, &odd)).unwrap().len(), 500);
}

/// Writes values in every layout that people use, with comments and blank lines; the choices are
/// taken from a list of numbers.
struct Scribe {
    choices: Vec<u8>,
    at: usize,
    notes: usize,
}

impl Scribe {
    fn choose(&mut self, below: u8) -> u8 {
        self.at += 1;
        self.choices.get(self.at % self.choices.len().max(1)).copied().unwrap_or(0) % below
    }

    fn note(&mut self) -> String {
        self.notes += 1;
        format!("# note {}", self.notes)
    }

    fn scalar(&mut self, value: &Value) -> String {
        match value {
            Value::String(text) if self.choose(3) == 0 => write::quote(text),
            Value::String(text) if self.choose(3) == 0 && !text.contains('\n') => {
                format!("'{}'", text.replace('\'', "''"))
            }
            other => write::inline(other),
        }
    }

    /// Writes a key with its colon; before it can stand a question mark, with the colon below.
    fn key(&mut self, key: &str, margin: &str) -> String {
        let key = self.scalar(&key.into());
        match self.choose(12) {
            0 => format!("? {key}\n{margin}:"),
            1 => format!("?  {key}  {}\n{margin}:", self.note()),
            _ => format!("{key}:"),
        }
    }

    fn flow(&mut self, value: &Value) -> String {
        let parts: Vec<String> = match value {
            Value::Object(fields) => fields
                .iter()
                .map(|(key, it)| {
                    format!("{}: {}", write::inline(&key.as_str().into()), self.flow(it))
                })
                .collect(),
            Value::Array(elements) => elements.iter().map(|it| self.flow(it)).collect(),
            other => return self.scalar(other),
        };
        let (open, close) = if value.is_object() { ("{", "}") } else { ("[", "]") };
        let separator = [", ", ",", " , "][self.choose(3) as usize];
        let comma = if parts.is_empty() || self.choose(3) > 0 { "" } else { "," };
        format!("{open}{}{comma}{close}", parts.join(separator))
    }

    fn lines(&mut self, value: &Value, indent: usize, text: &mut String) {
        let margin = " ".repeat(indent);
        let parts: Vec<(String, &Value)> = match value {
            Value::Object(fields) => {
                fields.iter().map(|(key, it)| (self.key(key, &margin), it)).collect()
            }
            Value::Array(elements) => elements.iter().map(|it| ("-".to_owned(), it)).collect(),
            _ => Vec::new(),
        };
        for (mark, part) in parts {
            match self.choose(6) {
                0 => text.extend([format!("{margin}{}\n", self.note())]),
                1 => *text += "\n",
                _ => {}
            }
            let comment =
                if self.choose(4) == 0 { format!("  {}", self.note()) } else { String::new() };
            let nested = match part {
                Value::Object(fields) => !fields.is_empty(),
                Value::Array(elements) => !elements.is_empty(),
                _ => false,
            };
            if nested && self.choose(3) > 0 {
                let indentless = part.is_array() && value.is_object() && self.choose(3) == 0;
                let step = if indentless { 0 } else { [2, 4, 1][self.choose(3) as usize] };
                let mut inside = String::new();
                self.lines(part, indent + step, &mut inside);
                let first = inside.trim_start();
                if mark == "-" && step == 2 && !inside.starts_with('\n') && !first.starts_with('#')
                {
                    text.extend([format!("{margin}- {first}")]);
                } else {
                    text.extend([format!("{margin}{mark}{comment}\n{inside}")]);
                }
            } else if part.is_null() && self.choose(2) == 0 {
                text.extend([format!("{margin}{mark}{comment}\n")]);
            } else {
                text.extend([format!("{margin}{mark} {}{comment}\n", self.flow(part))]);
            }
        }
    }
}

fn any_key() -> impl Strategy<Value = String> {
    prop_oneof!["[a-e]", Just("a b".to_owned()), Just("0644".to_owned()), Just("p::q".to_owned())]
}

fn any_part() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<i8>().prop_map(Value::from),
        Just(Value::from(true)),
        "[a-c]{0,3}".prop_map(Value::from),
        prop_oneof![
            Just("yes"),
            Just("# x"),
            Just("a: b"),
            Just("l\nm"),
            Just("it's"),
            Just("ü *x")
        ]
        .prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((any_key(), inner), 0..5)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

fn any_mapping() -> impl Strategy<Value = Map<String, Value>> {
    prop::collection::vec((any_key(), any_part()), 1..6).prop_map(|it| it.into_iter().collect())
}

/// Changes one thing inside of a value, at a place that the choices lead to.
fn disturb(value: &mut Value, scribe: &mut Scribe, fresh: &Value) {
    let deeper = scribe.choose(3) > 0;
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            let at = scribe.choose(u8::try_from(fields.len()).unwrap()) as usize;
            let (_, inner) = fields.get_index_mut_for_test(at);
            if deeper && (inner.is_object() || inner.is_array()) {
                return disturb(inner, scribe, fresh);
            }
            let key = fields.keys().nth(at).cloned().unwrap();
            match scribe.choose(3) {
                0 if fields.len() > 1 => drop(fields.shift_remove(&key)),
                1 => drop(fields.shift_insert(at, "new".to_owned(), fresh.clone())),
                _ => fields[&key] = fresh.clone(),
            }
        }
        Value::Array(elements) if !elements.is_empty() => {
            let at = scribe.choose(u8::try_from(elements.len()).unwrap()) as usize;
            if deeper && (elements[at].is_object() || elements[at].is_array()) {
                return disturb(&mut elements[at], scribe, fresh);
            }
            match scribe.choose(3) {
                0 if elements.len() > 1 => drop(elements.remove(at)),
                1 => elements.insert(at, fresh.clone()),
                _ => elements[at] = fresh.clone(),
            }
        }
        other => *other = fresh.clone(),
    }
}

trait Nth {
    fn get_index_mut_for_test(&mut self, at: usize) -> (&String, &mut Value);
}

impl Nth for Map<String, Value> {
    fn get_index_mut_for_test(&mut self, at: usize) -> (&String, &mut Value) {
        self.iter_mut().nth(at).unwrap()
    }
}

/// Returns how many lines of a text are in another one, in order.
fn kept_lines(before: &str, after: &str) -> usize {
    let (a, b): (Vec<Value>, Vec<Value>) =
        (before.lines().map(Value::from).collect(), after.lines().map(Value::from).collect());
    let same_line = |step: &align::AlignStep| match step {
        align::AlignStep::Keep { old, new } => a[*old] == b[*new],
        _ => false,
    };
    align::align(&a, &b).iter().filter(|step| same_line(step)).count()
}

/// Writes parts in brackets below some keys, each with what stands between it and the next; returns the text, and
/// which parts each note in it is about.
fn in_brackets(
    parts: &[(u8, bool)],
    outer: usize,
    is_mapping: bool,
    last: u8,
) -> (String, Vec<Vec<usize>>) {
    let (open, close) = if is_mapping { ("{", "}") } else { ("[", "]") };
    let margin = " ".repeat(4 * outer + 2);
    let (mut text, mut owners): (String, Vec<Vec<usize>>) = (String::new(), Vec::new());
    for level in 0..outer {
        text.extend([format!("{}l{level}:\n", "    ".repeat(level))]);
    }
    text.extend([format!("{}r: {open}", "    ".repeat(outer))]);
    let mut line: Vec<usize> = Vec::new();
    for (at, (separator, _)) in parts.iter().enumerate() {
        if is_mapping {
            text.extend([format!("k{at}: {at}")]);
        } else {
            text.extend([format!("e{at}")]);
        }
        line.push(at);
        let is_last = at + 1 == parts.len();
        let separator = if is_last { last + 2 } else { *separator };
        if !is_last {
            text.push(',');
        }
        if matches!(separator, 3 | 4) {
            text.extend([format!(" # note {}.", owners.len())]);
            owners.push(line.clone());
        }
        match separator {
            0..2 if !is_last => text.push(' '),
            0..3 => {}
            _ => {
                text.extend([format!("\n{margin}")]);
                line.clear();
            }
        }
        if separator == 5 && !is_last {
            text.extend([format!("# note {}.\n{margin}", owners.len())]);
            owners.push((at + 1..parts.len()).take_while(|it| *it == at + 1).collect());
        }
    }
    text.extend([format!("{close}\nz: 1\n")]);
    (text, owners)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn an_edited_document_reads_as_wanted_and_a_small_edit_is_small(
        fields in any_mapping(),
        choices in prop::collection::vec(any::<u8>(), 1..60),
        fresh in any_part(),
    ) {
        let mut scribe = Scribe { choices, at: 0, notes: 0 };
        let before = Value::Object(fields);
        let mut text = String::new();
        scribe.lines(&before, 0, &mut text);
        prop_assert!(same(&value_of(&text), &before), "{}", text);
        let mut target = before.clone();
        disturb(&mut target, &mut scribe, &fresh);
        let after = edit(&text, 0, &target, &|_| ValueLayout::Flow);
        prop_assert!(after.is_ok(), "{}\n{}", text, target);
        let after = after.unwrap();
        prop_assert!(same(&value_of(&after), &target), "{}\n{}", text, after);

        // One thing changed: the lines that are gone are those of one key or element, and what it
        // stood in if that was in brackets; none of another top-level key.
        for (key, value) in target.as_object().unwrap() {
            if before.get(key).is_some_and(|it| same(it, value)) {
                let lines = |text: &str| {
                    let found = documents(text).unwrap();
                    let entry = found[0].entry(key).unwrap().clone();
                    let (from, to) = (entry.key_span.start.offset, entry.value.span.end.max(entry.key_span.end).offset);
                    text.get(from as usize..to as usize).unwrap().to_owned()
                };
                prop_assert_eq!(lines(&text), lines(&after), "{}\n{}", text, after);
            }
        }
        let notes = |text: &str| text.matches("# note ").count();
        let entry_notes = notes(&text) - notes(&after);
        let gone = text.lines().count() - kept_lines(&text, &after);
        prop_assert!(entry_notes <= gone, "{}\n{}", text, after);
    }

    /// A comment at the end of a line is about the parts of that line, one on its own line about the
    /// line below it.
    #[test]
    fn removing_parts_in_brackets_leaves_the_comments_of_the_others(
        parts in prop::collection::vec((0..6_u8, any::<bool>()), 2..7),
        outer in 0..3_usize,
        is_mapping in any::<bool>(),
        last in 0..3_u8,
    ) {
        let (text, owners) = in_brackets(&parts, outer, is_mapping, last);
        let before = value_of(&text);
        let kept: Vec<usize> = (0..parts.len()).filter(|at| parts[*at].1 || *at == 0 && parts.iter().all(|it| !it.1)).collect();
        let mut target = before.clone();
        let mut inner = &mut target;
        for level in 0..outer {
            inner = &mut inner[format!("l{level}")];
        }
        match &mut inner["r"] {
            Value::Array(elements) => {
                let all = std::mem::take(elements);
                elements.extend(kept.iter().map(|at| all[*at].clone()));
            }
            Value::Object(fields) => {
                let names: Vec<String> = kept.iter().map(|it| format!("k{it}")).collect();
                fields.retain(|key, _| names.contains(key));
            }
            _ => {}
        }
        let after = edit(&text, 0, &target, &|_| ValueLayout::Flow).unwrap();
        prop_assert!(same(&value_of(&after), &target), "{}\n{}", text, after);
        for (number, owners) in owners.iter().enumerate() {
            if owners.iter().any(|it| kept.contains(it)) {
                let note = format!("# note {number}.");
                prop_assert!(after.contains(&note), "{note} is lost:\n{}\n{}", text, after);
            }
        }
        // Edited in place, not rewritten.
        prop_assert!(after.ends_with("z: 1\n") && after.contains(if is_mapping { "r: {" } else { "r: [" }), "{after}");
    }

    #[test]
    fn documents_edited_together_are_as_if_edited_one_after_another(
        all in prop::collection::vec((any_mapping(), any_mapping(), any::<bool>()), 1..5),
        choices in prop::collection::vec(any::<u8>(), 1..60),
    ) {
        let mut scribe = Scribe { choices, at: 0, notes: 0 };
        let mut text = String::new();
        let mut targets = BTreeMap::new();
        for (number, (before, after, is_edited)) in all.into_iter().enumerate() {
            if number > 0 {
                text += "---\n";
            }
            scribe.lines(&Value::Object(before), 0, &mut text);
            if is_edited {
                targets.insert(number, Value::Object(after));
            }
        }
        let together = edit_documents(&text, &targets, &|_| ValueLayout::Block).unwrap();
        let apart = targets.iter().fold(text.clone(), |text, (number, target)| {
            edit_document(&text, *number, target, &|_| ValueLayout::Block).unwrap()
        });
        prop_assert_eq!(together, apart, "{}", text);
    }

    #[test]
    fn any_document_can_become_any_other(
        fields in any_mapping(),
        target in any_mapping(),
        choices in prop::collection::vec(any::<u8>(), 1..60),
    ) {
        let mut scribe = Scribe { choices, at: 0, notes: 0 };
        let mut text = String::new();
        scribe.lines(&Value::Object(fields.clone()), 0, &mut text);
        let target = Value::Object(target);
        let after = edit(&text, 0, &target, &|_| ValueLayout::Block);
        prop_assert!(after.is_ok(), "{}\n{}", text, target);
        let after = after.unwrap();
        prop_assert!(same(&value_of(&after), &target), "{}\n{}", text, after);
        let back = edit(&after, 0, &Value::Object(fields.clone()), &|_| ValueLayout::Flow).unwrap();
        prop_assert!(same(&value_of(&back), &Value::Object(fields.clone())), "{}\n{}", after, back);
        // The canonical form reads the same, keeps every comment, and is its own canonical form.
        let formatted = format(&text, &["c", "a", "b"]).unwrap();
        prop_assert!(same(&value_of(&formatted), &Value::Object(fields.clone())), "{}\n{}", text, formatted);
        prop_assert_eq!(text.matches("# note ").count(), formatted.matches("# note ").count(), "{}\n{}", text, formatted);
        prop_assert_eq!(&format(&formatted, &["c", "a", "b"]).unwrap(), &formatted, "{}", text);
        // What is as wanted is not touched.
        prop_assert_eq!(edit(&after, 0, &target, &|_| ValueLayout::Flow).unwrap(), after);
    }
}

/// What is put in at the end of a value and what is put in behind it have one place.
#[test]
fn a_value_grows_together_with_what_has_it() {
    let rows = [
        (
            "# top\na:\n  x: 1 # one\nb: 2 # two\n",
            r#"{"a": {"x": 1, "y": 2}, "n": 0, "b": 2}"#,
            "# top\na:\n  x: 1 # one\n  y: 2\nn: 0\nb: 2 # two\n",
        ),
        (
            "l:\n- 1 # one\nb: 2 # two\n",
            r#"{"l": [1, 2], "n": 0, "b": 2}"#,
            "l:\n- 1 # one\n- 2\nn: 0\nb: 2 # two\n",
        ),
        (
            "a:\n  - - 1 # one\n    # ends the list\n",
            r#"{"a": [[1, 2], [3]], "n": 0}"#,
            "a:\n  - - 1 # one\n    - 2\n    # ends the list\n  - [3]\nn: 0\n",
        ),
        (
            "b:  # note 2\n  e:  # note 4\n  -  # note 5\n\n  b:  # note 6\n\n# clade: ignore kind\na: {\n    a: null}\n",
            r#"{"b": {"e": [null, null], "c": 0}, "a": {"a": null}}"#,
            "b:  # note 2\n  e:  # note 4\n  -  # note 5\n  - null\n  c: 0\n\n\n# clade: ignore kind\na: {\n    a: null}\n",
        ),
    ];
    each_row(rows, assert_edit);
}
