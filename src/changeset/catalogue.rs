//! The files of class catalogues, written from what is known of an environment's code.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use crate::document::{Limits, ValueLayout, write};
use crate::model::{ClassName, EnvironmentName, Key};
use crate::puppet::{Aliases, DataType, Default, PuppetClass};
use crate::validation::{FileKind, SourceContent, SourceFile, read_file};

/// The classes of an environment, to be written down.
#[derive(Clone, Debug, PartialEq, std::default::Default)]
pub struct NewCatalogue {
    classes: BTreeMap<ClassName, PuppetClass>,
    /// What type aliases stand for; only those that parameters use are written.
    pub aliases: Aliases,
    /// What the Puppet Server calls this version of the classes.
    pub etag: Option<String>,
}

/// Who writes a catalogue, as its file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WrittenBy {
    /// `clade classes scan`
    Scan,
    /// `clade classes pull`
    Pull,
    /// `POST /v1/update-classes`
    Daemon,
}

/// A catalogue cannot be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CatalogueFault {
    /// Its file would be larger than files may be.
    #[error(
        "the catalogue would have {size} bytes, {allowed} are allowed: leave modules out of the environment"
    )]
    TooLarge {
        /// How large it would be.
        size: u64,
        /// How large it may be.
        allowed: u64,
    },
    /// Validation would find fault with it.
    #[error("the catalogue cannot be written: line {line}: {message}")]
    Invalid {
        /// The line of the file.
        line: u32,
        /// What is wrong.
        message: String,
    },
}

/// The key of the line in the file's header that says which version of the classes it has.
const ETAG: &str = "# etag: ";

impl NewCatalogue {
    /// Makes one of the classes of files, and says which were left out and why.
    pub fn of(classes: Vec<(String, PuppetClass)>, etag: Option<String>) -> (Self, Vec<String>) {
        let mut catalogue = Self { etag, ..Self::default() };
        let mut left_out = Vec::new();
        for (path, class) in classes {
            if let Err(reason) = catalogue.add(class) {
                left_out.push(format!("{path}: {reason}: left out"));
            }
        }
        (catalogue, left_out)
    }

    /// Adds a class; the first one of a name stays.
    ///
    /// # Errors
    ///
    /// Returns why Puppet could not find it.
    pub fn add(&mut self, class: PuppetClass) -> Result<(), String> {
        let name: ClassName = class.name.parse().map_err(|error| format!("{error}"))?;
        self.classes.entry(name).or_insert(class);
        Ok(())
    }

    /// Returns how many classes there are.
    pub fn count(&self) -> usize {
        self.classes.len()
    }

    /// Returns the catalogue as a document.
    fn to_value(&self, defaults: Defaults) -> Value {
        let mut used = BTreeSet::new();
        let classes: Map<String, Value> = self
            .classes
            .iter()
            .map(|(name, class)| (name.to_string(), self.class(class, defaults, &mut used)))
            .collect();
        let mut document = Map::new();
        document.insert("classes".to_owned(), Value::Object(classes));
        let aliases: Map<String, Value> = used
            .into_iter()
            .filter_map(|name| Some((name.to_owned(), self.aliases.get(name)?.to_string().into())))
            .collect();
        if !aliases.is_empty() {
            document.insert("type_aliases".to_owned(), Value::Object(aliases));
        }
        Value::Object(document)
    }

    fn class<'c>(
        &'c self,
        class: &'c PuppetClass,
        defaults: Defaults,
        used: &mut BTreeSet<&'c str>,
    ) -> Value {
        let (mut parameters, mut types) = (Map::new(), Map::new());
        for parameter in class.parameters.iter().filter(|it| it.name.parse::<Key>().is_ok()) {
            let default = match &parameter.default {
                Default::Required => Value::Null,
                Default::Value(value) => match defaults {
                    Defaults::AsTheyAre => value.clone(),
                    Defaults::OddOnesAsText => or_text(value),
                },
                Default::Code(code) => code.split_whitespace().collect::<Vec<_>>().join(" ").into(),
            };
            parameters.insert(parameter.name.clone(), default);
            if let Some(data_type) = &parameter.data_type {
                types.insert(parameter.name.clone(), data_type.to_string().into());
                self.use_aliases(data_type, used);
            }
        }
        match (parameters.is_empty(), types.is_empty()) {
            (true, _) => Value::Null,
            (false, true) => json!({"parameters": parameters}),
            (false, false) => json!({"parameters": parameters, "types": types}),
        }
    }

    /// Notes the aliases in a type, and those that they stand for.
    fn use_aliases<'c>(&'c self, data_type: &'c DataType, used: &mut BTreeSet<&'c str>) {
        let mut fresh = Vec::new();
        data_type.names(&mut |name| fresh.push(name));
        while let Some(name) = fresh.pop() {
            if let Some(alias) = self.aliases.get(name)
                && used.insert(name)
            {
                alias.names(&mut |name| fresh.push(name));
            }
        }
    }

    /// Returns the text of the file at a path from the root of the group repository.
    ///
    /// # Errors
    ///
    /// Returns what validation would find wrong with it.
    pub fn text(
        &self,
        path: &str,
        environment: &EnvironmentName,
        by: WrittenBy,
    ) -> Result<String, CatalogueFault> {
        let mut head = self.header(by);
        let file = path.rsplit_once('/').map_or(path, |(_, file)| file);
        if file.rsplit_once('.').map(|(stem, _)| stem) != Some(environment.as_str()) {
            head.push_str(&write(&json!({"name": environment}), &|_| ValueLayout::Block));
        }
        let text = |defaults| {
            let text = head.clone() + &write(&self.to_value(defaults), &layout);
            checked(path, &text).map(|()| text)
        };
        // Each default is tried alone only if the file cannot be read: that takes longer.
        text(Defaults::AsTheyAre).or_else(|fault| match fault {
            CatalogueFault::Invalid { .. } => text(Defaults::OddOnesAsText),
            CatalogueFault::TooLarge { .. } => Err(fault),
        })
    }

    fn header(&self, by: WrittenBy) -> String {
        let by = match by {
            WrittenBy::Scan => "`clade classes scan`: run it",
            WrittenBy::Pull => "`clade classes pull`: run it",
            WrittenBy::Daemon => "`POST /v1/update-classes`: ask for it",
        };
        let schema = "# yaml-language-server: $schema=https://clade-classifier.github.io/schemas/environment.json";
        let mut text = format!("{schema}\n# Written by {by} again instead of changing this.\n");
        if let Some(etag) = self.etag.as_deref().filter(|it| is_etag(it)) {
            let _infallible = writeln!(text, "{ETAG}{etag}");
        }
        text
    }
}

/// How defaults are written.
#[derive(Clone, Copy)]
enum Defaults {
    AsTheyAre,
    /// Those that Clade does not read, such as `1e400`, as their text, like expressions.
    OddOnesAsText,
}

/// Returns a default, or its text if Clade does not read it.
fn or_text(value: &Value) -> Value {
    let class = json!({"parameters": {"default": value}});
    let text = write(&json!({"classes": {"default": class}}), &layout);
    match checked("environments/production.yaml", &text) {
        Ok(()) => value.clone(),
        Err(_) => value.to_string().into(),
    }
}

/// Checks that what is written is what validation reads.
fn checked(path: &str, text: &str) -> Result<(), CatalogueFault> {
    let size = u64::try_from(text.len()).unwrap_or(u64::MAX);
    let allowed = Limits::DEFAULT.file_bytes;
    if size > allowed {
        return Err(CatalogueFault::TooLarge { size, allowed });
    }
    let content = SourceContent::Bytes(text.as_bytes().into());
    let reading = read_file(&SourceFile { path: path.into(), content }, FileKind::Environment);
    match reading.diagnostics.first() {
        None => Ok(()),
        Some(found) => Err(CatalogueFault::Invalid {
            line: found.place.span.start.line,
            message: found.message.clone(),
        }),
    }
}

/// Returns the environment that a file of the directory of environments is about; `None` if it cannot be read.
pub fn environment_of(path: &str, text: &str) -> Option<EnvironmentName> {
    let content = SourceContent::Bytes(text.as_bytes().into());
    let reading = read_file(&SourceFile { path: path.into(), content }, FileKind::Environment);
    reading.environment().cloned()
}

/// Returns how the value at a path of a catalogue is written.
fn layout(path: &[&str]) -> ValueLayout {
    match path {
        ["classes" | "type_aliases"] | ["classes", _] | ["classes", _, "parameters" | "types"] => {
            ValueLayout::Block
        }
        _ => ValueLayout::Flow,
    }
}

/// Returns the version of the classes that the text of a catalogue says it was made from.
pub fn etag_of(text: &str) -> Option<&str> {
    let comments = text.lines().take_while(|it| it.starts_with('#'));
    comments.filter_map(|it| it.strip_prefix(ETAG)).map(str::trim).find(|it| is_etag(it))
}

/// Returns whether a text can be sent as a header, and stand in a comment.
fn is_etag(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|it| it == b' ' || it.is_ascii_graphic())
}

/// Returns whether the texts of two catalogues say the same but for the comments before them.
pub fn says_the_same(old: &str, new: &str) -> bool {
    body(old) == body(new)
}

/// Returns a catalogue without what stands before its classes.
fn body(text: &str) -> &str {
    text.find("\nclasses:").and_then(|at| text.get(at..)).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn catalogue(etag: Option<&str>) -> NewCatalogue {
        let class = PuppetClass { name: "ntp".to_owned(), line: 1, parameters: Vec::new() };
        let other = PuppetClass { name: "ntp::No".to_owned(), ..class.clone() };
        let classes = vec![("a.pp".to_owned(), class), ("b.pp".to_owned(), other)];
        let (catalogue, left_out) = NewCatalogue::of(classes, etag.map(str::to_owned));
        assert_eq!(left_out.len(), 1, "{left_out:?}");
        assert!(left_out.iter().all(|it| it.starts_with("b.pp: `ntp::No` is not a class name")));
        catalogue
    }

    fn text(path: &str, etag: Option<&str>) -> String {
        let environment = "production".parse().unwrap();
        catalogue(etag).text(path, &environment, WrittenBy::Scan).unwrap()
    }

    #[test]
    fn a_file_says_which_version_it_was_made_from() {
        let written = text("environments/production.yaml", Some("\"v 1\""));
        assert_eq!(etag_of(&written), Some("\"v 1\""));
        assert_eq!(etag_of(&text("environments/production.yaml", None)), None);
        // It could end the comment that it is in.
        assert_eq!(etag_of(&text("environments/production.yaml", Some("v\nclasses:"))), None);
        for other in ["classes:\n# etag: v\n", "# etag: \n", "# etag: é\n", "# etag: a\tb\n", ""] {
            assert_eq!(etag_of(other), None, "{other:?}");
        }
    }

    #[test]
    fn a_file_of_another_name_says_whose_it_is() {
        for (path, named) in [
            ("production.yml", false),
            ("environments/production.yaml", false),
            ("production/other.yaml", true),
            ("environments/production.yaml.yaml", true),
        ] {
            assert_eq!(text(path, None).contains("\nname: production\n"), named, "{path}");
        }
    }

    #[test]
    fn comments_before_the_classes_say_nothing() {
        let (one, other) = (text("production.yaml", Some("1")), text("production.yaml", Some("2")));
        assert!(one != other && says_the_same(&one, &other));
        assert!(!says_the_same(&one, &one.replace("  ntp:", "  ntq:")));
        assert!(!says_the_same("classes: {}\n", &one));
    }
}
