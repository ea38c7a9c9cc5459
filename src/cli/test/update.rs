//! Writing expectations from what comes out now.
#![expect(clippy::disallowed_methods, reason = "tests are files")]

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context as _, Result, anyhow};
use serde_json::Value;

use super::verdict::TestVerdict;
use crate::cli::repository::LoadedRepository;
use crate::cli::rewrite::rewrite;
use crate::document::{Limits, ValueLayout, edit_documents, read};
use crate::model::same;

/// Writes what comes out now into the tests that expect something else, or nothing; returns the
/// files with the count of tests that were written in each.
pub(super) fn write(
    verdicts: &[TestVerdict<'_>],
    loaded: &LoadedRepository,
) -> Result<BTreeMap<Arc<str>, usize>> {
    let mut by_file: BTreeMap<Arc<str>, Vec<&TestVerdict<'_>>> = BTreeMap::new();
    for verdict in verdicts {
        by_file.entry(Arc::clone(&verdict.test.place.file)).or_default().push(verdict);
    }
    let mut written = BTreeMap::new();
    for (file, verdicts) in by_file {
        let path = loaded.path_of(&file)?;
        let what = || format!("cannot write the expectations in `{}`", path.display());
        let old = std::fs::read_to_string(&path).with_context(what)?;
        let (new, count) = update(&old, &verdicts).with_context(what)?;
        if count > 0 {
            rewrite(&path, &new)?;
            written.insert(file, count);
        }
    }
    Ok(written)
}

/// Returns a file of tests with the expectations of some, and how many they are.
fn update(text: &str, verdicts: &[&TestVerdict<'_>]) -> Result<(String, usize)> {
    let (mut targets, mut count) = (BTreeMap::new(), 0);
    let contents = read(text.as_bytes(), &Limits::DEFAULT);
    for (number, document) in contents.documents.iter().enumerate() {
        let mut target = document.to_value();
        let mut changes = 0;
        for (test, value) in
            document.elements().iter().zip(target.as_array_mut().into_iter().flatten())
        {
            let place = test.get("name").map(|it| it.span.start);
            let here = |it: &&&TestVerdict<'_>| Some(it.test.place.span.start) == place;
            let Some(actual) = verdicts.iter().find(here).and_then(|it| it.actual.as_ref()) else {
                continue;
            };
            let Some(Value::Object(old)) = value.get("expect") else { continue };
            let new = Value::Object(actual.expectation(old));
            if let Some(expect) = value.get_mut("expect").filter(|it| !same(it, &new)) {
                *expect = new;
                changes += 1;
            }
        }
        if changes > 0 {
            targets.insert(number, target);
            count += changes;
        }
    }
    if targets.is_empty() {
        return Ok((text.to_owned(), 0));
    }
    let updated = edit_documents(text, &targets, &|_| ValueLayout::Flow)
        .map_err(|error| anyhow!("{error}"))?;
    Ok((updated, count))
}
