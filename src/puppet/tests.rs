use std::borrow::Cow;
use std::time::Duration;

use indoc::indoc;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::computing_time::computed_for;
use crate::puppet::Default as Unset;
use crate::table::each_row;

fn class(text: &str) -> PuppetClass {
    let mut code = read(text).unwrap();
    assert_eq!(code.classes.len(), 1, "{code:?}");
    code.classes.remove(0)
}

/// The parameters as `type name = default`.
fn signature(class: &PuppetClass) -> Vec<String> {
    let shown = |it: &Parameter| {
        let data_type = it.data_type.as_ref().map(|it| format!("{it} ")).unwrap_or_default();
        let default = match &it.default {
            Unset::Required => String::new(),
            Unset::Value(value) => format!(" = {value}"),
            Unset::Code(code) => format!(" <- {code}"),
        };
        format!("{data_type}{}{default}", it.name)
    };
    class.parameters.iter().map(shown).collect()
}

#[test]
fn the_header_of_a_class_is_read() {
    let found = class(
        r#"
# A comment with a class comment($x) {
class profile::web (
  String[1] $docroot,                     # "a quote that does not close
  Integer[1, 65535] $port = 443,          /* class other { */
  Optional[Enum[present, 'absent']] $ensure = undef,
  Struct[{mode => Enum['a'], Optional[owner] => String}] $options = {'mode' => 'a',},
  Hash[String,
    Array[Stdlib::Port]] $ports = {},
  $owner = $profile::params::owner,
  $mode = "0${owner}",
  $list = ['a', "b", [1, -2.5e3, 0x1F, 0644]],
  Pattern[/^[)(\/]$/] $pattern = 'x',
) inherits profile::params {
  file { $docroot: mode => $mode }
}"#,
    );
    assert_eq!((found.name.as_str(), found.line), ("profile::web", 3));
    insta::assert_snapshot!(signature(&found).join("\n"), @r#"
    String[1] docroot
    Integer[1, 65535] port = 443
    Optional[Enum['present', 'absent']] ensure = null
    Struct[{'mode' => Enum['a'], Optional['owner'] => String}] options = {"mode":"a"}
    Hash[String, Array[Stdlib::Port]] ports = {}
    owner <- $profile::params::owner
    mode <- "0${owner}"
    list = ["a","b",[1,-2.5e+3,31,420]]
    Pattern[/^[)(\/]$/] pattern = "x"
    "#);
}

#[test]
fn a_default_may_have_a_lambda() {
    let found = class(
        "class a(\n  $x = $y.reduce |$a, $b| { $a + $b },\n  \
         $z = map({'a' => 1}) |String $k, Hash[String, Any] $v = {}| >> String { \"${k}, ${v}\" },\n  \
         Integer $p = 1,\n) { }",
    );
    assert_eq!(
        signature(&found),
        [
            "x <- $y.reduce |$a, $b| { $a + $b }",
            "z <- map({'a' => 1}) |String $k, Hash[String, Any] $v = {}| >> String { \"${k}, ${v}\" }",
            "Integer p = 1",
        ]
    );
}

#[test]
fn what_only_looks_like_a_class_is_none() {
    for text in [
        "class { 'apache': port => 80 }",
        "$x = { class => 'a', 'class' => b }",
        "notify { 'class foo {': }",
        "notify { \"class foo { ${ {'class' => \"class bar {\"} }\": }",
        "if $a =~ /class foo {/ { }",
        "node /class foo/ { include bar }",
        "$x = Class['a']\n# class foo {\n",
        "$x = @(END)\nclass foo {\n  END\n",
        "$x = [@(\"A B\"/L), @(C:json)]\nclass a {\n  | A B\nclass b {\n- C\n",
        "case $x { /a{/: { } default: { } }",
    ] {
        assert_eq!(read(text).unwrap().classes, [], "{text}");
    }
}

#[test]
fn code_goes_on_behind_what_is_hard_to_read() {
    let rows = [
        "$a = $b / 2\n$c = ($d) / 2\n$e = $f[0] / 2",
        "$a = 'it''s'",
        "$a = 'a\\'b\\\\'",
        "$a = \"a\\\"b ${c['d']} $e ${\"f ${g}\"}\"",
        "$a = \"${b.map |$c| { \"}\" }}\"",
        "$a = @(END)\n it's {\n END",
        "$a = foo(@(\"X\"), 'y')\n  ${b} \" {\n  | X",
        "define foo::bar($x = '}') { }",
        "function foo::bar(Integer $x) >> String { \"{\" }",
        "$a = $b ? { /x{/ => 1, default => 2 }",
        "type Foo::Bar = Variant[Pattern[/[{\\/]/], Enum['a']]",
        "/* it's { */",
        "foo-bar { 'x': }",
        "@@file { 'x': }\nFile <<| tag == 'x' |>>",
        "notice(\"\\u{1F600} \\u0041 \\$x $\")",
    ];
    each_row(rows, |before| {
        let found = class(&format!("{before}\nclass after(Integer $p = 1) {{ }}\n"));
        assert_eq!(signature(&found), ["Integer p = 1"], "{before}");
    });
}

#[test]
fn the_text_of_a_heredoc_is_a_value() {
    let found = class(
        "class a(\n  $x = @(END),\n    one\n      two\n    | END\n  $y = @(\"E\"/),\nthree\n- E\n  $z = @(\"E\"),\n${four}\nE\n) { }",
    );
    assert_eq!(signature(&found), [r#"x = "one\n  two\n""#, r#"y = "three""#, r#"z <- @("E")"#]);
}

#[test]
fn classes_in_a_class_have_its_name() {
    let code = read("class a { class b($x) { class c { } } if true { } }\nclass d { }").unwrap();
    let names: Vec<&str> = code.classes.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["a", "a::b", "a::b::c", "d"]);
}

#[test]
fn what_does_not_close_is_a_fault_on_its_line() {
    for (text, fault) in [
        ("class a {", "line 1: a `{` is not closed"),
        ("class a { }\n}", "line 2: a `}` closes nothing"),
        ("\n$x = 'a", "line 2: a string is not closed"),
        ("\n\n$x = \"a", "line 3: a string is not closed"),
        ("$x = \"${a\"", "line 1: a string is not closed"),
        ("/* a", "line 1: a comment is not closed"),
        ("$x = @(END)\na\n", "line 1: the heredoc `END` has no end"),
        ("if $x =~ /a {", "line 1: a regular expression is not closed"),
        ("class a($x = ) { }", "line 1: the parameters of the class `a` cannot be read"),
        ("class a($x $y) { }", "line 1: the parameters of the class `a` cannot be read"),
        ("class a() ", "line 1: the class `a` has no body"),
    ] {
        assert_eq!(read(text).unwrap_err().to_string(), fault, "{text}");
    }
}

#[test]
fn nesting_without_end_is_refused() {
    let text = "\"${".repeat(100_000);
    assert!(read(&text).unwrap_err().reason.contains("levels deep"));
    assert!("Array[".repeat(100_000).parse::<DataType>().is_err());
    let deep = format!("class a($x = {}{}) {{ }}", "[".repeat(50_000), "]".repeat(50_000));
    assert!(matches!(class(&deep).parameters[0].default, Unset::Code(_)));
}

#[test]
fn type_aliases_are_read() {
    let code = read("# Ports\ntype Stdlib::Port = Integer[0, 65535]\n").unwrap();
    let shown: Vec<String> =
        code.aliases.iter().map(|(name, it)| format!("{name} = {it}")).collect();
    assert_eq!(shown, ["Stdlib::Port = Integer[0, 65535]"]);
}

/// A type, values that are of it, values that are not.
const TYPES: &[(&str, &str, &str)] = &[
    ("Any", r#"[null, 1, "a", {}]"#, r"[]"),
    ("String", r#"["", "a"]"#, r"[1, true, [], {}]"),
    ("String[2, 3]", r#"["ab", "äöü"]"#, r#"["a", "abcd"]"#),
    ("Integer", r"[0, -5]", r#"[1.5, "1", true]"#),
    ("Integer[1, 5]", r"[1, 5]", r"[0, 6]"),
    ("Integer[default, 5]", r"[-9, 5]", r"[6]"),
    ("Float", r"[1.5]", r#"[1, "1.5"]"#),
    ("Numeric", r"[1, 1.5]", r#"["1"]"#),
    ("Boolean", r"[true, false]", r#"["true", 1]"#),
    ("Boolean[true]", r"[true]", r"[false]"),
    ("Enum['a', b]", r#"["a", "b"]"#, r#"["A", "c", 1]"#),
    ("Enum[a, true]", r#"["A"]"#, r#"["b"]"#),
    ("Pattern[/^a/]", r#"["a", "b"]"#, r"[1]"),
    ("Optional[Integer]", r"[null, 1]", r#"["a"]"#),
    ("Optional['yes']", r#"[null, "yes"]"#, r#"["no"]"#),
    ("NotUndef", r"[1]", r"[null]"),
    ("Variant[Integer, Enum['auto']]", r#"[1, "auto"]"#, r#"["x", 1.5]"#),
    ("Variant[Integer, Unknown::Type]", r#"[1, "auto"]"#, r"[]"),
    ("Array", r"[[], [1]]", r#"["a", {}]"#),
    ("Array[String]", r#"[[], ["a"]]"#, r#"[[1], ["a", null]]"#),
    ("Array[String, 1]", r#"[["a"]]"#, r"[[]]"),
    ("Array[Unknown, 1]", r#"[["a"]]"#, r#"[[], "a"]"#),
    ("Tuple", r#"[[], [1, "a"]]"#, r#"["a", {}]"#),
    ("Optional[Tuple]", "[[1], null]", "[1]"),
    ("Tuple[String, Integer]", r#"[["a", 1]]"#, r#"[["a"], ["a", "b"], ["a", 1, 2]]"#),
    ("Tuple[String, Integer, 1, default]", r#"[["a"], ["a", 1, 2]]"#, r#"[[], ["a", "b"]]"#),
    ("Hash", r#"[{}, {"a": 1}]"#, r#"[[], "a"]"#),
    ("Hash[String, Integer]", r#"[{"a": 1}]"#, r#"[{"a": "b"}]"#),
    ("Hash[Enum['a'], Integer]", r#"[{"a": 1}]"#, r#"[{"b": 1}]"#),
    ("Hash[String, String, 1]", r#"[{"a": "b"}]"#, r"[{}]"),
    (
        "Struct[{a => Integer, Optional[b] => String, c => Optional[String]}]",
        r#"[{"a": 1}, {"a": 1, "b": "x", "c": null}]"#,
        r#"[{}, {"a": "x"}, {"a": 1, "d": 1}, {"a": 1, "b": null}]"#,
    ),
    ("Collection[1]", r#"[[1], {"a": 1}]"#, r#"[[], {}, "a"]"#),
    ("Scalar", r#"[1, "a", true]"#, r"[[], {}, null]"),
    ("Stdlib::Port", r"[80]", r#"[70000, "80"]"#),
    ("Array[Stdlib::Port]", r"[[80]]", r#"[["80"]]"#),
    ("TypeReference['Stdlib::Port']", r"[80]", r#"["80"]"#),
    ("Loop", r#"[1, "a"]"#, r"[]"),
    ("Tree", r#"[{"a": {"b": "c"}}]"#, r#"[{"a": {"b": 1}}, "a"]"#),
    ("Struct[{NotUndef['b'] => Optional[String]}]", r#"[{"b": null}, {"b": "x"}]"#, "[{}]"),
    ("Struct[{b => Optional[String]}]", "[{}]", "[]"),
    ("Integer[9007199254740993]", "[9007199254740993]", "[9007199254740992]"),
    ("Integer[-1, 36893488147419103232]", "[-1, 36893488147419103232]", "[36893488147419103233]"),
    ("Enum['Prod', 'ÄÖ', true]", r#"["prod", "ÄÖ", "PROD"]"#, r#"["prd", "äö"]"#),
    ("Sensitive[String]", r#"[1, "a"]"#, r"[]"),
];

#[test]
fn types_of_things_that_values_are_not_are_read() {
    let rows = [
        "Callable[[String, Integer], Integer]",
        "Callable[[0, 0], Any]",
        "URI[{'scheme' => 'http'}]",
        "Object[{'attributes' => {'a' => Integer}}]",
        "Object[{'attributes' => {'a' => {'type' => Integer, 'value' => 0}}}]",
        "Init[Integer, 'x', [1, 2]]",
        "Struct[{'a' => Integer, Optional['b'] => Callable[[], Any]}]",
    ];
    each_row(rows, |text| {
        let parsed: DataType = text.parse().unwrap();
        assert_eq!(parsed.to_string(), text);
    });
    let unknown: DataType = "URI[{scheme => 'http'}]".parse().unwrap();
    assert_eq!(has_type(&unknown, &json!("ftp://x"), &Aliases::new(), as_written), None);
    for text in ["Callable[[String]", "URI[{scheme}]", "URI[{scheme => }]", "Array[[", "[String]"] {
        assert!(text.parse::<DataType>().is_err(), "{text}");
    }
}

#[test]
fn a_heredoc_ends_where_puppet_ends_it() {
    let rows = [
        ("@(END)\n  This is the END\n", ""),
        ("@(END)\n a\nx -| END\n", " a\n"),
        ("@(END)\n  a\n b\n  | END\n", "a\n b\n"),
        ("@(END)\n  a\r\n  |- END\r\n", "a"),
        ("@(-END)\na\n-END\n", "a\n"),
        ("@(END)\n END.\n ENDE\n END \t\n", " END.\n ENDE\n"),
        ("@( \"END\" )\na\n - END\n", "a"),
    ];
    each_row(rows, |(heredoc, text)| {
        // The class stands behind the heredoc, and not in it.
        let code = read(
            &format!("class a ($x = {}\n", heredoc.replacen('\n', ") {{ }}\n", 1))
                .replace("{{ }}", "{ }"),
        )
        .unwrap();
        let default = &code.classes[0].parameters[0].default;
        assert_eq!(*default, Unset::Value(text.into()), "{heredoc}");
    });
}

#[test]
fn large_files_take_a_time_that_grows_with_their_size() {
    let took = computed_for(|| {
        let many: Vec<String> = (0..20_000).map(|it| format!("class c{it} {{ }}")).collect();
        let many = many.join("\n");
        let code = read(&many).unwrap();
        assert_eq!(code.classes.last().map(|it| it.line), Some(20_000));
        assert!(read(&"@(".repeat(200_000)).is_err());
        let deep = "class b {\n".repeat(30_000) + &"}".repeat(30_000);
        assert!(read(&deep).unwrap_err().to_string().starts_with("line 343: the name of a class"));
    });
    assert!(took < Duration::from_mins(1), "{took:?}");
}

#[test]
fn values_have_types_or_not() {
    let aliases: Aliases = [
        ("Stdlib::Port", "Integer[0, 65535]"),
        ("Loop", "Loop"),
        ("Tree", "Hash[String, Variant[String, Tree]]"),
    ]
    .map(|(name, it)| (name.to_owned(), it.parse().unwrap()))
    .into();
    let values = |text: &str| serde_json::from_str::<Vec<Value>>(text).expect(text);
    each_row(TYPES, |(data_type, good, bad)| {
        let parsed: DataType = data_type.parse().unwrap();
        for value in values(good) {
            assert_eq!(
                fault_of(&parsed, &value, &aliases, as_written),
                None,
                "{data_type}: {value}"
            );
        }
        for value in values(bad) {
            assert!(
                fault_of(&parsed, &value, &aliases, as_written).is_some(),
                "{data_type}: {value}"
            );
        }
    });
}

/// Some 600 bytes took minutes, for each parameter.
#[test]
fn aliases_that_stand_for_millions_of_types_are_unknown() {
    let of = |branches: usize, number: usize| vec![format!("A{}", number + 1); branches].join(", ");
    for (branches, depth) in [(2, 20), (4, 16), (8, 20)] {
        let mut aliases: Aliases = (0..depth)
            .map(|it| (format!("A{it}"), format!("Variant[{}]", of(branches, it)).parse().unwrap()))
            .collect();
        aliases.insert(format!("A{depth}"), "Integer".parse().unwrap());
        let first: DataType = "A0".parse().unwrap();
        let nested: DataType = "Array[Hash[String, A0]]".parse().unwrap();
        assert_eq!(has_type(&first, &json!(1), &aliases, as_written), Some(true));
        assert_eq!(has_type(&first, &json!("x"), &aliases, as_written), None);
        assert_eq!(
            fault_of(&nested, &json!([{"a": "x", "b": 1}, {"c": "y"}]), &aliases, as_written),
            None
        );
    }
}

/// Strings whose text each node has for itself.
fn of_nodes(text: &str) -> Option<Cow<'_, str>> {
    (!text.contains('$')).then_some(Cow::Borrowed(text))
}

#[test]
fn of_a_string_that_nodes_fill_only_that_it_is_one_is_known() {
    let rows = [
        ("String", Some(true)),
        ("Scalar", Some(true)),
        ("Data", Some(true)),
        ("String[1, 8]", None),
        ("Enum['a', 'b']", None),
        ("Enum['$x']", None),
        ("Optional['yes']", None),
        ("Pattern[/a/]", None),
        ("Variant[Integer, Enum['a']]", None),
        ("Variant[Integer, String]", Some(true)),
        ("Integer", Some(false)),
        ("Boolean", Some(false)),
        ("Undef", Some(false)),
        ("Array[String]", Some(false)),
    ];
    let aliases = Aliases::new();
    each_row(rows, |(data_type, verdict)| {
        let one: DataType = data_type.parse().unwrap();
        assert_eq!(has_type(&one, &json!("$x"), &aliases, of_nodes), verdict, "{data_type}");
        let many: DataType = format!("Array[Struct[{{a => {data_type}}}]]").parse().unwrap();
        let value = json!([{"a": "$x"}]);
        assert_eq!(has_type(&many, &value, &aliases, of_nodes), verdict, "{many}");
    });
}

#[test]
fn many_words_and_keys_take_a_bounded_time() {
    let words: Vec<String> = (0..16_000).map(|it| format!("'w{it}'")).collect();
    let texts: Value = (0..16_000).map(|it| format!("W{it}")).collect();
    let keys: Vec<String> = (0..16_000).map(|it| format!("Optional['k{it}'] => Integer")).collect();
    let maps: Value = (0..16_000).map(|_| json!({})).collect();
    let took = computed_for(|| {
        for (data_type, value) in [
            (format!("Array[Enum[{}, true]]", words.join(", ")), &texts),
            (format!("Array[Enum[{}]]", words.join(", ")), &texts),
            (format!("Array[Variant[{}]]", words.join(", ")), &texts),
            (format!("Array[Struct[{{{}}}]]", keys.join(", ")), &maps),
        ] {
            let data_type: DataType = data_type.parse().unwrap();
            // Until nothing is left, each is right; then the answer is not known.
            let verdict = has_type(&data_type, value, &Aliases::new(), as_written);
            assert!(verdict != Some(true));
        }
    });
    assert!(took < Duration::from_secs(20), "{took:?}");
    // What people write is below that.
    let words: Vec<String> = (0..1_000).map(|it| format!("'w{it}'")).collect();
    let data_type: DataType = format!("Array[Enum[{}, true]]", words.join(", ")).parse().unwrap();
    let known: Value = (0..1_000).map(|it| format!("W{it}")).collect();
    assert_eq!(has_type(&data_type, &known, &Aliases::new(), as_written), Some(true));
}

#[test]
fn the_part_that_is_wrong_is_found() {
    let data_type: DataType =
        "Optional[Hash[String, Array[Struct[{port => Integer[1]}]]]]".parse().unwrap();
    let value = json!({"a": [{"port": 1}], "b": [{"port": 2}, {"port": "3"}]});
    let fault = fault_of(&data_type, &value, &Aliases::new(), as_written).unwrap();
    assert_eq!(
        (fault.path.as_str(), fault.wanted.to_string()),
        (".b[1].port", "Integer[1]".into())
    );
    assert_eq!(fault.found, json!("3"));
}

#[test]
fn settings_of_an_environment_are_read() {
    let settings = environment_settings(
        "# modulepath = x\nmodulepath = site-modules:modules:$basemodulepath # ours first\nmanifest=manifests/site.pp\nconfig_version = 'x'\n",
    );
    assert_eq!(settings.modules, ["site-modules", "modules", "$basemodulepath"]);
    assert_eq!(settings.manifests, "manifests/site.pp");
    let default = environment_settings("");
    assert_eq!(default.modules, ["modules", "$basemodulepath"]);
}

#[test]
fn modules_of_a_puppetfile_that_are_not_there_are_named() {
    let text = indoc! {r#"
        forge 'https://x'
        mod 'puppetlabs-stdlib', '9.0.0'
        mod "puppetlabs/apache"
          mod('ours',
          git: 'x')
        # mod 'no'
        moduledir 'x'
    "#};
    let missing = missing_modules(text, |module| module == "stdlib");
    assert_eq!(missing, ["puppetlabs/apache", "ours"]);
}

proptest! {
    /// No text makes the reader stop the program or run for ever.
    #[test]
    fn any_text_is_read_or_refused(parts in proptest::collection::vec(prop_oneof![
        Just("class a"), Just("("), Just(")"), Just("{"), Just("}"), Just("["), Just("]"),
        Just("\""), Just("'"), Just("${"), Just("$x"), Just("@("), Just("@(E)\n"), Just("\nE\n"),
        Just("/"), Just("/*"), Just("*/"), Just("#"), Just("\n"), Just("\\"), Just("="),
        Just("=>"), Just(","), Just("Integer["), Just("1.5e"), Just("é\u{2028}"), Just("::"),
        Just(" "), Just("type A = "), Just("inherits b"), Just("-"), Just("\\u{"), Just("|"),
    ], 0..40)) {
        let text = parts.concat();
        if let Ok(code) = read(&text) {
            for parameter in code.classes.iter().flat_map(|it| &it.parameters) {
                if let Some(data_type) = &parameter.data_type {
                    let again = data_type.to_string().parse::<DataType>();
                    prop_assert_eq!(again.as_ref(), Ok(data_type));
                }
            }
        }
    }
}
