//! What came of checking all files of a commit together.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::catalogue;
use super::checks::Finding;
use super::evidence::of_tests;
use super::file_list::FileList;
use super::gather::{are_warnings, sort};
use super::group::GroupFile;
use super::layout::Layout;
use super::overlap::{self, ShownAlarms};
use super::own_schemas::OwnSchemas;
use super::places::{Origins, Places};
use super::reading::{FileParts, FileReading};
use super::search::Search;
use super::silence::Silence;
use super::test_case::TestCase;
use crate::classification::Evidence;
use crate::diagnostic::{Diagnostic, Kind, Place};
use crate::hierarchy::Estate;
use crate::java_regex::Automata;
use crate::model::{BudgetItem, Counts, GroupId};
use crate::rule::Solver;

/// The outcome of validation.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The estate; there is none if there are errors.
    pub estate: Option<Estate>,
    /// How many groups the files have.
    pub groups: usize,
    /// Everything that was found, by place.
    pub diagnostics: Vec<Arc<Diagnostic>>,
    /// Where each group is written.
    pub origins: Arc<Origins>,
    pub(super) layout: Layout,
    pub(super) schemas: Arc<OwnSchemas>,
    pub(super) search: Search,
    pub(super) readings: FileList,
    pub(super) types: Arc<catalogue::OfEnvironments>,
    /// What was found of each group in its place among the others, silenced or not.
    pub(super) findings: Vec<Finding>,
    /// What was found of the commit beside its groups.
    pub(super) others: Arc<[Arc<Diagnostic>]>,
    /// The automata of patterns that were compared.
    pub(super) automata: Arc<Automata>,
    /// What the commit costs of its budget.
    pub(super) counts: Counts,
    /// How often schemas look at its values.
    pub(super) schema_work: u64,
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
            diagnostics: vec![why.into()],
            origins: Arc::default(),
            layout: layout.clone(),
            schemas: Arc::default(),
            search,
            readings: FileList::default(),
            types: Arc::default(),
            findings: Vec::new(),
            others: Arc::default(),
            automata: Arc::default(),
            counts: Counts::default(),
            schema_work: 0,
        }
    }

    /// Puts what to do, where it is known, at the finding that there are no groups.
    pub fn explain_no_groups(&mut self, help: Option<String>) {
        let mut found = self.diagnostics.iter_mut().filter(|it| it.kind == Kind::NoGroups);
        if let (Some(found), Some(help)) = (found.next(), help) {
            Arc::make_mut(found).help = Some(help);
        }
    }

    /// Keeps what was found, and nothing of what the files say.
    pub fn forget_files(&mut self) {
        self.readings = FileList::default();
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
        self.readings.find(path)
    }

    /// Returns a group as written; the root group need not be.
    pub fn group_file(&self, id: GroupId) -> Option<&GroupFile> {
        Places { origins: &self.origins, readings: &self.readings, all: None }.of(id)
    }

    /// Returns the layout and policy that the files were read by.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Returns the schemas that values were held to.
    pub fn schemas(&self) -> &Arc<OwnSchemas> {
        &self.schemas
    }

    /// Returns the paths of all files that were read.
    pub fn files(&self) -> impl Iterator<Item = &Arc<str>> {
        self.readings.iter().map(|it| &it.path)
    }

    /// Returns all files that were read.
    pub fn readings(&self) -> impl Iterator<Item = &Arc<FileReading>> {
        self.readings.iter()
    }

    /// Returns where the values set for each node alone are written.
    pub fn node_origins(&self) -> BTreeMap<String, Place> {
        let files = self.readings.iter().filter_map(|it| match &it.parts {
            FileParts::Node(found) => Some(found.origin()),
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
    pub fn find_conflicts(&mut self, mut evidence: Evidence, shown: ShownAlarms) {
        let strictness = self.layout.policy.potential_conflicts;
        if self.search != Search::WithoutConflicts {
            return;
        }
        let Some(estate) = &self.estate else { return };
        evidence.extend(of_tests(estate, &self.readings));
        let places = Places { origins: &self.origins, readings: &self.readings, all: None };
        let solver = Solver::sharing(&std::mem::take(&mut self.automata));
        let found = overlap::check(estate, places, strictness, &evidence, shown, solver);
        self.search = Search::Everything;
        self.add(found);
    }

    /// Adds what was found otherwise, but for the warnings that a comment silences.
    pub fn add(&mut self, found: Vec<Diagnostic>) {
        let silence = Silence::of(&self.readings);
        let shown = found.into_iter().filter(|it| !silence.hides(it));
        self.diagnostics.extend(shown.map(Arc::new));
        sort(&mut self.diagnostics);
        if !are_warnings(&self.diagnostics) {
            self.estate = None;
        }
    }
}
