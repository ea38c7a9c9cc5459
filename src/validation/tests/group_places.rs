//! Where groups say that their parts are written, against the documents.

use std::fmt::Write as _;

use fastrand::Rng;

use crate::document::{self, Limits, Node, Span};
use crate::model::GroupId;
use crate::validation::{FileKind, GroupFile, SourceContent, SourceFile, read_file};

/// Writes a group whose keys are in any order and form.
fn random_group(random: &mut Rng, number: usize) -> String {
    let mut parts = vec![format!("name: Group é {number}\n")];
    let mut part = |random: &mut Rng, text: &str| {
        if random.bool() {
            parts.push(text.to_owned());
        }
    };
    part(random, &format!("id: 00000000-0000-4000-8000-{number:012}\n"));
    part(random, "parent: \"Ünd\"\n");
    part(random, "environment: env_1\n");
    part(random, "rule: [\"=\", [fact, é], \"日本\"] # é\n");
    part(random, "rule: [or, [\"=\", name, a], [\"=\", name, b]]\n");
    part(random, "pinned: [é1, two,\n  three, two]\n");
    part(random, "description: |\n  é\n  text\n");
    for (key, has_alone) in [("classes", true), ("config_data", true), ("variables", false)] {
        let mut names = ["b", "::a::c", "a", "c_1", "::z"];
        random.shuffle(&mut names);
        let mut text = format!("{key}:\n");
        for name in &names[..random.usize(1..5)] {
            let value = ["[1, é]", "{é: 2, a: {}}", "null", "text", "\"é\\n\""][random.usize(..5)];
            if !has_alone {
                let _infallible = writeln!(text, "  {}: {value}", name.trim_start_matches(':'));
                continue;
            }
            // No class can have a parameter with such a letter, but one may be taken out.
            let more = ["~", "{}", "", "{b: 1, \"é\": null, a: 3}"][random.usize(..4)];
            let other = if key == "classes" { "e_k" } else { "\"é k\"" };
            let _infallible = writeln!(text, "  {name}: {more}");
            for key in ["k", other, "b"].iter().take(random.usize(..4)) {
                if more.is_empty() {
                    let _infallible = writeln!(text, "    {key}: {value}");
                }
            }
        }
        part(random, &text);
    }
    random.shuffle(&mut parts);
    parts.concat()
}

/// Returns where each class, parameter, value, variable and key is written, as the group says it.
fn places_of_values(file: &GroupFile) -> Vec<(String, Option<Span>)> {
    let group = file.group().unwrap();
    let indexed = file.value_places().unwrap();
    let mut all = Vec::new();
    for (class, parameters) in &*group.classes {
        all.push((format!("class {class}"), file.class_place(class)));
        assert_eq!(indexed.class(class), file.class_place(class));
        for key in parameters.keys() {
            all.push((format!("parameter {class} {key}"), file.parameter_place(class, key)));
            assert_eq!(indexed.parameter(class, key), file.parameter_place(class, key));
            all.push((format!("value {class} {key}"), file.parameter_value_place(class, key)));
        }
    }
    for name in group.variables.keys() {
        all.push((format!("variable {name}"), file.variable_place(name)));
        assert_eq!(indexed.variable(name), file.variable_place(name));
    }
    for (class, keys) in &*group.config_data {
        for key in keys.keys() {
            all.push((format!("config {class} {key}"), file.config_data_place(class, key)));
            assert_eq!(indexed.config_data(class, key), file.config_data_place(class, key));
        }
    }
    let mut all: Vec<_> = all.into_iter().map(|(what, it)| (what, it.map(|it| it.span))).collect();
    all.sort();
    all
}

/// Returns the same as the document says it.
fn plain_places_of_values(document: &Node) -> Vec<(String, Option<Span>)> {
    let entries = |key: &str| document.get(key).map(Node::entries).unwrap_or_default();
    let mut all = Vec::new();
    for class in entries("classes") {
        let name = class.key.strip_prefix("::").unwrap_or(&class.key);
        all.push((format!("class {name}"), Some(class.key_span)));
        for it in class.value.entries() {
            all.push((format!("parameter {name} {}", it.key), Some(it.key_span)));
            all.push((format!("value {name} {}", it.key), Some(it.value.span)));
        }
    }
    all.extend(
        entries("variables").iter().map(|it| (format!("variable {}", it.key), Some(it.key_span))),
    );
    for class in entries("config_data") {
        let name = class.key.strip_prefix("::").unwrap_or(&class.key);
        let keys = class.value.entries().iter();
        all.extend(keys.map(|it| (format!("config {name} {}", it.key), Some(it.key_span))));
    }
    all.sort();
    all
}

#[test]
fn groups_say_where_their_parts_are_written() {
    let mut random = Rng::with_seed(5);
    let (mut valid, mut values, mut pinned) = (0, 0, 0);
    for _ in 0..400 {
        let documents: Vec<String> =
            (0..random.usize(1..4)).map(|it| random_group(&mut random, it)).collect();
        let text = documents.join("---\n");
        let content = SourceContent::Bytes(text.as_bytes().into());
        let file = SourceFile { path: "groups/a.yaml".into(), content };
        let reading = read_file(&file, FileKind::Groups);
        let contents = document::read(text.as_bytes(), &Limits::DEFAULT);
        assert_eq!(reading.groups().len(), contents.documents.len(), "{text}");
        for (file, document) in reading.groups().iter().zip(&contents.documents) {
            let span = |key: &str| document.get(key).map(|it| it.span);
            assert_eq!(file.place().span, document.name_span(), "{text}");
            assert_eq!(&*file.place().file, "groups/a.yaml");
            assert!(file.is_at(&file.place()));
            let parts = [
                ("id", file.id_place()),
                ("environment", file.environment_place()),
                ("parent", file.parent_place()),
                ("rule", file.rule_place()),
            ];
            for (key, place) in parts {
                assert_eq!(place.map(|it| it.span), span(key), "{key}: {text}");
            }
            if file.group().is_none() {
                continue;
            }
            valid += 1;
            let plain = plain_places_of_values(document);
            values += plain.len();
            assert_eq!(places_of_values(file), plain, "{text}");
            // Pins of the root group are a fault, and no part of its rule.
            let pins = document.get("pinned").filter(|_| file.id() != Some(GroupId::ROOT));
            let pins = pins.map(Node::elements).unwrap_or_default();
            let written: Vec<Span> = file.pin_places().map(|it| it.span).collect();
            assert_eq!(written, pins.iter().map(|it| it.span).collect::<Vec<_>>(), "{text}");
            pinned += pins.len();
            for name in ["é1", "two", "three", "a", "b", "日本"] {
                let first = pins.iter().find(|it| it.as_str() == Some(name)).map(|it| it.span);
                assert_eq!(file.pin_place(name).map(|it| it.span), first, "{name}: {text}");
            }
        }
    }
    assert!(valid > 200 && values > 2000 && pinned > 100, "{valid} {values} {pinned}");
}

/// So many values that to find each by a walk over those before it takes minutes.
#[test]
fn many_values_of_one_group_have_their_places() {
    const VALUES: usize = 75_000;
    let mut text = "name: A\nvariables:\n".to_owned();
    for number in 0..VALUES {
        let _infallible = writeln!(text, "  v{number}: 1");
    }
    let content = SourceContent::Bytes(text.as_bytes().into());
    let file = SourceFile { path: "groups/a.yaml".into(), content };
    let reading = read_file(&file, FileKind::Groups);
    let [file] = reading.groups() else { panic!("{text:.100}") };
    let places = file.value_places().unwrap();
    for number in 0..VALUES {
        let place = places.variable(&format!("v{number}").parse().unwrap()).unwrap();
        assert_eq!(place.span.start.line as usize, number + 3);
    }
}
