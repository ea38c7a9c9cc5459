//! Values held to the schemas of the repository, and what is wrong with such schemas.

use std::fmt::Write as _;
use std::sync::Arc;

use super::*;
use crate::model::{Budget, Meter};

const GROUP_SCHEMA: &str = indoc! {r#"
    {
      "$schema": "http://json-schema.org/draft-07/schema#",
      "title": "Groups of this site",
      "type": "object",
      "required": ["description"],
      "properties": {
        "description": {
          "type": "string",
          "pattern": "^Owner: ",
          "x-clade-message": "every group names its owner"
        },
        "variables": {
          "properties": {
            "site": {
              "title": "Site",
              "description": "one of our data centres",
              "enum": ["munich", "berlin", "vienna"]
            }
          }
        },
        "classes": {
          "properties": {"profile::web": {"$ref": "web.yaml#/definitions/web"}}
        }
      }
    }
"#};

const WEB_SCHEMA: &str = indoc! {"
    definitions:
      web:
        additionalProperties: false
        properties:
          port: {$ref: '#/definitions/port'}
          aliases: {type: array, items: {format: hostname}, uniqueItems: true}
          tls: {anyOf: [{type: boolean}, {type: object, required: [key]}]}
      port:
        type: integer
        minimum: 1
        maximum: 65535
"};

/// Writes everything about findings, help and related places on lines of their own.
fn report(files: &[(&str, &str)]) -> String {
    let mut text = String::new();
    for found in checked(files).diagnostics {
        let start = found.place.span.start;
        let (file, kind, message) = (&found.place.file, found.kind, &found.message);
        writeln!(text, "{file}:{}:{} {kind}: {message}", start.line, start.column).unwrap();
        for place in related(&found) {
            writeln!(text, "   at {place}").unwrap();
        }
        if let Some(help) = &found.help {
            writeln!(text, "   help: {help}").unwrap();
        }
    }
    text
}

const SETTINGS: &str = "schemas: {group: schemas/group.json}\n";

#[test]
fn a_group_is_held_to_its_schema_as_the_api_shows_it() {
    let web = indoc! {"
        name: Web
        description: Serves pages
        rule: os.family = Debian
        classes:
          '::profile::web': {port: 70000, aliases: [a.example.com, -x, -x], tls: 5, prot: 80}
        variables: {site: munch}
        ---
        name: Db
        classes: {profile::web: {port: \"80\", tls: {}}}
        ---
        name: Good
        description: 'Owner: web team'
        classes: {profile::web: {port: 443, tls: true}}
        variables: {site: berlin}
    "};
    insta::assert_snapshot!(report(&[
        ("clade.yaml", SETTINGS),
        ("schemas/group.json", GROUP_SCHEMA),
        ("schemas/web.yaml", WEB_SCHEMA),
        ("groups/web.yaml", web),
    ]), @r#"
    groups/web.yaml:2:14 schema-violation: every group names its owner
       at schemas/group.json:9:7 asked for by #/properties/description/pattern
       help: `description`: `Serves pages` does not match `^Owner: `
    groups/web.yaml:5:28 schema-violation: `port`: `70000` is more than 65535
       at schemas/web.yaml:11:5 asked for by #/definitions/port/maximum
    groups/web.yaml:5:44 schema-violation: `aliases`: an element stands in the list twice
       at schemas/web.yaml:6:57 asked for by #/definitions/web/properties/aliases/uniqueItems
    groups/web.yaml:5:60 schema-violation: `aliases[1]`: `-x` is not of the format `hostname`
       at schemas/web.yaml:6:38 asked for by #/definitions/web/properties/aliases/items/format
    groups/web.yaml:5:64 schema-violation: `aliases[2]`: `-x` is not of the format `hostname`
       at schemas/web.yaml:6:38 asked for by #/definitions/web/properties/aliases/items/format
    groups/web.yaml:5:74 schema-violation: `tls`: none of the alternatives fits: expected a boolean, found the number 5; or expected a mapping, found the number 5
       at schemas/web.yaml:7:13 asked for by #/definitions/web/properties/tls/anyOf
    groups/web.yaml:5:77 schema-violation: `profile::web`: unknown key `prot`
       at schemas/web.yaml:3:5 asked for by #/definitions/web/additionalProperties
       help: did you mean `port`?
    groups/web.yaml:6:19 schema-violation: `site`: `munch` is not one of `munich`, `berlin`, `vienna`
       at schemas/group.json:17:11 asked for by #/properties/variables/properties/site/enum
       help: did you mean `munich`? Site: one of our data centres
    groups/web.yaml:8:7 schema-violation: the key `description` is missing
       at schemas/group.json:5:3 asked for by #/required
       help: Groups of this site
    groups/web.yaml:9:32 schema-violation: `port`: expected an integer, found the string `80`
       at schemas/web.yaml:9:5 asked for by #/definitions/port/type
       help: write it without quotes: 80
    groups/web.yaml:9:43 schema-violation: `tls`: none of the alternatives fits: expected a boolean, found a mapping; or the key `key` is missing
       at schemas/web.yaml:7:13 asked for by #/definitions/web/properties/tls/anyOf
    "#);
}

#[test]
fn own_values_are_held_to_schemas_by_class() {
    let settings = indoc! {"
        schemas:
          variables: own/variables.yaml
          classes: {'profile::*': own/profile.yaml, ntp: own/ntp.yaml}
          config_data: {'*': own/data.yaml}
    "};
    insta::assert_snapshot!(report(&[
        ("clade.yaml", settings),
        ("own/variables.yaml", "propertyNames: {pattern: '^[a-z]+$'}\nadditionalProperties: {type: string}\n"),
        ("own/profile.yaml", "required: [owner]\n"),
        ("own/ntp.yaml", "properties: {servers: {minItems: 3}}\n"),
        ("own/data.yaml", "properties: {port: {multipleOf: 2}}\n"),
        ("groups/a.yaml", "name: A\nvariables: {Bad: x, n: 1}\nclasses:\n  profile::a:\n  profile::b: {owner: me}\n  ntp: {servers: [a, b]}\n"),
        ("groups/b.yaml", "name: B\nparent: A\nconfig_data: {ntp: {port: 3}}\n"),
        ("nodes/n.example.com.yaml", "variables: {a: [1]}\nclasses: {profile::x: {}}\nconfig_data:\n  x:\n    port: 5\n"),
        ("nodes/m.example.com.yaml", "variables: {a: b}\n"),
    ]), @r#"
    groups/a.yaml:2:13 schema-violation: `variables`: the key `Bad`: `Bad` does not match `^[a-z]+$`
       at own/variables.yaml:1:17 asked for by #/propertyNames/pattern
    groups/a.yaml:2:13 suspicious-value: no Puppet code can read a variable `Bad`
       help: begin with a lowercase letter or `_`, and go on with letters, digits and `_`
    groups/a.yaml:2:24 schema-violation: `n`: expected a string, found the number 1
       at own/variables.yaml:2:24 asked for by #/additionalProperties/type
       help: put it in quotes: "1"
    groups/a.yaml:4:3 schema-violation: `profile::a`: the key `owner` is missing
       at own/profile.yaml:1:1 asked for by #/required
    groups/a.yaml:6:18 schema-violation: `servers`: there are 2 elements, at least 3 are expected
       at own/ntp.yaml:1:24 asked for by #/properties/servers/minItems
    groups/b.yaml:3:27 schema-violation: `port`: `3` is not a multiple of 2
       at own/data.yaml:1:21 asked for by #/properties/port/multipleOf
    nodes/n.example.com.yaml:1:16 schema-violation: `a`: expected a string, found a list
       at own/variables.yaml:2:24 asked for by #/additionalProperties/type
    nodes/n.example.com.yaml:2:11 schema-violation: `profile::x`: the key `owner` is missing
       at own/profile.yaml:1:1 asked for by #/required
    nodes/n.example.com.yaml:5:11 schema-violation: `port`: `5` is not a multiple of 2
       at own/data.yaml:1:21 asked for by #/properties/port/multipleOf
    "#);
}

#[test]
fn a_schema_that_is_none_is_found_where_it_is_wrong() {
    let settings = indoc! {"
        schemas:
          group: schemas/none.json
          variables: ../outside.json
          classes: {a: schemas/list.yaml, b: schemas/type.json, c: schemas/broken.json, d: schemas/text.txt}
          config_data: {a: schemas/draft.json, b: schemas/references.yaml, c: schemas/pattern.json, d: schemas/twice.json}
          pattern: x
    "};
    insta::assert_snapshot!(report(&[
        ("clade.yaml", settings),
        ("schemas/list.yaml", "- a\n"),
        ("schemas/type.json", "{\n  \"properties\": {\n    \"a\": {\"type\": \"strin\"}\n  }\n}\n"),
        ("schemas/broken.json", "{\n  \"type\": \"string\",\n}\n"),
        ("schemas/draft.json", "{\"$schema\": \"https://example.com/draft\"}"),
        ("schemas/references.yaml", indoc! {"
            allOf:
            - $ref: missing.json
            - $ref: ../../etc/passwd.json
            - $ref: https://example.com/schema.json
            - $ref: '#/definitions/none'
            - $ref: '#none'
        "}),
        ("schemas/pattern.json", "{\"patternProperties\": {\"(?=a)b\": true}, \"items\": {\"pattern\": \"(a\"}}"),
        ("schemas/twice.json", "{\"type\": \"string\", \"type\": \"number\"}"),
        ("groups/a.yaml", "name: A\n"),
    ]), @r#"
    clade.yaml:2:10 invalid-schema: there is no file `schemas/none.json`
    clade.yaml:3:14 invalid-schema: `../outside.json` is not a file below the root of the repository
    clade.yaml:4:84 invalid-schema: `schemas/text.txt`: the name of a schema ends in .json, .yaml or .yml
    clade.yaml:6:3 schema-violation: unknown key `pattern` in `schemas`
       help: the keys are `group`, `variables`, `classes`, `config_data`
    schemas/broken.json:3:1 invalid-schema: the file is not JSON: trailing comma
    schemas/draft.json:1:13 invalid-schema: unknown `$schema` `https://example.com/draft`
       help: the drafts are 4, 6, 7, 2019-09 and 2020-12; without `$schema` it is 2020-12
    schemas/list.yaml:1:1 invalid-schema: a schema: expected a mapping or a boolean, found a list
    schemas/pattern.json:1:24 invalid-schema: the pattern `(?=a)b` cannot be used
       help: it is not a regular expression, is too large, or has a look-around or a back reference, which no engine matches in linear time
    schemas/pattern.json:1:51 invalid-schema: the pattern `(a` cannot be used
       help: it is not a regular expression, is too large, or has a look-around or a back reference, which no engine matches in linear time
    schemas/references.yaml:2:9 invalid-schema: there is no file `schemas/missing.json`
    schemas/references.yaml:3:9 invalid-schema: `../../etc/passwd.json` leads out of the repository
    schemas/references.yaml:4:9 invalid-schema: `https://example.com/schema.json` is not a schema of this repository
       help: nothing is fetched: put the schema into the repository, and write its path from here
    schemas/references.yaml:5:9 invalid-schema: `#/definitions/none` leads nowhere: the schema has no such part
    schemas/references.yaml:6:9 invalid-schema: `#none` leads nowhere: the schema has no such part
    schemas/twice.json:1:20 invalid-schema: key `type` is set twice
       help: keep one of the two
    schemas/type.json:3:19 invalid-schema: not a schema: none of the alternatives fits: `strin` is not one of `array`, `boolean`, `integer`, `null`, `number`, `object`, `string`; or expected a list, found the string `strin`
    "#);
}

#[test]
fn references_that_lead_back_to_themselves_are_found_once() {
    insta::assert_snapshot!(report(&[
        ("clade.yaml", "schemas: {group: a.json, variables: b.yaml}\n"),
        ("a.json", "{\"allOf\": [{\"$ref\": \"b.yaml\"}]}"),
        ("b.yaml", "anyOf:\n- type: object\n- $ref: a.json\n"),
        ("groups/a.yaml", "name: A\n"),
    ]), @r#"
    a.json:1:21 invalid-schema: the reference leads back to itself for the same value
       at b.yaml:3:3 through this one
       help: a schema may refer to itself for what is inside of a value, not for the value
    "#);
}

#[test]
fn a_schema_in_a_schema_may_refer_to_the_whole() {
    let tree = indoc! {"
        $id: https://example.com/schemas/tree.json
        type: object
        properties:
          children: {type: array, items: {$ref: '#'}}
          leaf: {$ref: leaf.json}
        additionalProperties: false
    "};
    insta::assert_snapshot!(report(&[
        ("clade.yaml", "schemas: {classes: {tree: s/tree.yaml}}\n"),
        ("s/tree.yaml", tree),
        ("s/leaf.json", "{\"$id\": \"https://example.com/schemas/leaf.json\",\t\"const\": \"\\u00fc\\/\\ud83d\\ude00\"}"),
        ("groups/a.yaml", "name: A\nclasses:\n  tree: {children: [{children: []}, {children: [{leaf: x}]}, {leaf: 'ü/😀', x: 1}]}\n"),
    ]), @r#"
    groups/a.yaml:3:56 schema-violation: `leaf`: `x` is not `ü/😀`
       at s/leaf.json:1:50 asked for by #/const
    groups/a.yaml:3:76 schema-violation: `children[2]`: unknown key `x`
       at s/tree.yaml:6:1 asked for by #/additionalProperties
       help: the keys are `children`, `leaf`
    "#);
}

#[test]
fn every_draft_is_read() {
    for (draft, less_than_five) in [
        ("http://json-schema.org/draft-04/schema#", r#""exclusiveMaximum": true, "maximum": 5"#),
        ("http://json-schema.org/draft-06/schema#", r#""exclusiveMaximum": 5"#),
        (
            "http://json-schema.org/draft-07/schema#",
            r#""if": {"type": "integer", "minimum": 5}, "then": false"#,
        ),
        (
            "https://json-schema.org/draft/2019-09/schema",
            r##""$recursiveAnchor": true, "$ref": "#/$defs/n", "$defs": {"n": {"exclusiveMaximum": 5}}"##,
        ),
        (
            "https://json-schema.org/draft/2020-12/schema",
            r##""$dynamicRef": "#n", "$defs": {"n": {"$dynamicAnchor": "n", "exclusiveMaximum": 5}}"##,
        ),
    ] {
        let whole =
            format!(r#"{{"$schema": "{draft}", "properties": {{"a": {{"$ref": "n.json"}}}}}}"#);
        let number = format!(r#"{{"$schema": "{draft}", {less_than_five}}}"#);
        for (value, findings) in [("4", 0), ("5", 1), ("text", 0)] {
            let group = format!("name: A\nvariables: {{a: {value}}}\n");
            let files = [
                ("clade.yaml", "schemas: {variables: s.json}\n"),
                ("s.json", whole.as_str()),
                ("n.json", number.as_str()),
                ("groups/a.yaml", group.as_str()),
            ];
            let found = report(&files);
            let kinds = found.matches("schema-violation").count();
            assert_eq!(kinds, findings, "{draft}: {value}: {found}");
            assert_eq!(found.matches("invalid-schema").count(), 0, "{draft}: {found}");
        }
    }
}

/// Returns what is found of a schema that is meant to cost much, for a value that is nested.
fn report_of_bomb(schema: &str, levels: usize) -> String {
    let value = format!("{}1{}", "{a: ".repeat(levels), "}".repeat(levels));
    let group = format!("name: A\nclasses: {{c: {{a: {value}}}}}\n");
    report(&[
        ("clade.yaml", "schemas: {classes: {c: s.json}}\n"),
        ("s.json", schema),
        ("groups/a.yaml", &group),
    ])
}

#[test]
fn a_schema_that_costs_too_much_is_not_used() {
    // Each definition is all of the next one, twice: 2^40 checks of one value.
    let twice = |from: usize| {
        format!(
            r##""d{from}": {{"allOf": [{{"$ref": "#/d/d{0}"}}, {{"$ref": "#/d/d{0}"}}]}}"##,
            from + 1
        )
    };
    let doubling: Vec<String> = (0..40).map(twice).collect();
    let doubling = format!(
        r##"{{"$ref": "#/d/d0", "d": {{{}, "d40": {{"type": "object"}}}}}}"##,
        doubling.join(", ")
    );
    insta::assert_snapshot!(report_of_bomb(&doubling, 1), @r#"
    s.json:1:1 invalid-schema: the schema takes too long: it checks one value more than 2000 times, or through more than 400 schemas
       help: refer to the same schema less often
    "#);
    // A chain is as deep as it has links.
    let link =
        |from: usize| format!(r##""d{from}": {{"allOf": [{{"$ref": "#/d/d{}"}}]}}"##, from + 1);
    let chain: Vec<String> = (0..5_000).map(link).collect();
    let chain = format!(r##"{{"$ref": "#/d/d0", "d": {{{}, "d5000": {{}}}}}}"##, chain.join(", "));
    insta::assert_snapshot!(report_of_bomb(&chain, 1), @r#"
    s.json:1:1 invalid-schema: the schema takes too long: it checks one value more than 2000 times, or through more than 400 schemas
       help: refer to the same schema less often
    "#);
    // Twice for each level of a value: how deep it is decides.
    let by_level = r##"{"allOf": [{"properties": {"a": {"$ref": "#"}}}, {"properties": {"a": {"$ref": "#"}}}]}"##;
    insta::assert_snapshot!(report_of_bomb(by_level, 3), @"");
    insta::assert_snapshot!(report_of_bomb(by_level, 50), @r#"
    groups/a.yaml:2:14 schema-violation: `c`: lists and mappings are nested over 8 deep, which takes this schema too long
       at s.json:1:1 asked for by #
       help: nest the value less, or simplify what refers to itself in the schema
    "#);
    // One of many for each element.
    let one = |number: u32| format!(r#"{{"const": {number}}}"#);
    let many: Vec<String> = (0..2_000).map(one).collect();
    let flat = format!(r#"{{"additionalProperties": {{"oneOf": [{}]}}}}"#, many.join(", "));
    insta::assert_snapshot!(report_of_bomb(&flat, 2), @r#"
    groups/a.yaml:2:14 schema-violation: `c`: this schema takes too long for what is in a list or mapping
       at s.json:1:1 asked for by #
       help: have fewer alternatives in the schema
    "#);
    // Once for each level.
    let plain = r##"{"properties": {"a": {"anyOf": [{"$ref": "#"}, {"type": "integer"}]}}}"##;
    insta::assert_snapshot!(report_of_bomb(plain, 50), @"");
}

/// Each value is one of several thousands that a schema names at its level, of which others ask nothing.
#[test]
fn the_breadth_of_a_schema_costs_nothing() {
    let each = |write: &dyn Fn(usize) -> String| -> String {
        (0..2_100).map(write).collect::<Vec<_>>().join(", ")
    };
    let integers = each(&|it| format!(r#""k{it}": {{"type": "integer"}}"#));
    let integers = format!(r#"{{"properties": {{{integers}}}}}"#);
    // Every key has another schema for the same key below it.
    let shared = each(&|it| {
        format!(
            r#""k{it}": {{"properties": {{"a": {{"const": {it}}}}}, "additionalProperties": false}}"#
        )
    });
    let shared = format!(r#"{{"properties": {{{shared}}}}}"#);
    let recursive = each(&|it| format!(r##""k{it}": {{"$ref": "#"}}"##));
    let recursive = format!(r#"{{"properties": {{{recursive}}}, "type": ["object", "integer"]}}"#);
    let list = each(&|it| format!(r#"{{"const": {it}}}"#));
    let list = format!(r#"{{"properties": {{"a": {{"prefixItems": [{list}]}}}}}}"#);
    for (schema, good, bad) in [
        (&integers, "{k2099: 1}", "{k2099: x}"),
        (&shared, "{k2099: {a: 2099}}", "{k2099: {a: 2098}}"),
        (&recursive, "{k1: {k2: {k3: {k2099: 1}}}}", "{k1: {k2: {k3: {k2099: x}}}}"),
        (&list, "{a: [0, 1, 2]}", "{a: [0, 1, 3]}"),
    ] {
        for (value, findings) in [(good, 0), (bad, 1)] {
            let group = format!("name: A\nclasses: {{c: {value}}}\n");
            let found = report(&[
                ("clade.yaml", "schemas: {classes: {c: s.json}}\n"),
                ("s.json", schema.as_str()),
                ("groups/a.yaml", &group),
            ]);
            assert_eq!(found.matches("schema-violation").count(), findings, "{value}: {found}");
            assert!(!found.contains("too long"), "{value}: {found}");
        }
    }
}

#[test]
fn what_costs_too_much_is_found_behind_what_is_broad() {
    // Thousands of keys at each of two levels, and below each all of two others, twice for each level.
    let keys: Vec<String> = (0..300)
        .map(|it| {
            format!(
                r##""k{it}": {{"allOf": [{{"$ref": "#/d/{it}"}}, {{"$ref": "#/d/{}"}}], "const": {it}}}"##,
                (it + 1) % 300
            )
        })
        .collect();
    let all: Vec<String> = (0..300)
        .map(|it| format!(r##""{it}": {{"properties": {{"a": {{"$ref": "#"}}}}}}"##))
        .collect();
    let schema =
        format!(r#"{{"properties": {{{}}}, "d": {{{}}}}}"#, keys.join(", "), all.join(", "));
    let nested = |levels: usize| format!("{}1{}", "{k1: {a: ".repeat(levels), "}}".repeat(levels));
    let found = |levels: usize| {
        let group = format!("name: A\nclasses: {{c: {}}}\n", nested(levels));
        report(&[
            ("clade.yaml", "schemas: {classes: {c: s.json}}\n"),
            ("s.json", &schema),
            ("groups/a.yaml", &group),
        ])
    };
    assert!(!found(2).contains("too long"), "{}", found(2));
    assert!(found(20).contains("which takes this schema too long"), "{}", found(20));
}

#[test]
fn a_few_of_many_alternatives_are_put_into_words() {
    let mut alternatives = vec![r#"{"type": "integer"}"#.to_owned(); 1_500];
    alternatives.extend((0..100).map(|it| format!(r#"{{"const": {it}}}"#)));
    let words = |alternatives: &[String]| {
        let schema =
            format!(r#"{{"properties": {{"a": {{"oneOf": [{}]}}}}}}"#, alternatives.join(", "));
        report(&[
            ("clade.yaml", "schemas: {variables: s.json}\n"),
            ("s.json", &schema),
            ("groups/a.yaml", "name: A\nvariables: {a: x}\n"),
        ])
    };
    let found = words(&alternatives);
    assert!(found.contains("none of the alternatives fits: expected an integer"), "{found}");
    assert!(!found.contains("is not `0`"), "{found}");
    alternatives.reverse();
    let found = words(&alternatives);
    assert!(found.contains("`x` is not `99`; or `x` is not `98`"), "{found}");
    assert_eq!(found.matches("; or ").count(), 7, "{found}");
}

#[test]
fn what_is_affordable_fits_on_the_stack() {
    // A chain of as many schemas as may be, for a value that is as deep as may be.
    let link = |from: usize| {
        let to = if from % 6 == 5 {
            format!(r##""properties": {{"a": {{"$ref": "#/d/d{}"}}}}"##, (from + 1) % 6)
        } else {
            format!(r##""allOf": [{{"$ref": "#/d/d{}"}}]"##, from + 1)
        };
        format!(r#""d{from}": {{{to}, "not": {{"const": 5}}}}"#)
    };
    let schema = |links: usize| {
        let links: Vec<String> = (0..links).map(link).collect();
        format!(r##"{{"$ref": "#/d/d0", "d": {{{}}}}}"##, links.join(", "))
    };
    let found = report_of_bomb(&schema(6), 29);
    assert_eq!(found, "");
    let found = report_of_bomb(&schema(6), 50);
    assert!(found.contains("which takes this schema too long"), "{found}");
    let fault = report_of_bomb(&schema(6).replace(r#""const": 5"#, r#""const": 1"#), 29);
    assert!(fault.contains("`a`: `1` is what must not be here"), "{fault}");
    let nested = format!("{}{{}}{}", r#"{"not": "#.repeat(62), "}".repeat(62));
    assert_eq!(report_of_bomb(&nested, 1), "");
    let deeper = format!("{}{{}}{}", r#"{"not": "#.repeat(200), "}".repeat(200));
    assert!(report_of_bomb(&deeper, 1).starts_with("s.json:1:"), "{}", report_of_bomb(&deeper, 1));
}

#[test]
fn a_schema_that_names_thousands_of_others_is_not_followed() {
    let references: Vec<String> =
        (0..5_000).map(|it| format!(r#"{{"$ref": "https://example.com/{it}"}}"#)).collect();
    let found = report_of_bomb(&format!(r#"{{"anyOf": [{}]}}"#, references.join(", ")), 1);
    assert!(
        found.starts_with("s.json:1:1 invalid-schema: the schemas refer to more than 500 others")
    );
    let nowhere: Vec<String> =
        (0..5_000).map(|it| format!(r##"{{"$ref": "#/d/{it}"}}"##)).collect();
    let found = report_of_bomb(&format!(r#"{{"anyOf": [{}]}}"#, nowhere.join(", ")), 1);
    assert_eq!(found.matches("leads nowhere").count(), 200);
}

#[test]
fn a_pattern_never_takes_long() {
    let value = format!("{}!", "a".repeat(200_000));
    let group = format!("name: A\nvariables: {{a: {value}}}\n");
    let found = report(&[
        ("clade.yaml", "schemas: {variables: s.yaml}\n"),
        ("s.yaml", "additionalProperties: {pattern: '^(([a-z])+)+[A-Z]([a-z])$'}\n"),
        ("groups/a.yaml", &group),
    ]);
    assert_eq!(
        found.lines().next(),
        Some(
            "groups/a.yaml:2:16 schema-violation: `a`: the text does not match `^(([a-z])+)+[A-Z]([a-z])$`"
        )
    );
    let large = report(&[
        ("clade.yaml", "schemas: {variables: s.yaml}\n"),
        ("s.yaml", "additionalProperties: {pattern: '^(a{1000}){1000}$'}\n"),
        ("groups/a.yaml", "name: A\n"),
    ]);
    assert!(large.starts_with("s.yaml:1:24 invalid-schema: the pattern"), "{large}");
}

#[test]
fn numbers_of_any_size_are_compared() {
    let digits = "9".repeat(100_000);
    let group = format!("name: A\nvariables: {{a: {digits}, b: 1e999999999, c: -1e-999999999}}\n");
    let found = report(&[
        ("clade.yaml", "schemas: {variables: s.yaml}\n"),
        ("s.yaml", "additionalProperties: {maximum: 65535, multipleOf: 1}\n"),
        ("groups/a.yaml", &group),
    ]);
    assert!(found.contains("schema-violation: `a`: the value is more than 65535"), "{found}");
}

#[test]
fn what_is_too_large_is_said_where_it_is_named() {
    let large = format!("{{\"description\": \"{}\"}}", "x".repeat(5 << 20));
    let wide = format!("{{\"enum\": [{}0]}}", "0, ".repeat(60_000));
    insta::assert_snapshot!(report(&[
        ("clade.yaml", "schemas:\n  group: large.json\n  variables: refers.yaml\n"),
        ("large.json", &large),
        ("refers.yaml", "allOf:\n- $ref: large.json\n- $ref: wide.json\n"),
        ("wide.json", &wide),
        ("groups/a.yaml", "name: A\n"),
    ]), @r#"
    clade.yaml:2:10 invalid-schema: `large.json` is not read: all schemas have more than 4194304 bytes
    clade.yaml:3:14 invalid-schema: `refers.yaml` is not read: all schemas have more than 4194304 bytes
    "#);
}

#[test]
fn many_violations_are_counted() {
    for (violations, more) in [(6_000, "1000 errors"), (5_001, "1 error")] {
        let groups: Vec<String> =
            (0..violations).map(|it| format!("name: g{it}\nvariables: {{a: 1}}\n")).collect();
        let groups = groups.join("---\n");
        let checked = checked(&[
            ("clade.yaml", "schemas: {variables: s.yaml}\n"),
            ("s.yaml", "additionalProperties: {type: string}\n"),
            ("groups/a.yaml", &groups),
        ]);
        let last = checked.diagnostics.last().unwrap();
        assert_eq!(
            last.message,
            format!("there are more than 5000 findings: {more} and 0 warnings more are not shown")
        );
        assert_eq!(checked.diagnostics.len(), 5_001);
    }
}

#[test]
fn after_a_change_the_same_is_found_as_in_all_files() {
    let files = |group: &str| -> Vec<SourceFile> {
        [
            ("clade.yaml", "schemas: {group: s.json, classes: {ntp: ntp.json}}\n"),
            ("s.json", r#"{"required": ["description"]}"#),
            ("ntp.json", r#"{"properties": {"port": {"type": "integer"}}}"#),
            ("groups/a.yaml", group),
            ("groups/b.yaml", "name: B\nparent: A\ndescription: b\n"),
        ]
        .iter()
        .map(|(path, text)| SourceFile {
            path: Arc::from(*path),
            content: SourceContent::Bytes(text.as_bytes().into()),
        })
        .collect()
    };
    let good = "name: A\ndescription: a\nclasses: {ntp: {port: 123}}\n";
    let before = validate(&files(good), Search::Decisive);
    assert!(before.is_valid());
    for (group, is_valid) in [
        ("name: A\ndescription: b\nclasses: {ntp: {port: 124}}\n", true),
        ("name: A\nclasses: {ntp: {port: 123}}\n", false),
        ("name: A\ndescription: a\nclasses: {ntp: {port: x}}\n", false),
    ] {
        let files = files(group);
        let all = validate(&files, Search::Decisive);
        assert_eq!(all.is_valid(), is_valid, "{group}");
        let reading = Arc::new(read_file(&files[3], FileKind::Groups));
        let found = before.incremental(&[reading], &[], &Meter::new(Budget::DEFAULT));
        // An error makes a commit invalid, which is found out from all files.
        assert_eq!(found.map(|it| it.diagnostics), is_valid.then_some(all.diagnostics), "{group}");
    }
    let schema = files(good).remove(1);
    let reading = Arc::new(read_file(&schema, FileKind::Groups));
    assert!(before.incremental(&[reading], &[], &Meter::new(Budget::DEFAULT)).is_none());
}

#[test]
#[expect(clippy::disallowed_methods, reason = "it measures")]
fn many_violations_and_unknown_keys_take_a_bounded_time_and_memory() {
    let start = std::time::Instant::now();
    // Each of many values lacks each of ten keys.
    let keys: Vec<String> = (0..10).map(|it| format!("k{it}")).collect();
    let schema =
        serde_json::json!({"properties": {"x": {"items": {"required": keys}}}}).to_string();
    let group = format!("name: A\nvariables: {{x: [{}]}}\n", vec!["{}"; 100_000].join(", "));
    let of = |schema: &str, group: &str| {
        let files = [
            ("clade.yaml", "schemas: {variables: s.json}\n"),
            ("s.json", schema),
            ("groups/a.yaml", group),
        ];
        let found = checked(&files).diagnostics.into_iter();
        let found = found.filter(|it| it.kind == Kind::SchemaViolation);
        found.map(|it| it.message.clone()).collect::<Vec<_>>()
    };
    assert_eq!(
        of(&schema, &group),
        [
            "`x`: the schema does not allow it: with 100002 values, and 1 look at each at most, it takes too much memory to say where"
        ]
    );
    let few = format!("name: A\nvariables: {{x: [{}]}}\n", ["{}"; 3].join(", "));
    assert_eq!(of(&schema, &few).len(), 30);
    // Many keys that a large schema does not know.
    let known: serde_json::Map<String, serde_json::Value> = (0..11_000)
        .map(|it| (format!("known{it}"), serde_json::json!({"type": "integer"})))
        .collect();
    let schema =
        serde_json::json!({"properties": known, "additionalProperties": false}).to_string();
    let keys: Vec<String> = (0..1_000).map(|it| format!("other{it}: 1")).collect();
    let found = of(&schema, &format!("name: A\nvariables: {{{}}}\n", keys.join(", ")));
    assert_eq!(found.len(), 100);
    // Alone it takes 8 s; other threads take part, so their time on the clock is what counts.
    assert!(start.elapsed() < std::time::Duration::from_mins(5), "{:?}", start.elapsed());
}

#[test]
fn values_of_a_group_with_errors_are_held_to_their_schemas() {
    let found = |group: &str| {
        let schemas = "schemas: {group: g.json, variables: v.json, classes: {c: c.json}}\n";
        report(&[
            ("clade.yaml", schemas),
            ("g.json", r#"{"required": ["description"]}"#),
            ("v.json", r#"{"required": ["x"], "properties": {"x": {"type": "integer"}}}"#),
            ("c.json", r#"{"required": ["p"]}"#),
            ("groups/a.yaml", group),
        ])
    };
    insta::assert_snapshot!(found("name: A\nfoo: 1\nvariables: {x: text}\nclasses: {c: {q: 1}, D: {}}\n"), @r"
    groups/a.yaml:2:1 schema-violation: unknown key `foo` in a group
       help: the keys are `name`, `id`, `parent`, `environment`, `environment_trumps`, `description`, `rule`, `pinned`, `classes`, `variables`, `config_data`
    groups/a.yaml:3:16 schema-violation: `x`: expected an integer, found the string `text`
       at v.json:1:42 asked for by #/properties/x/type
    groups/a.yaml:4:22 schema-violation: `D` is not a class name: its segments start with a lowercase letter and go on with lowercase letters, digits and underscores
    ");
    let without_p = found("name: A\nid: zz\nvariables: {y: yes}\nclasses: {c: {q: 1}}\n");
    assert_eq!(without_p.matches("asked for by").count(), 1, "{without_p}");
    let rows = [
        "name: A\nid: zz\nvariables: {y: 1, <<: {x: 1}}\n",
        "name: A\nid: zz\nvariables: {y: 1}\nvariables: {x: 1}\n",
        "name: A\nid: zz\nvariables: {y: 1, facts: 1}\n",
        "name: A\nid: zz\nclasses: {c: [p]}\n",
        "name: A\nid: zz\nclasses: {c: {q: 1, q: 2}}\n",
        "name: A\nid: zz\n",
    ];
    each_row(rows, |text| {
        let found = found(text);
        assert!(!found.contains("asked for by"), "{text}{found}");
    });
}

#[test]
fn a_keyword_that_is_misspelt_is_a_warning_and_words_of_others_are_none() {
    let schema = indoc! {"
        $comment: who looks after it
        examples: [{site: munich}]
        x-owner: platform
        default: {requred: 1}
        enum: [{typ: 1}, {site: munich}]
        requred: [site]
        properties:
          typ: {typ: string}
          titel: {x-clade-mesage: one of ours, unit: metres}
        patternProperties: {requred: {}}
        $defs: {properites: {properites: {}}}
    "};
    let files = [
        ("clade.yaml", "schemas: {variables: schemas/v.yaml}\n"),
        ("schemas/v.yaml", schema),
        ("groups/a.yaml", "name: A\nrule: name = a\nvariables: {site: munich}\n"),
    ];
    let found = checked(&files);
    assert!(found.is_valid(), "{:?}", found.diagnostics);
    insta::assert_snapshot!(report(&files), @r"
    schemas/v.yaml:6:1 suspicious-value: `requred` is not a keyword of schemas, so nothing is checked by it
       help: did you mean `required`? a word of your own begins with `x-`
    schemas/v.yaml:8:9 suspicious-value: `typ` is not a keyword of schemas, so nothing is checked by it
       help: did you mean `type`? a word of your own begins with `x-`
    schemas/v.yaml:9:11 suspicious-value: `x-clade-mesage` is not a keyword of schemas, so nothing is checked by it
       help: did you mean `x-clade-message`?
    schemas/v.yaml:11:22 suspicious-value: `properites` is not a keyword of schemas, so nothing is checked by it
       help: did you mean `properties`? a word of your own begins with `x-`
    ");
}
