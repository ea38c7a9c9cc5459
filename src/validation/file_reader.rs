//! Reading typed parts out of values with places.
//!
//! Each function returns the part or `None`, and in the second case has said why.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::str::FromStr;
use std::sync::Arc;

use super::fault_spans::FaultSpans;
use super::yaml_fault::from_fault;
use crate::diagnostic::{Diagnostic, Kind, Place, Severity, closest};
use crate::document::{Content, Entry, Fault, Node, Span, quote};
use crate::model::{BudgetItem, Counts, Exceeded, Meter, Room, Weight};
use crate::model::{
    ClassName, Classes, Key, NameError, Table, Value, VariableName, check_parameter_name,
    check_settable_variable,
};

/// Reads the parts of one file, and collects its findings.
pub(super) struct FileReader {
    pub(super) file: Arc<str>,
    /// What is in the file, if it is at hand.
    pub(super) source: Option<Arc<[u8]>>,
    pub(super) diagnostics: Vec<Diagnostic>,
    /// How many errors were found, kept or not.
    pub(super) errors: usize,
    /// How many values are not of the sort that is expected, so that nothing of them was read.
    pub(super) mismatches: usize,
    /// What the file costs.
    pub(super) cost: Counts,
    /// The limit that the file went over, if it did: nothing of it is used then.
    pub(super) exceeded: Option<Exceeded>,
    meter: Arc<Meter>,
    /// Where the file has faults of its YAML. What stands there was not read as its author meant it.
    pub(super) faults: FaultSpans,
    /// The same with the keys whose second value was not read.
    pub(super) doubts: FaultSpans,
    /// The second values of keys that are set twice, by where the key is set first.
    seconds: BTreeMap<u32, Vec<String>>,
    /// The last finding that was only counted.
    dropped: Option<Diagnostic>,
    /// The name of the group that is being read.
    pub(super) group: Option<String>,
    /// The keys of the group that is being read whose values may be others than those that were read.
    pub(super) lost_keys: Vec<&'static str>,
    /// The keys of that group that have values with errors.
    pub(super) faulty_keys: Vec<&'static str>,
    /// The offsets at which keys begin that are no names.
    pub(super) refused: BTreeSet<u32>,
}

/// Says what is meant by an unknown key, if that is known.
type FamiliarKeys<'f> = &'f dyn Fn(&Entry) -> Option<String>;

/// How many keys of a mapping are compared with known ones to tell whether one of them is meant.
pub(super) const COMPARED_KEYS: usize = 16;

/// Returns whether a mapping has an unknown key that is like a known one, among its first keys.
pub(super) fn has_misspelt(mapping: &Node, key: &str, known: &[&str]) -> bool {
    mapping.entries().iter().take(COMPARED_KEYS).any(|it| {
        !known.contains(&it.key.as_str()) && closest(&it.key, known.iter().copied()) == Some(key)
    })
}

/// Returns what a severity counts as.
pub(super) fn weight(severity: Severity) -> Weight {
    match severity {
        Severity::Error => Weight::Error,
        Severity::Warning => Weight::Warning,
    }
}

impl FileReader {
    pub(super) fn new(file: Arc<str>, meter: &Arc<Meter>) -> Self {
        Self {
            file,
            source: None,
            diagnostics: Vec::new(),
            errors: 0,
            mismatches: 0,
            cost: Counts::default(),
            exceeded: None,
            meter: Arc::clone(meter),
            faults: FaultSpans::default(),
            doubts: FaultSpans::default(),
            seconds: BTreeMap::new(),
            dropped: None,
            group: None,
            lost_keys: Vec::new(),
            faulty_keys: Vec::new(),
            refused: BTreeSet::new(),
        }
    }

    /// Returns what is in the file, or nothing if it is not at hand.
    pub(super) fn content(&self) -> &[u8] {
        self.source.as_deref().unwrap_or_default()
    }

    /// Counts what the file has; `None` if that is more than the budget allows.
    pub(super) fn charge(&mut self, item: BudgetItem, more: u64) -> Option<()> {
        self.cost.add(item, more);
        match self.meter.charge(item, more) {
            Ok(()) => Some(()),
            Err(exceeded) => {
                self.exceeded = Some(exceeded);
                None
            }
        }
    }

    /// Returns a limit of the budget.
    pub(super) fn limit(&self, item: BudgetItem) -> u64 {
        self.meter.budget().limit(item)
    }

    /// Adds the faults of the file's YAML, before its parts are read.
    pub(super) fn note_faults(&mut self, faults: impl Iterator<Item = Fault>) {
        let faults: Vec<Fault> = faults.collect();
        self.note_places(faults.iter());
        for mut fault in faults {
            if let (Some(second), Some((first, _))) = (fault.second.take(), fault.related.first()) {
                self.seconds.entry(first.start.offset).or_default().push(second.into());
            }
            let found = from_fault(&self.file, fault);
            self.keep(found);
        }
    }

    /// Notes the places of the faults of the file's YAML.
    pub(super) fn note_places<'f>(&mut self, faults: impl Iterator<Item = &'f Fault> + Clone) {
        self.faults = faults.clone().map(|it| it.span).collect();
        let places = |it: &'f Fault| {
            std::iter::once(it.span).chain(it.related.iter().map(|(span, _)| *span))
        };
        self.doubts = faults.flat_map(places).collect();
    }

    pub(super) fn is_full(&self) -> bool {
        let item = BudgetItem::Findings;
        self.errors > 0 && self.meter.counts().get(item) >= self.meter.budget().limit(item)
    }

    /// Adds a finding. An error where the YAML has a fault only follows from that.
    pub(super) fn push(&mut self, diagnostic: Diagnostic) -> &mut Diagnostic {
        if diagnostic.severity == Severity::Error && self.faults.cover(diagnostic.place.span) {
            self.errors += 1;
            return self.dropped.insert(diagnostic);
        }
        self.keep(diagnostic)
    }

    /// Adds that a value is not of the sort that is expected; that only follows where the value has a fault.
    fn mismatch(
        &mut self,
        node: &Node,
        what: impl Display + Copy,
        expected: &str,
    ) -> &mut Diagnostic {
        self.mismatches += 1;
        let message = format!("{what}: expected {expected}, found {}", node.type_name());
        let mut found = Diagnostic::new(Kind::SchemaViolation, self.place(node.span), message);
        found.group.clone_from(&self.group);
        if self.is_lost(node) {
            self.errors += 1;
            return self.dropped.insert(found);
        }
        self.push(found)
    }

    /// Returns whether a value is not what its author wrote: a scalar with a fault, or a mapping of which no key could
    /// be read.
    pub(super) fn is_lost(&self, node: &Node) -> bool {
        let is_touched = || self.faults.touch(node.span);
        match &node.content {
            Content::Scalar(_) => is_touched(),
            Content::Mapping(entries) => {
                let is_block = node.span.start == node.span.end;
                entries.is_empty() && (is_block || is_touched())
            }
            Content::Sequence(_) => false,
        }
    }

    /// Returns whether a key stands in what a mapping merges, which is not read.
    pub(super) fn merges(&self, mapping: &Node, key: &str) -> bool {
        self.merged(mapping).any(|it| it.get(key).is_some())
    }

    /// Returns what a mapping merges, which is not read.
    pub(super) fn merged<'n>(&self, mapping: &'n Node) -> impl Iterator<Item = &'n Node> {
        let merge = mapping.entry("<<").filter(|it| self.faults.cover(it.key_span));
        merge.into_iter().flat_map(|it| std::iter::once(&it.value).chain(it.value.elements()))
    }

    /// Returns the values of a key that is set several times, without the first one.
    pub(super) fn seconds(&self, entry: &Entry) -> &[String] {
        self.seconds.get(&entry.key_span.start.offset).map_or(&[], Vec::as_slice)
    }

    /// Returns whether keys below a key may be missing, down to so many levels of mappings: one is set twice or merged,
    /// or what stands in the place of a mapping is not what its author wrote.
    pub(super) fn lacks_keys(&self, entry: &Entry, levels: usize) -> bool {
        let Some(below) = levels.checked_sub(1) else { return self.doubts.cover(entry.key_span) };
        self.doubts.cover(entry.key_span)
            || self.is_lost(&entry.value)
            || entry.value.entries().iter().any(|it| self.lacks_keys(it, below))
    }

    /// Returns whether it is not known which value a key is meant to have.
    pub(super) fn is_doubtful(&self, mapping: &Node, key: &str) -> bool {
        match mapping.entry(key) {
            Some(entry) => self.doubts.cover(entry.key_span) || self.doubts.touch(entry.value.span),
            None => self.merges(mapping, key),
        }
    }

    /// Keeps a finding, or only counts it if there are too many.
    fn keep(&mut self, diagnostic: Diagnostic) -> &mut Diagnostic {
        let weight = weight(diagnostic.severity);
        if weight == Weight::Error {
            self.errors += 1;
        }
        if self.meter.finding(weight) == Room::Dropped {
            return self.dropped.insert(diagnostic);
        }
        let at = self.diagnostics.len();
        self.diagnostics.push(diagnostic);
        #[expect(clippy::indexing_slicing, reason = "it was pushed just now")]
        &mut self.diagnostics[at]
    }

    pub(super) fn place(&self, span: Span) -> Place {
        Place { file: Arc::clone(&self.file), span }
    }

    /// Adds a finding and hands it out for help and related places.
    pub(super) fn add(
        &mut self,
        kind: Kind,
        span: Span,
        message: impl Into<String>,
    ) -> &mut Diagnostic {
        let mut diagnostic = Diagnostic::new(kind, self.place(span), message);
        diagnostic.group.clone_from(&self.group);
        self.push(diagnostic)
    }

    fn violation<T>(&mut self, span: Span, message: impl Into<String>) -> Option<T> {
        self.add(Kind::SchemaViolation, span, message);
        None
    }

    /// Returns the entries of a mapping, having complained of unknown keys.
    pub(super) fn mapping<'n>(
        &mut self,
        node: &'n Node,
        what: impl Display + Copy,
        known: &[&str],
    ) -> Option<&'n [Entry]> {
        self.mapping_or(node, what, known, &|_| None)
    }

    /// As [`FileReader::mapping`]; `familiar` says what is meant by some unknown keys.
    pub(super) fn mapping_or<'n>(
        &mut self,
        node: &'n Node,
        what: impl Display + Copy,
        known: &[&str],
        familiar: &dyn Fn(&Entry) -> Option<String>,
    ) -> Option<&'n [Entry]> {
        self.known_mapping(node, what, (known, familiar), known_keys_help)
    }

    /// As [`FileReader::mapping_or`], for a whole document.
    pub(super) fn document<'n>(
        &mut self,
        node: &'n Node,
        what: impl Display + Copy,
        known: &[&str],
        familiar: &dyn Fn(&Entry) -> Option<String>,
    ) -> Option<&'n [Entry]> {
        self.known_mapping(node, what, (known, familiar), document_help)
    }

    /// As [`FileReader::mapping_or`]; `help` says how what stands in the place of the mapping is written as one.
    fn known_mapping<'n>(
        &mut self,
        node: &'n Node,
        what: impl Display + Copy,
        (known, familiar): (&[&str], FamiliarKeys<'_>),
        help: fn(&Node, &[&str]) -> Option<String>,
    ) -> Option<&'n [Entry]> {
        let entries = self.mapping_entries(node, what, || help(node, known))?;
        self.check_keys(entries, what, known, familiar);
        Some(entries)
    }

    fn mapping_entries<'n>(
        &mut self,
        node: &'n Node,
        what: impl Display + Copy,
        help: impl FnOnce() -> Option<String>,
    ) -> Option<&'n [Entry]> {
        if let Content::Mapping(entries) = &node.content {
            return Some(entries);
        }
        self.mismatch(node, what, "a mapping").help = help();
        None
    }

    /// Complains of unknown keys; `familiar` says what is meant by some of them.
    fn check_keys(
        &mut self,
        entries: &[Entry],
        what: impl Display + Copy,
        known: &[&str],
        familiar: &dyn Fn(&Entry) -> Option<String>,
    ) {
        for entry in entries.iter().filter(|entry| !known.contains(&entry.key.as_str())) {
            // A merge key is refused at its place.
            if entry.key == "<<" && self.faults.cover(entry.key_span) {
                continue;
            }
            if self.is_full() {
                // The text of a finding that is only counted is never shown, and takes time to make.
                self.errors += 1;
                self.meter.finding(Weight::Error);
                continue;
            }
            let help =
                familiar(entry).or_else(|| hard_space(&entry.key)).unwrap_or_else(
                    || match closest(&entry.key, known.iter().copied()) {
                        Some(similar) => format!("did you mean `{similar}`?"),
                        None => keys_help(known),
                    },
                );
            let message = format!("unknown key `{}` in {what}", entry.key);
            let mut found =
                Diagnostic::new(Kind::SchemaViolation, self.place(entry.key_span), message);
            found.group.clone_from(&self.group);
            found.help = Some(help);
            self.keep(found);
        }
    }

    pub(super) fn text<'n>(
        &mut self,
        node: &'n Node,
        what: impl Display + Copy,
    ) -> Option<&'n str> {
        if let Some(text) = node.as_str() {
            return Some(text);
        }
        let help = match &node.content {
            Content::Scalar(value) if !value.is_null() => {
                Some(format!("put it in quotes: \"{value}\""))
            }
            _ => None,
        };
        self.mismatch(node, what, "a string").help = help;
        None
    }

    /// Reads a string of a sort that has its own grammar.
    pub(super) fn parsed<T: FromStr<Err: Display>>(
        &mut self,
        node: &Node,
        what: impl Display + Copy,
    ) -> Option<T> {
        match self.text(node, what)?.parse() {
            Ok(parsed) => Some(parsed),
            Err(error) => self.violation(node.span, error.to_string()),
        }
    }

    pub(super) fn boolean(&mut self, node: &Node, what: impl Display + Copy) -> Option<bool> {
        match &node.content {
            Content::Scalar(Value::Bool(value)) => Some(*value),
            _ => {
                let written = node.as_str().filter(|it| matches!(*it, "true" | "false"));
                let help = written.map(|it| format!("write {it} without quotes"));
                self.mismatch(node, what, "true or false").help = help;
                None
            }
        }
    }

    pub(super) fn list<'n>(
        &mut self,
        node: &'n Node,
        what: impl Display + Copy,
    ) -> Option<&'n [Node]> {
        match &node.content {
            Content::Sequence(elements) => Some(elements),
            _ => {
                let help = node.as_str().map(|text| match text.strip_prefix('-') {
                    Some(_) => {
                        "write each element on a line of its own, with a blank behind its `-`"
                            .to_owned()
                    }
                    None => format!("write it in brackets: [{}]", quote(text)),
                });
                self.mismatch(node, what, "a list").help = help;
                None
            }
        }
    }

    /// Reads a list of strings.
    pub(super) fn texts(
        &mut self,
        node: &Node,
        what: impl Display + Copy,
    ) -> Option<Vec<Arc<str>>> {
        let elements = self.list(node, what)?;
        let texts: Vec<Option<Arc<str>>> = elements
            .iter()
            .map(|element| self.text(element, format_args!("an element of {what}")).map(Arc::from))
            .collect();
        texts.into_iter().collect()
    }

    /// Reads class -> parameter -> value; null is a class without parameters.
    pub(super) fn classes(&mut self, node: Node, what: impl Display + Copy) -> Classes {
        let entries = self.entries(node, what);
        // Only one of two spellings begins so.
        let may_repeat = entries.iter().any(|it| it.key.starts_with("::"));
        let mut seen = may_repeat.then(BTreeSet::new);
        let mut classes: Vec<(ClassName, Table<Key, Value>)> = Vec::with_capacity(entries.len());
        for entry in entries {
            let Some(name) = self.key::<ClassName>(&entry) else { continue };
            let parameters = if entry.value.is_null() {
                Table::default()
            } else {
                self.values::<Key>(entry.value, format_args!("the parameters of `{name}`"))
            };
            if seen.as_mut().is_some_and(|it| !it.insert(name.clone())) {
                let message =
                    format!("the class `{name}` is set twice, with and without a leading `::`");
                self.add(Kind::DuplicateKey, entry.key_span, message);
            }
            classes.push((name, parameters));
        }
        classes.into_iter().collect()
    }

    /// Reads the classes that nodes get: class -> parameter -> value.
    pub(super) fn node_classes(&mut self, node: Node) -> Classes {
        for class in node.entries() {
            // A null removes an inherited value: Puppet never gets the parameter.
            let set = class.value.entries().iter().filter(|it| !it.value.is_null());
            for parameter in set {
                let Err(error) = check_parameter_name(&parameter.key) else { continue };
                // What is not a key at all is reported with the other keys.
                if parameter.key.parse::<Key>().is_ok() {
                    self.add(Kind::SuspiciousValue, parameter.key_span, error.to_string()).help =
                        Some("Puppet fails the run of each node that gets it".to_owned());
                }
            }
        }
        self.classes(node, "`classes`")
    }

    /// Reads class -> key -> value. A class without keys says nothing, as in Puppet Enterprise.
    pub(super) fn config_data(&mut self, node: Node) -> Classes {
        let all = self.classes(node, "`config_data`");
        let with_keys = all.iter().filter(|(_, keys)| !keys.is_empty());
        with_keys.map(|(class, keys)| (class.clone(), keys.clone())).collect()
    }

    /// Reads name -> value.
    pub(super) fn values<K>(&mut self, node: Node, what: impl Display + Copy) -> Table<K, Value>
    where
        K: FromStr<Err = NameError> + Ord,
    {
        let mut values = Vec::new();
        for entry in self.entries(node, what) {
            self.inner_keys(&entry.value);
            if let Some(key) = self.key::<K>(&entry) {
                values.push((key, entry.value.into_value()));
            }
        }
        values.into_iter().collect()
    }

    pub(super) fn variables(&mut self, node: Node) -> Table<VariableName, Value> {
        // A null removes an inherited value: Puppet never gets the variable.
        for entry in node.entries().iter().filter(|it| !it.value.is_null()) {
            if let Err(error) = check_settable_variable(&entry.key) {
                self.add(Kind::SchemaViolation, entry.key_span, error.to_string());
            }
            if let Some(help) = help_of_overridden(&entry.key) {
                let message = format!("Puppet ignores a variable `{}` and sets its own", entry.key);
                self.add(Kind::SuspiciousValue, entry.key_span, message).help =
                    Some(help.to_owned());
            }
        }
        for entry in node.entries().iter().filter(|it| !is_readable(&it.key)) {
            // What is not a name at all is an error, which is enough.
            if entry.key.parse::<VariableName>().is_ok() {
                let message = format!("no Puppet code can read a variable `{}`", entry.key);
                let help =
                    "begin with a lowercase letter or `_`, and go on with letters, digits and `_`";
                self.add(Kind::SuspiciousValue, entry.key_span, message).help =
                    Some(help.to_owned());
            }
        }
        self.values(node, "`variables`")
    }

    /// Returns the entries of a mapping with any keys, without copying them; null has none.
    pub(super) fn entries(&mut self, node: Node, what: impl Display + Copy) -> Vec<Entry> {
        // It says what is wrong with anything else.
        self.free_mapping(&node, what);
        match node.content {
            Content::Mapping(entries) => entries,
            Content::Scalar(_) | Content::Sequence(_) => Vec::new(),
        }
    }

    /// Returns the entries of a mapping with any keys; null has none.
    pub(super) fn free_mapping<'n>(
        &mut self,
        node: &'n Node,
        what: impl Display + Copy,
    ) -> &'n [Entry] {
        if node.is_null() {
            return &[];
        }
        self.mapping_entries(node, what, || mapping_help(node)).unwrap_or_default()
    }

    fn key<K: FromStr<Err = NameError>>(&mut self, entry: &Entry) -> Option<K> {
        match entry.key.parse() {
            Ok(key) => Some(key),
            Err(error) => {
                self.refused.insert(entry.key_span.start.offset);
                self.violation(entry.key_span, error.to_string())
            }
        }
    }

    /// Complains of keys inside of a value that no reader of the ENC document takes.
    fn inner_keys(&mut self, node: &Node) {
        for entry in node.entries() {
            // It is wanted as a text only where something is wrong with it.
            if Key::normalised(&entry.key).is_err() {
                self.key::<Key>(entry);
            }
            self.inner_keys(&entry.value);
        }
        for element in node.elements() {
            self.inner_keys(element);
        }
    }
}

/// Returns whether Puppet code can name a variable: `$log-level` and `$Role` are no variables to it.
fn is_readable(variable: &str) -> bool {
    variable.starts_with(|it: char| it.is_ascii_lowercase() || it == '_')
        && variable.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'_')
}

/// Returns what to do about a variable of a name that Puppet sets itself at top scope; none for others.
fn help_of_overridden(variable: &str) -> Option<&'static str> {
    match variable {
        "environment" => {
            Some("set the `environment` of the group, or give the variable another name")
        }
        "trusted" => Some("give the variable another name"),
        _ => None,
    }
}

/// Returns which keys a mapping can have.
fn keys_help(known: &[&str]) -> String {
    let known: Vec<String> = known.iter().map(|key| format!("`{key}`")).collect();
    format!("the keys are {}", known.join(", "))
}

/// Returns how what stands in the place of a document is written as one.
fn document_help(node: &Node, known: &[&str]) -> Option<String> {
    match node.elements().first() {
        Some(first) if first.as_str().is_none() => {
            Some("a document has one mapping; part several by lines with `---`".to_owned())
        }
        _ => known_keys_help(node, known),
    }
}

/// Returns how what stands in the place of a mapping with known keys is written as one.
fn known_keys_help(node: &Node, known: &[&str]) -> Option<String> {
    let word = node.elements().first().unwrap_or(node).as_str();
    let is_value = |it: &str| !it.contains([':', '=']) && !known.contains(&it);
    if word.is_some_and(is_value) { Some(keys_help(known)) } else { mapping_help(node) }
}

/// Returns how what stands in the place of a mapping with any keys is written as one.
fn mapping_help(node: &Node) -> Option<String> {
    if let Some(first) = node.elements().first() {
        if let Some(entry) = first.entries().first() {
            let key = &entry.key;
            return Some(format!(
                "leave out the list, its `- ` or brackets, so that `{key}` is a key here"
            ));
        }
        let name = first.as_str()?;
        return Some(format!("write each as a key with its value: `{name}: {{}}`"));
    }
    let text = node.as_str().filter(|it| it.len() < 100)?;
    if let Some((key, value)) = text.split_once(" => ").or_else(|| text.split_once(" = ")) {
        return Some(format!("write `{key}: {value}`"));
    }
    let is_word = |it: char| it.is_ascii_alphanumeric() || matches!(it, '_' | ':');
    match text.split_once(':') {
        Some((key, value)) if !value.is_empty() && !value.starts_with([':', '/']) => {
            Some(format!("write a blank behind the colon: `{key}: {value}`"))
        }
        _ if text.chars().all(is_word) => Some(format!("write it as a key: `{text}: {{}}`")),
        _ => None,
    }
}

/// Returns what to do about a key that begins with blanks which YAML takes for letters.
fn hard_space(key: &str) -> Option<String> {
    let first = key.chars().next().filter(|it| it.is_whitespace() && !it.is_ascii())?;
    let number = u32::from(first);
    Some(format!("it starts with the blank U+{number:04X}, a letter to YAML: write spaces"))
}
