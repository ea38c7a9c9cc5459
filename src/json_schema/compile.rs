//! From a file to a validator.

use jsonschema::{PatternOptions, Registry, Validator};
use serde_json::{Value, json};

use super::file::{SchemaFile, invalid};
use super::graph::{Graph, SchemaPart};
use super::location::uri_of;
use super::message::problem;
use crate::diagnostic::Diagnostic;

/// How many patterns schemas may have.
const PATTERNS: usize = 200;

/// How many bytes a pattern may take.
const PATTERN_BYTES: usize = 512 << 10;

/// How many findings about one file are kept.
const FINDINGS: usize = 50;

/// Returns how patterns are matched: in linear time, whatever they are.
fn pattern_options() -> PatternOptions<jsonschema::Regex> {
    PatternOptions::regex().size_limit(PATTERN_BYTES).dfa_size_limit(PATTERN_BYTES)
}

/// Compiles the schema of a file.
///
/// # Errors
///
/// Returns what the validator does not accept.
pub(super) fn compile(
    files: &[SchemaFile],
    number: usize,
    registry: &Registry<'_>,
) -> Result<Validator, Vec<Diagnostic>> {
    let Some(file) = files.get(number) else { return Err(Vec::new()) };
    let built = jsonschema::options()
        .with_registry(registry)
        .offline()
        .with_base_uri(uri_of(&file.path))
        .with_pattern_options(pattern_options())
        .should_validate_formats(true)
        .should_ignore_unknown_formats(true)
        .build(&file.value);
    built.map_err(|error| {
        let pointer = error.instance_path().as_str().to_owned();
        let at = SchemaPart { file: number, pointer };
        let found = at.invalid(files, format!("not a schema: {}", problem(&error)));
        found.into_iter().collect()
    })
}

/// Says where files are not schemas of their drafts.
pub(super) fn faults(files: &[SchemaFile]) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for (number, file) in files.iter().enumerate() {
        let Ok(validator) = jsonschema::meta::validator_for(&file.value) else { continue };
        for error in validator.iter_errors(&file.value).take(FINDINGS) {
            let at =
                SchemaPart { file: number, pointer: error.instance_path().as_str().to_owned() };
            found.extend(at.invalid(files, format!("not a schema: {}", problem(&error))));
        }
    }
    found
}

/// Says which patterns cannot be used.
pub(super) fn pattern_faults(graph: &Graph<'_>, files: &[SchemaFile]) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for (number, (pattern, at)) in graph.patterns.iter().enumerate() {
        if number >= PATTERNS {
            let message = format!("all schemas have more than {PATTERNS} patterns");
            found.extend(at.place(files).map(|it| invalid(&it.file, it.span, message)));
            break;
        }
        let schema: Value = json!({"pattern": pattern});
        let built = jsonschema::options().with_pattern_options(pattern_options()).build(&schema);
        if built.is_err() {
            let message = format!("the pattern `{pattern}` cannot be used");
            let help = "it is not a regular expression, is too large, or has a look-around or a back \
                        reference, which no engine matches in linear time";
            let place = at.place(files);
            found.extend(place.map(|it| invalid(&it.file, it.span, message).with_help(help)));
        }
    }
    found
}
