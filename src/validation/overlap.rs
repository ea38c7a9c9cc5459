//! Findings about groups that can match one node and give it different values.

use serde_json::{Map, Value};

use super::group::GroupFile;
use super::layout::Strictness;
use super::places::Places;
use super::silence::Silence;
use crate::classification::{Alarm, Differing, Evidence, Overlap, Pair, Rank, Setting, overlaps};
use crate::diagnostic::{Diagnostic, Kind, Place, Severity};
use crate::document::{Span, bounded};
use crate::hierarchy::{Estate, GroupIndex};
use crate::model::{Node, Path, Segment};
use crate::rule::Solver;
use crate::wording::{and_more, listed};

/// How much of a witness is shown.
const SHOWN: usize = 4;

/// How many pairs of one alarm are shown beside the first.
const MORE_PAIRS: usize = 4;

/// How many settings of a pair are named.
const SETTINGS: usize = 3;

/// How many alarms people read: about a page.
const PAGE: usize = 10;

/// How many alarms are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShownAlarms {
    /// Those that matter most.
    Page,
    /// All of them.
    All,
}

/// Looks for groups that can conflict.
pub(super) fn check(
    estate: &Estate,
    places: Places<'_>,
    strictness: Strictness,
    evidence: &Evidence,
    shown: ShownAlarms,
    solver: Solver,
) -> Vec<Diagnostic> {
    let Some(severity) = strictness.severity() else { return Vec::new() };
    let finder = ConflictWriter { estate, places };
    // No comment silences an error.
    let silence = Silence::of(places.readings);
    let can_be_silenced = severity == Severity::Warning && silence.has(Kind::PotentialConflict);
    let acknowledged = |group: GroupIndex, setting: Setting<'_>| {
        can_be_silenced
            && finder
                .place(group, setting)
                .is_some_and(|it| silence.names(&it, Kind::PotentialConflict))
    };
    let found = overlaps(estate, evidence, &acknowledged, solver);
    let limit = match shown {
        ShownAlarms::Page => PAGE,
        ShownAlarms::All => usize::MAX,
    };
    let mut reports = found.alarms.iter().filter_map(|it| finder.report(it, severity));
    let mut all: Vec<Diagnostic> = reports.by_ref().take(limit).collect();
    all.extend(more(reports.count(), severity));
    all.extend(found.ended_at.and_then(|it| unfinished(it, estate, places)));
    all
}

/// Says how many alarms are not shown.
fn more(count: usize, severity: Severity) -> Option<Diagnostic> {
    let message = match count {
        0 => return None,
        1 => "1 more possible conflict is not shown".to_owned(),
        count => format!("{count} more possible conflicts are not shown"),
    };
    let place = Place { file: ".".into(), span: Span::START };
    let mut found = Diagnostic::new(Kind::PotentialConflict, place, message).with_help(
        "correct those that are shown first, or see all with `clade validate --all-conflicts`",
    );
    found.severity = severity;
    Some(found)
}

/// Says that not all groups were compared.
pub(super) fn unfinished(
    ended_at: GroupIndex,
    estate: &Estate,
    places: Places<'_>,
) -> Option<Diagnostic> {
    let mut at = estate.hierarchy.lineage(ended_at);
    let written = at.find_map(|it| places.of(estate.hierarchy.group(it).id))?;
    let message = "there are more groups that set the same differently than can be compared: the search for conflicts ended at this group";
    let mut found = Diagnostic::new(Kind::PotentialConflict, written.place(), message).with_help(
        "run `clade validate --facts` with the facts of real nodes, which looks at all groups",
    );
    found.group = written.name().map(|it| bounded(it.to_string()));
    found.severity = Severity::Warning;
    Some(found)
}

#[derive(Clone, Copy)]
struct ConflictWriter<'w> {
    estate: &'w Estate,
    places: Places<'w>,
}

impl<'w> ConflictWriter<'w> {
    fn report(&self, alarm: &Alarm<'w>, severity: Severity) -> Option<Diagnostic> {
        let mut seen = alarm.pairs.iter().filter_map(|pair| {
            let overlap = alarm.overlap(self.estate, pair)?;
            let first = overlap.settings.first().copied()?;
            Some((pair, overlap, first))
        });
        let (pair, overlap, first) = seen.next()?;
        let place = self.place(first.by, first.setting)?;
        let (group, other) = (self.group_name(pair.group), self.group_name(pair.other));
        let is_real = pair.rank == Rank::Real;
        let mut message = format!(
            "`{group}` and `{other}` {} the same node and {}, {} {}",
            if is_real { "match" } else { "can match" },
            self.differ(pair, first, &overlap),
            if is_real { "seen on" } else { "e.g." },
            describe(&overlap.witness, is_real)
        );
        let rest = alarm.pairs.len() - 1;
        if rest > 0 || alarm.is_cut {
            let least = if alarm.is_cut { "at least " } else { "" };
            let pairs = if rest == 1 { "pair" } else { "pairs" };
            message = format!("{message}; so do {least}{rest} more {pairs} of groups");
        }
        let help = if first.by == pair.group && first.other_by == pair.other {
            "make one an ancestor of the other, let their rules exclude each other, or set it in one of them"
        } else {
            "set the same in both, let their rules exclude each other, or make one an ancestor of the other"
        };
        let mut found = Diagnostic::new(Kind::PotentialConflict, place, message)
            .in_group(self.estate.hierarchy.group(pair.group).name.as_str())
            .with_help(help);
        found.severity = severity;
        if let Some(place) = self.place(first.other_by, first.setting) {
            let by = self.group_name(first.other_by);
            let message = if first.other_by == pair.other {
                format!("`{by}` sets it here")
            } else {
                format!("`{other}` inherits this from `{by}`")
            };
            found = found.with_related(place, message);
        }
        for (pair, overlap, first) in seen.take(MORE_PAIRS) {
            let (group, other) = (self.group_name(pair.group), self.group_name(pair.other));
            // The groups that inherit a value are what pairs of one value differ in.
            let place = if first.other_by == pair.other {
                self.place(first.by, first.setting)
            } else {
                self.file(pair.other).map(GroupFile::place)
            };
            let node = describe(&overlap.witness, pair.rank == Rank::Real);
            if let Some(place) = place {
                let message = format!("`{group}` and `{other}` as well, e.g. {node}");
                found = found.with_related(place, message);
            }
        }
        Some(found)
    }

    /// Says what the groups of a pair differ in, and whose values they have.
    fn differ(&self, pair: &Pair, first: Differing<'_>, overlap: &Overlap<'_>) -> String {
        let is_alike = |it: &&Differing<'_>| (it.by, it.other_by) == (first.by, first.other_by);
        let alike: Vec<String> = overlap
            .settings
            .iter()
            .filter(is_alike)
            .take(SETTINGS)
            .map(|it| format!("`{}`", name(it.setting)))
            .collect();
        let named = alike.join(", ") + &and_more(overlap.settings.len() - alike.len());
        let side = |group, by| {
            if group == by {
                format!("`{}` sets", self.group_name(group))
            } else {
                format!("`{}` inherits from `{}`", self.group_name(group), self.group_name(by))
            }
        };
        if first.by == pair.group && first.other_by == pair.other {
            format!("set {named} differently")
        } else {
            let (mine, theirs) = (side(pair.group, first.by), side(pair.other, first.other_by));
            format!("differ in {named}, which {mine} and {theirs}")
        }
    }

    fn group_name(&self, index: GroupIndex) -> &'w str {
        self.estate.hierarchy.group(index).name.as_str()
    }

    fn file(&self, index: GroupIndex) -> Option<&'w GroupFile> {
        self.places.of(self.estate.hierarchy.group(index).id)
    }

    /// Returns where a group sets something: the parameter, or the group.
    fn place(&self, index: GroupIndex, setting: Setting<'_>) -> Option<Place> {
        let written = self.file(index)?;
        Some(parameter_place(written, setting).unwrap_or_else(|| written.place()))
    }
}

fn parameter_place(written: &GroupFile, setting: Setting<'_>) -> Option<Place> {
    let Setting::Parameter(class, name) = setting else { return None };
    written.parameter_place(class, name)
}

fn name(setting: Setting<'_>) -> String {
    match setting {
        Setting::Environment => "environment".to_owned(),
        Setting::Parameter(class, name) => format!("{class}::{name}"),
        Setting::Variable(name) => format!("${name}"),
        Setting::ConfigData(class, key) => format!("{class}::{key} (config data)"),
    }
}

/// Says what a node has that matters, or which known node it is.
fn describe(node: &Node, is_known: bool) -> String {
    if is_known {
        return format!("`{}`", node.name);
    }
    let mut parts = Vec::new();
    if node.name != Node::EXAMPLE {
        parts.push(format!("name = {}", Value::from(node.name.as_str())));
    }
    for (root, map) in [("fact", &node.fact), ("trusted", &node.trusted)] {
        flatten(&mut vec![Segment::Key(root.into())], map, &mut parts);
    }
    if parts.is_empty() { "any node".to_owned() } else { listed(parts.iter(), SHOWN) }
}

fn flatten(way: &mut Vec<Segment>, map: &Map<String, Value>, parts: &mut Vec<String>) {
    for (key, value) in map {
        way.push(Segment::Key(key.as_str().into()));
        visit(way, value, parts);
        way.pop();
    }
}

fn visit(way: &mut Vec<Segment>, value: &Value, parts: &mut Vec<String>) {
    let is_certname = matches!(way.as_slice(), [Segment::Key(root), Segment::Key(field)]
        if root.as_ref() == "trusted" && field.as_ref() == "certname");
    match value {
        Value::Null => {}
        Value::Object(map) => flatten(way, map, parts),
        Value::Array(elements) if elements.iter().any(Value::is_object) => {
            for (index, element) in (0..).zip(elements) {
                way.push(Segment::Index(index));
                visit(way, element, parts);
                way.pop();
            }
        }
        _ if is_certname => {}
        value => parts.push(format!("{} = {value}", Path::Segments(way.as_slice().into()))),
    }
}
