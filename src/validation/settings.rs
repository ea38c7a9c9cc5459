//! Reading `clade.yaml`.

use std::sync::Arc;

use super::daemon_settings::DAEMON_SETTINGS;
use super::file_reader::{FileReader, has_misspelt};
use super::individual::single;
use super::layout::{Layout, Strictness, ValidationPolicy};
use super::reading::{FileParts, FileReading, read_file};
use super::schema_settings::read_schemas;
use super::source::{FileKind, SourceContent, SourceFile};
use crate::diagnostic::Kind;
use crate::document::{self, Content, Entry, Limits, Node};
use crate::model::{Budget, Interpolation, Meter};

/// The keys of the file.
pub const SETTINGS_KEYS: &[&str] = &[
    "groups",
    "nodes",
    "environments",
    "tests",
    "policy",
    "allow_empty",
    "interpolate",
    "schemas",
];

const POLICY: &[&str] = &[
    "missing_referents",
    "potential_conflicts",
    "require_ids",
    "require_description",
    "unmatched_groups",
    "redundant_values",
    "repeated_rules",
    "untested_groups",
    "stale_pins",
    "stale_pin_days",
    "too_many_pins",
    "max_pins",
    "catalogue_mismatches",
];

/// The largest number that a policy may name.
const LARGEST: u32 = 10_000;

/// Reads the layout and policy of a repository from its `clade.yaml`, if it has one.
pub fn read_layout(files: &[SourceFile]) -> (Layout, Option<FileReading>) {
    let mut layout = Layout::default();
    let named = |name: &str| files.iter().find(|it| it.path.as_ref() == name);
    let Some(file) = named("clade.yaml").or_else(|| named("clade.yml")) else {
        return (layout, None);
    };
    let mut reading = read_file(file, FileKind::Settings);
    if let SourceContent::Bytes(bytes) = &file.content {
        let mut contents = document::read(bytes, &Limits::DEFAULT);
        let meter = Arc::new(Meter::new(Budget::DEFAULT));
        let mut reader = FileReader::new(Arc::clone(&file.path), &meter);
        reader.note_places(contents.faults.iter().filter(|it| FileKind::Settings.counts(it)));
        match single(&mut contents.documents, &mut reader) {
            Some(document) => read_document(document, &mut layout, &mut reader),
            None if reader.faults.is_empty() => {}
            None => switch_off(&mut layout.policy),
        }
        let more = reader.diagnostics.into_iter().map(Arc::new);
        reading.diagnostics = reading.diagnostics.into_iter().chain(more).collect();
        reading.parts = FileParts::Nothing;
    }
    (layout, Some(reading))
}

fn read_document(document: &Node, layout: &mut Layout, reader: &mut FileReader) {
    if reader.document(document, "`clade.yaml`", SETTINGS_KEYS, &of_daemon).is_none() {
        return switch_off(&mut layout.policy);
    }
    for (key, directory) in [
        ("groups", &mut layout.groups),
        ("nodes", &mut layout.nodes),
        ("environments", &mut layout.environments),
        ("tests", &mut layout.tests),
    ] {
        let Some(node) = document.get(key) else { continue };
        let Some(path) = reader.text(node, format_args!("`{key}`")) else { continue };
        let path = path.trim_end_matches('/');
        if path.is_empty()
            || path.starts_with('/')
            || path.split('/').any(|it| matches!(it, "" | "." | ".."))
        {
            let message = format!("`{path}` is not a directory below the root of the repository");
            reader.add(Kind::SchemaViolation, node.span, message);
        } else {
            path.clone_into(directory);
        }
    }
    if let Some(node) = document.get("allow_empty") {
        let flag = reader.boolean(node, format_args!("`allow_empty`"));
        layout.allow_empty = flag.unwrap_or(layout.allow_empty);
    }
    if let Some(node) = document.get("interpolate") {
        layout.interpolation = match reader.boolean(node, format_args!("`interpolate`")) {
            Some(true) => Interpolation::On,
            Some(false) | None => Interpolation::Off,
        };
    }
    if let Some(schemas) = document.get("schemas") {
        layout.schemas = read_schemas(schemas, reader);
    }
    if is_unknown(document, "policy", SETTINGS_KEYS, reader) {
        switch_off(&mut layout.policy);
    }
    if let Some(policy) = document.get("policy") {
        read_policy(policy, &mut layout.policy, reader);
    }
}

/// Says of a setting of the daemon that it belongs in another file, which may have the same name.
fn of_daemon(entry: &Entry) -> Option<String> {
    let name = entry.key.replace('_', "-");
    DAEMON_SETTINGS.contains(&name.as_str()).then(|| {
        "it is a setting of `clade serve`: it belongs in the file that `--config` names, which is another one".to_owned()
    })
}

/// Switches the policies off that are on where none is written: which they are could not be read, and that is said.
fn switch_off(policy: &mut ValidationPolicy) {
    policy.missing_referents = Strictness::Off;
    policy.potential_conflicts = Strictness::Off;
}

/// Returns whether it is not known which value a key has, as it is set twice, merged or misspelt.
fn is_unknown(mapping: &Node, key: &str, known: &[&str], reader: &FileReader) -> bool {
    match mapping.entry(key) {
        Some(entry) => reader.doubts.cover(entry.key_span),
        None => reader.merges(mapping, key) || has_misspelt(mapping, key, known),
    }
}

fn read_policy(node: &Node, policy: &mut ValidationPolicy, reader: &mut FileReader) {
    if reader.mapping(node, "`policy`", POLICY).is_none() {
        return switch_off(policy);
    }
    for (key, strictness) in [
        ("missing_referents", &mut policy.missing_referents),
        ("potential_conflicts", &mut policy.potential_conflicts),
        ("unmatched_groups", &mut policy.groups.unmatched_groups),
        ("redundant_values", &mut policy.groups.redundant_values),
        ("repeated_rules", &mut policy.groups.repeated_rules),
        ("untested_groups", &mut policy.groups.untested_groups),
        ("stale_pins", &mut policy.groups.stale_pins),
        ("too_many_pins", &mut policy.groups.too_many_pins),
        ("catalogue_mismatches", &mut policy.groups.catalogue_mismatches),
    ] {
        if is_unknown(node, key, POLICY, reader) {
            *strictness = Strictness::Off;
            continue;
        }
        let Some(node) = node.get(key) else { continue };
        match node.as_str() {
            Some("error") => *strictness = Strictness::Error,
            Some("warn") => *strictness = Strictness::Warn,
            Some("off") => *strictness = Strictness::Off,
            _ => {
                // By default some are errors, of which there may be many.
                *strictness = Strictness::Off;
                let message = format!("`{key}` must be `error`, `warn` or `\"off\"`");
                reader.add(Kind::SchemaViolation, node.span, message);
            }
        }
    }
    for (key, number) in [
        ("stale_pin_days", &mut policy.groups.stale_pin_days),
        ("max_pins", &mut policy.groups.max_pins),
    ] {
        let Some(node) = node.get(key) else { continue };
        match whole_number(node).filter(|it| (1..=LARGEST).contains(it)) {
            Some(written) => *number = written,
            None => {
                let message = format!("`{key}` must be a whole number from 1 to {LARGEST}");
                reader.add(Kind::SchemaViolation, node.span, message);
            }
        }
    }
    for (key, flag) in [
        ("require_ids", &mut policy.require_ids),
        ("require_description", &mut policy.require_description),
    ] {
        if let Some(node) = node.get(key) {
            *flag = reader.boolean(node, format_args!("`{key}`")).unwrap_or(*flag);
        }
    }
}

fn whole_number(node: &Node) -> Option<u32> {
    match &node.content {
        Content::Scalar(value) => u32::try_from(value.as_u64()?).ok(),
        _ => None,
    }
}
