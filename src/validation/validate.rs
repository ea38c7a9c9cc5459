//! Validating all files of a commit.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use rayon::prelude::*;

use super::catalogue::{Catalogues, EnvironmentFile};
use super::checked::Checked;
use super::checks::{self, CatalogueNames, CheckContext, Finding};
use super::commit::{dropped, no_groups, too_large};
use super::consequence::FileErrors;
use super::evidence::of_tests;
use super::file_list::FileList;
use super::file_reader::weight;
use super::gather::{are_warnings, gather};
use super::group::GroupFile;
use super::individual::NodeFile;
use super::layout::{Layout, Strictness};
use super::overlap::{self, ShownAlarms};
use super::own_schemas::{OwnSchemas, ReadContent, SchemaWork};
use super::parents::KnownGroups;
use super::places::{GroupFiles, Origins, Places};
use super::reading::{FileParts, FileReading, read_file_within};
use super::search::Search;
use super::settings::read_layout;
use super::source::{FileKind, SourceContent, SourceFile};
use super::tree::BuiltTree;
use super::{catalogue, individual, schema_check, test_case, tree};
use crate::diagnostic::{Diagnostic, Severity};
use crate::hierarchy::{Estate, Hierarchy};
use crate::model::{Budget, Exceeded, GroupId, Individual, Interpolation, Meter, Room};
use crate::rule::Solver;

/// Validates the files of one commit.
pub fn validate(files: &[SourceFile], search: Search) -> Checked {
    validate_within(files, search, &Arc::new(Meter::new(Budget::DEFAULT)))
}

/// Validates the files of one commit within a budget.
pub fn validate_within(files: &[SourceFile], search: Search, meter: &Arc<Meter>) -> Checked {
    let (layout, mut settings) = read_layout(files);
    let by_path: HashMap<&str, &SourceContent> =
        files.iter().map(|it| (it.path.as_ref(), &it.content)).collect();
    let read = |path: &str| by_path.get(path).map(|it| (*it).clone());
    let readings: Result<Vec<Arc<FileReading>>, Exceeded> = files
        .par_iter()
        .filter_map(|file| Some(read_file_within(file, layout.kind_of(file)?, meter).map(Arc::new)))
        .collect();
    match readings {
        Ok(mut readings) => {
            readings.extend(settings.take().map(Arc::new));
            let schemas = Arc::new(OwnSchemas::load(&layout.schemas, &read));
            let commit =
                Commit { layout: &layout, readings: &readings, schemas: &schemas, read: &read };
            check(&commit, search, meter, &|_| {})
        }
        Err(exceeded) => Checked::rejected(too_large(exceeded), &layout, search),
    }
}

/// What is checked together.
pub struct Commit<'c> {
    /// Layout and policy.
    pub layout: &'c Layout,
    /// The files, each read by itself.
    pub readings: &'c [Arc<FileReading>],
    /// The schemas that values are held to.
    pub schemas: &'c Arc<OwnSchemas>,
    /// Reads files again, to find the places of values.
    pub read: &'c ReadContent<'c>,
}

impl std::fmt::Debug for Commit<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Commit").field("layout", self.layout).finish_non_exhaustive()
    }
}

/// Checks files together that have been read one by one. If nothing is wrong with them by themselves, does something
/// else with the tree of their groups meanwhile, on another thread if one is free.
pub fn check(
    commit: &Commit<'_>,
    search: Search,
    meter: &Arc<Meter>,
    beside: &(dyn Fn(&Hierarchy) + Sync),
) -> Checked {
    let Commit { layout, schemas, read, .. } = *commit;
    let readings = FileList::of(commit.readings);
    let SortedParts { groups, individuals, catalogues } = SortedParts::of(&readings);
    let mut others = Vec::new();
    let individuals = individual::join(&individuals, &mut others);
    let catalogues = catalogue::join(&catalogues, &mut others);
    let (tree, origins, group_files) = arranged(&groups, (layout, &readings), &mut others);
    let automata = Arc::default();
    others.extend(of_commit(layout, &readings, search));
    let estate =
        tree.hierarchy.map(|it| estate_of(it, individuals, &catalogues, layout.interpolation));
    let has_no_error = tree.is_valid && are_right(&readings, &others);
    let of_groups = estate.as_ref().map(|estate| {
        let context = CheckContext {
            hierarchy: &estate.hierarchy,
            catalogues: &catalogues,
            names: CatalogueNames::default(),
            places: Places { origins: &origins, readings: &readings, all: Some(&group_files) },
            incomplete: &tree.incomplete,
            policy: layout.policy,
            interpolation: layout.interpolation,
            search,
            automata: &automata,
            meter,
        };
        check_groups(estate, &context, has_no_error, beside)
    });
    let (mut findings, potential) = of_groups.unwrap_or_default();
    let work = SchemaWork::default();
    others.extend(schema_check::check(schemas, estate.as_ref(), &readings, read, (meter, &work)));
    let is_error = findings.iter().any(|it| it.diagnostic.severity == Severity::Error);
    let is_valid = has_no_error && !has_error(&others) && !is_error;
    others.extend(potential.into_iter().filter(|_| is_valid));
    let others = without_consequences(&readings, &mut findings, others, meter);
    let mut diagnostics = gather(&readings, &findings, &others);
    diagnostics.extend(dropped(meter).map(Arc::new));
    Checked {
        estate: estate.filter(|_| is_valid && are_warnings(&diagnostics)),
        groups: groups.len(),
        diagnostics,
        layout: layout.clone(),
        schemas: Arc::clone(schemas),
        search,
        types: catalogues.types,
        findings,
        others,
        origins: Arc::new(origins),
        readings,
        // For the search for conflicts that is still to come.
        automata: if search == Search::WithoutConflicts { automata } else { Arc::default() },
        counts: meter.counts(),
        schema_work: work.done(),
    }
}

/// Returns whether nothing is wrong with files by themselves, nor with what was found so far.
fn are_right(readings: &FileList, found: &[Diagnostic]) -> bool {
    !has_error(found) && readings.remarked().iter().all(|it| are_warnings(&it.diagnostics))
}

/// Leaves out what only follows from an error of a file by itself, and returns what there is room for of the rest.
fn without_consequences(
    readings: &FileList,
    findings: &mut Vec<Finding>,
    mut others: Vec<Diagnostic>,
    meter: &Meter,
) -> Arc<[Arc<Diagnostic>]> {
    let errors = FileErrors::of(readings);
    findings.retain(|it| !errors.explain(&it.diagnostic));
    others.retain(|it| !errors.explain(it));
    bounded(others, meter)
}

fn has_error(found: &[Diagnostic]) -> bool {
    found.iter().any(|it| it.severity == Severity::Error)
}

fn estate_of(
    hierarchy: Hierarchy,
    individuals: BTreeMap<String, Individual>,
    catalogues: &Catalogues,
    interpolation: Interpolation,
) -> Estate {
    Estate {
        hierarchy,
        individuals: Arc::new(individuals),
        environments: Arc::clone(&catalogues.files),
        catalogues: Arc::clone(&catalogues.classes),
        interpolation,
    }
}

/// Puts groups in a tree; returns it with where each group is written, and as what.
fn arranged<'r>(
    groups: &[&'r GroupFile],
    (layout, readings): (&Layout, &FileList),
    others: &mut Vec<Diagnostic>,
) -> (BuiltTree, Origins, GroupFiles<'r>) {
    let known = known_groups(layout, readings);
    let ((tree, faulty), (origins, mut files)) =
        rayon::join(|| tree::build(groups, known, others), || places_of(groups));
    files.extend(faulty);
    (tree, origins, files)
}

/// Returns where each group is written that can be looked up, and as what.
fn places_of<'r>(groups: &[&'r GroupFile]) -> (Origins, GroupFiles<'r>) {
    (written(groups).map(|(id, it)| (id, it.place())).collect(), written(groups).collect())
}

/// Returns the groups that can be looked up, with their ids.
fn written<'r>(groups: &[&'r GroupFile]) -> impl Iterator<Item = (GroupId, &'r GroupFile)> {
    groups.iter().filter_map(|it| Some((it.group()?.id, *it)))
}

/// Checks groups among each other. Meanwhile, where nothing is wrong so far, what else is to be done with them is
/// done, and those are looked for that can conflict.
fn check_groups(
    estate: &Estate,
    context: &CheckContext<'_>,
    has_no_error: bool,
    beside: &(dyn Fn(&Hierarchy) + Sync),
) -> (Vec<Finding>, Vec<Diagnostic>) {
    rayon::join(
        || checks::run(context),
        || {
            if !has_no_error {
                return Vec::new();
            }
            beside(&estate.hierarchy);
            conflicts(estate, context)
        },
    )
}

/// Finds groups that can conflict, if they are searched for.
fn conflicts(estate: &Estate, context: &CheckContext<'_>) -> Vec<Diagnostic> {
    let strictness = context.policy.potential_conflicts;
    if !is_searched(context.search, strictness) {
        return Vec::new();
    }
    let evidence = of_tests(estate, context.places.readings);
    let solver = Solver::sharing(context.automata);
    overlap::check(estate, context.places, strictness, &evidence, ShownAlarms::Page, solver)
}

/// Returns whether pairs of groups that can conflict are searched for.
fn is_searched(search: Search, strictness: Strictness) -> bool {
    match search {
        Search::Decisive => strictness == Strictness::Error,
        Search::Everything => true,
        Search::WithoutConflicts => false,
    }
}

/// The parts of all files, by what they are.
#[derive(Default)]
struct SortedParts<'r> {
    groups: Vec<&'r GroupFile>,
    individuals: Vec<&'r NodeFile>,
    catalogues: Vec<&'r EnvironmentFile>,
}

impl<'r> SortedParts<'r> {
    fn of(readings: &'r FileList) -> Self {
        let mut sorted = Self::default();
        for reading in readings.iter() {
            match &reading.parts {
                FileParts::Nothing | FileParts::Tests(_) => {}
                FileParts::Groups(found) => sorted.groups.extend(found),
                FileParts::Node(found) => sorted.individuals.push(found),
                FileParts::Environment(found) => sorted.catalogues.push(found),
            }
        }
        sorted
    }
}

/// Returns what is wrong with the files together, whatever the groups are.
fn of_commit(layout: &Layout, readings: &FileList, search: Search) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    if search != Search::Decisive {
        // Tests decide nothing about what a commit answers, so the daemon ignores them.
        let tests = readings.iter().flat_map(|it| it.tests());
        found.extend(tests.filter_map(test_case::empty_expectation));
    }
    for reading in readings.iter() {
        if let FileParts::Node(file) = &reading.parts {
            found.extend(file.dollars.iter().filter_map(|it| it.finding(layout.interpolation)));
        }
    }
    let has_groups = readings.iter().any(|it| !it.groups().is_empty());
    if !has_groups && !layout.allow_empty && are_read(layout, readings) {
        let message = format!("there is no node group below `{}/`", layout.groups);
        found.push(no_groups(layout.groups.as_str().into(), message));
    }
    found
}

/// Returns whether every file could be read that has node groups, or says where they are: what is wrong with one that
/// could not is said, and groups may be in it.
fn are_read(layout: &Layout, readings: &FileList) -> bool {
    // The settings say where they are, and have no kind.
    let may_have_groups =
        |it: &FileReading| kind_of(it, layout).is_none_or(|it| it == FileKind::Groups);
    readings.remarked().iter().all(|it| are_warnings(&it.diagnostics) || !may_have_groups(it))
}

/// Returns whether all groups are known: those of a file that could not be read to its end are not.
fn known_groups(layout: &Layout, readings: &FileList) -> KnownGroups {
    let is_cut_off =
        |it: &FileReading| it.is_cut_off && kind_of(it, layout) == Some(FileKind::Groups);
    match readings.remarked().iter().any(|it| is_cut_off(it)) {
        true => KnownGroups::Part,
        false => KnownGroups::All,
    }
}

/// Returns what a file is for.
fn kind_of(reading: &FileReading, layout: &Layout) -> Option<FileKind> {
    match &reading.parts {
        FileParts::Groups(_) => Some(FileKind::Groups),
        FileParts::Node(_) => Some(FileKind::Node),
        FileParts::Environment(_) => Some(FileKind::Environment),
        FileParts::Tests(_) => Some(FileKind::Tests),
        FileParts::Nothing => layout.kind_at(&reading.path),
    }
}

/// Keeps the findings that there is room for.
fn bounded(found: Vec<Diagnostic>, meter: &Meter) -> Arc<[Arc<Diagnostic>]> {
    let fits = |it: &Diagnostic| meter.finding(weight(it.severity)) == Room::Kept;
    found.into_iter().filter(fits).map(Arc::new).collect()
}
