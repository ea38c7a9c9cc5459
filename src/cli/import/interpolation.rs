//! Setting `interpolate` for values that Puppet Enterprise puts facts into.

use std::path::Path;

use anyhow::{Context as _, Result};

use crate::classification::has_dollar;
use crate::cli::output::Output;
use crate::cli::rewrite::rewrite;
use crate::config::read_bounded_text;
use crate::hierarchy::Hierarchy;
use crate::model::Interpolation;
use crate::validation::{Layout, SourceContent, SourceFile, read_layout};

/// Writes `interpolate: true` into `clade.yaml` if a value has a `$`, and says so.
pub(super) fn set(directory: &Path, hierarchy: &Hierarchy, output: &mut Output) -> Result<()> {
    let values = hierarchy.groups().map(|group| {
        let parameters = group.classes.iter().flat_map(|(_, parameters)| parameters.iter());
        let parameters = parameters.map(|(_, value)| value);
        parameters
            .chain(group.variables.iter().map(|(_, value)| value))
            .filter(|it| has_dollar(it))
            .count()
    });
    let count: usize = values.sum();
    if count == 0 {
        return Ok(());
    }
    let [yaml, yml] = ["clade.yaml", "clade.yml"].map(|name| directory.join(name));
    let path = if !yaml.exists() && yml.exists() { yml } else { yaml };
    // What is behind a link may lie anywhere, and is not read as the settings.
    let before = match read_bounded_text(&path) {
        _ if path.is_symlink() => String::new(),
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => {
            return Err(error).with_context(|| format!("cannot read `{}`", path.display()));
        }
    };
    let values = if count == 1 { "1 value has".to_owned() } else { format!("{count} values have") };
    if layout(&before).is_some_and(|it| it.interpolation == Interpolation::On) {
        return Ok(());
    }
    let newline = if before.is_empty() || before.ends_with('\n') { "" } else { "\n" };
    let after = format!("{before}{newline}interpolate: true\n");
    let is_set = layout(&after).is_some_and(|it| it.interpolation == Interpolation::On);
    if is_set && !path.is_symlink() {
        rewrite(&path, &after)?;
        output.note(&format!(
            "`interpolate: true` written into {}: {values} a `$`, and Puppet Enterprise puts facts into values",
            path.display()
        ));
    } else {
        let place = path.display();
        let advice = if path.is_symlink() {
            format!(
                "replace the link {place}, which is not read, by a file with `interpolate: true`"
            )
        } else {
            format!("write `interpolate: true` into {place}")
        };
        output.note(&format!(
            "warning: {values} a `$`, and Puppet Enterprise puts facts into values: {advice}"
        ));
    }
    Ok(())
}

/// Reads the text of `clade.yaml`; `None` if it has errors.
fn layout(text: &str) -> Option<Layout> {
    if text.trim().is_empty() {
        return Some(Layout::default());
    }
    let content = SourceContent::Bytes(text.as_bytes().into());
    let (layout, reading) = read_layout(&[SourceFile { path: "clade.yaml".into(), content }]);
    reading.is_none_or(|it| it.diagnostics.is_empty()).then_some(layout)
}
