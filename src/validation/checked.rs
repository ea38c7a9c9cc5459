//! What came of checking all files of a commit together.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::findings::{Finding, Ground};
use super::overlap::Shown;
use super::places::{Places, find};
use super::shape::weight;
use super::{
    FileReading, GroupFile, Layout, Parts, Search, Strictness, TestCase, catalogue, individual,
    no_groups, overlap, test_case, tree,
};
use crate::classification::Evidence;
use crate::diagnostic::{Diagnostic, Kind, Place, Severity};
use crate::document::Span;
use crate::hierarchy::Estate;
use crate::model::{BudgetItem, Counts, GroupId, Meter, Node, Room};

/// Where each group is written.
pub type Origins = BTreeMap<GroupId, Place>;

/// How many nodes of classification tests are classified to see what they show.
const KNOWN_NODES: usize = 1_000;

/// The outcome of validation.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The estate; there is none if there are errors.
    pub estate: Option<Estate>,
    /// How many groups the files have.
    pub groups: usize,
    /// Everything that was found, by place.
    pub diagnostics: Vec<Diagnostic>,
    /// Where each group is written.
    pub origins: Arc<Origins>,
    pub(super) layout: Layout,
    pub(super) search: Search,
    /// The files, by path.
    pub(super) readings: Vec<Arc<FileReading>>,
    pub(super) types: Arc<catalogue::OfEnvironments>,
    /// What was found of each group in its place among the others, silenced or not.
    pub(super) findings: Vec<Finding>,
    /// What the commit costs of its budget.
    pub(super) counts: Counts,
}

impl Checked {
    /// Returns whether there is no error.
    pub fn is_valid(&self) -> bool {
        self.estate.is_some()
    }

    /// The outcome for a commit that was not read to the end.
    pub fn rejected(why: Diagnostic, layout: &Layout, search: Search) -> Self {
        Self {
            estate: None,
            groups: 0,
            diagnostics: vec![why],
            origins: Arc::default(),
            layout: layout.clone(),
            search,
            readings: Vec::new(),
            types: Arc::default(),
            findings: Vec::new(),
            counts: Counts::default(),
        }
    }

    /// Keeps what was found, and nothing of what the files say.
    pub fn forget_files(&mut self) {
        self.readings = Vec::new();
        self.types = Arc::default();
        self.counts =
            Counts::default().with(BudgetItem::Findings, self.counts.get(BudgetItem::Findings));
    }

    /// Returns what the commit costs of its budget.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Returns what is known of a file.
    pub fn reading(&self, path: &str) -> Option<&Arc<FileReading>> {
        find(&self.readings, path)
    }

    /// Returns the layout and policy that the files were read by.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Returns the paths of all files that were read.
    pub fn files(&self) -> impl Iterator<Item = &Arc<str>> {
        self.readings.iter().map(|it| &it.path)
    }

    /// Returns where the values set for each node alone are written.
    pub fn node_origins(&self) -> BTreeMap<String, Place> {
        let files = self.readings.iter().filter_map(|it| match &it.parts {
            Parts::Node(found) => Some(found.origin()),
            _ => None,
        });
        files.map(|(name, place)| (name.to_owned(), place.clone())).collect()
    }

    /// Returns the classification tests.
    pub fn tests(&self) -> Vec<&TestCase> {
        self.readings.iter().flat_map(|it| it.tests()).collect()
    }

    /// Looks for groups that can conflict, those that known nodes show first, unless the commit
    /// was checked for them already.
    pub fn find_conflicts(&mut self, mut evidence: Evidence, shown: Shown) {
        let strictness = self.layout.policy.potential_conflicts;
        if self.search != Search::WithoutConflicts {
            return;
        }
        let Some(estate) = &self.estate else { return };
        evidence.extend(of_tests(estate, &self.readings));
        let places = Places { origins: &self.origins, readings: &self.readings };
        let found = overlap::check(estate, places, strictness, &evidence, shown);
        self.search = Search::Everything;
        self.add(found);
    }

    /// Adds what was found otherwise, but for the warnings that a comment silences.
    pub fn add(&mut self, found: Vec<Diagnostic>) {
        self.diagnostics.extend(found.into_iter().filter(|it| !is_silenced(it, &self.readings)));
        sort(&mut self.diagnostics);
        if !are_warnings(&self.diagnostics) {
            self.estate = None;
        }
    }
}

/// Returns whether a comment on the line above silences a warning.
fn is_silenced(found: &Diagnostic, readings: &[Arc<FileReading>]) -> bool {
    found.severity == Severity::Warning && silences(readings, &found.place, found.kind)
}

/// Returns whether a comment on the line above names a kind of finding.
pub(super) fn silences(readings: &[Arc<FileReading>], place: &Place, kind: Kind) -> bool {
    find(readings, &place.file).is_some_and(|reading| {
        let mut ignores = reading.ignores.iter().filter(|it| it.line == place.span.start.line);
        ignores.any(|it| it.kinds.iter().any(|it| it == kind.as_str()))
    })
}

pub(super) fn are_warnings(diagnostics: &[Diagnostic]) -> bool {
    diagnostics.iter().all(|it| it.severity != Severity::Error)
}

/// Sorts by place; what is said of the commit as a whole comes last.
fn sort(diagnostics: &mut [Diagnostic]) {
    let is_of_commit = |it: &Diagnostic| &*it.place.file == ".";
    diagnostics.sort_by(|a, b| {
        (is_of_commit(a), &a.place, a.severity, a.kind, &a.message).cmp(&(
            is_of_commit(b),
            &b.place,
            b.severity,
            b.kind,
            &b.message,
        ))
    });
}

/// Puts together what was found, in order and without what comments silence.
pub(super) fn gather(
    readings: &[Arc<FileReading>],
    findings: &[Finding],
    others: Vec<Diagnostic>,
) -> Vec<Diagnostic> {
    let of_files = readings.iter().flat_map(|it| it.diagnostics.iter().cloned());
    let of_groups = findings.iter().map(|it| it.diagnostic.clone());
    let mut all: Vec<Diagnostic> = of_files.chain(of_groups).chain(others).collect();
    all.retain(|it| !is_silenced(it, readings));
    sort(&mut all);
    all
}

/// Checks files together that have been read one by one.
pub fn check(
    layout: &Layout,
    readings: &[Arc<FileReading>],
    search: Search,
    meter: &Arc<Meter>,
) -> Checked {
    let mut readings = readings.to_vec();
    readings.sort_by(|a, b| a.path.cmp(&b.path));
    let mut groups: Vec<&GroupFile> = Vec::new();
    let mut individuals = Vec::new();
    let mut catalogues = Vec::new();
    for reading in &readings {
        match &reading.parts {
            Parts::Nothing | Parts::Tests(_) => {}
            Parts::Groups(found) => groups.extend(found),
            Parts::Node(found) => individuals.push(found.as_ref()),
            Parts::Environment(found) => catalogues.push(found.as_ref()),
        }
    }
    let origin = |it: &&GroupFile| Some((it.group.as_ref()?.id, it.place.clone()));
    let origins: Origins = groups.iter().filter_map(origin).collect();
    let mut others = Vec::new();
    let individuals = individual::join(&individuals, &mut others);
    let catalogues = catalogue::join(&catalogues, &mut others);
    let hierarchy = tree::build(&groups, layout.policy, &mut others);
    let places = Places { origins: &origins, readings: &readings };
    let findings = hierarchy.as_ref().map_or_else(Vec::new, |hierarchy| {
        let strictness = layout.policy.missing_referents;
        Ground { hierarchy, catalogues: &catalogues, places, strictness, search, meter }.all()
    });
    if search != Search::Decisive {
        // Tests decide nothing about what a commit answers, so the daemon ignores them.
        let tests = readings.iter().flat_map(|it| it.tests());
        others.extend(tests.filter_map(test_case::empty_expectation));
    }
    if groups.is_empty() && !layout.allow_empty && are_read(&readings) {
        let message = format!("there is no node group below `{}/`", layout.groups);
        others.push(no_groups(layout.groups.as_str().into(), message));
    }
    let valid = are_warnings(&others)
        && readings.iter().all(|it| are_warnings(&it.diagnostics))
        && findings.iter().all(|it| it.diagnostic.severity != Severity::Error);
    let mut estate = hierarchy.filter(|_| valid).map(|hierarchy| Estate {
        hierarchy,
        individuals: Arc::new(individuals),
        environments: Arc::clone(&catalogues.files),
        catalogues: Arc::clone(&catalogues.classes),
    });
    let strictness = layout.policy.potential_conflicts;
    let is_searched = match search {
        Search::Decisive => strictness == Strictness::Error,
        Search::Everything => true,
        Search::WithoutConflicts => false,
    };
    if let Some(estate) = estate.as_ref().filter(|_| is_searched) {
        let evidence = of_tests(estate, &readings);
        others.extend(overlap::check(estate, places, strictness, &evidence, Shown::Page));
    }
    let mut diagnostics = gather(&readings, &findings, bounded(others, meter));
    diagnostics.extend(dropped(meter));
    estate = estate.filter(|_| are_warnings(&diagnostics));
    Checked {
        estate,
        groups: groups.len(),
        diagnostics,
        layout: layout.clone(),
        search,
        types: catalogues.types,
        findings,
        origins: Arc::new(origins),
        readings,
        counts: meter.counts(),
    }
}

/// Returns what the nodes of classification tests show.
fn of_tests(estate: &Estate, readings: &[Arc<FileReading>]) -> Evidence {
    let mut evidence = Evidence::default();
    let tests = readings.iter().flat_map(|it| match &it.parts {
        Parts::Tests(tests) => tests.as_slice(),
        _ => &[],
    });
    for test in tests.filter(|it| it.facts_file.is_none()).take(KNOWN_NODES) {
        let mut node = Node::named(test.node.as_str());
        node.fact.clone_from(&test.facts);
        node.trusted = test.trusted.clone().unwrap_or_default();
        node.trusted.entry("certname").or_insert_with(|| test.node.as_str().into());
        evidence.add(estate, &node);
    }
    evidence
}

/// Returns whether every file of node groups could be read: what is wrong with one that could not
/// is said, and groups may be in it.
fn are_read(readings: &[Arc<FileReading>]) -> bool {
    let has_groups = |it: &Arc<FileReading>| matches!(it.parts, Parts::Groups(_) | Parts::Nothing);
    readings.iter().filter(|it| has_groups(it)).all(|it| are_warnings(&it.diagnostics))
}

/// Keeps the findings that there is room for.
fn bounded(found: Vec<Diagnostic>, meter: &Meter) -> Vec<Diagnostic> {
    let fits = |it: &Diagnostic| meter.finding(weight(it.severity)) == Room::Kept;
    found.into_iter().filter(fits).collect()
}

/// Says how many findings were only counted. They make a commit invalid if errors are among them.
fn dropped(meter: &Meter) -> Option<Diagnostic> {
    let dropped = meter.dropped();
    if dropped.is_none() {
        return None;
    }
    let limit = meter.budget().limit(BudgetItem::Findings);
    let message = format!(
        "there are more than {limit} findings: {} errors and {} warnings more are not shown",
        dropped.errors, dropped.warnings
    );
    let place = Place { file: Arc::from("."), span: Span::START };
    let mut found = Diagnostic::new(Kind::CommitTooLarge, place, message)
        .with_help("mend what is shown, or raise the limit with `--commit-budget findings=NUMBER`");
    if dropped.errors == 0 {
        found.severity = Severity::Warning;
    }
    Some(found)
}
