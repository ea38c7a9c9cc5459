//! Classes and parameters that the catalogue of an environment does not have.

use std::collections::{BTreeMap, BTreeSet};

use super::layout::Strictness;
use super::tree::GroupPlaces;
use crate::diagnostic::{Diagnostic, Kind, Severity, closest};
use crate::hierarchy::{Catalogue, GroupIndex, Hierarchy};
use crate::model::{ClassName, EnvironmentName, GroupId, Key};

/// Checks every class that a group sets or inherits against its environment's catalogue.
///
/// A finding stands where the class is written, once for each environment in which it is missing.
pub(super) fn check(
    hierarchy: &Hierarchy,
    catalogues: &BTreeMap<EnvironmentName, Catalogue>,
    places: &BTreeMap<GroupId, GroupPlaces<'_>>,
    strictness: Strictness,
    diagnostics: &mut Vec<Diagnostic>,
) {
    let severity = match strictness {
        Strictness::Off => return,
        Strictness::Warn => Severity::Warning,
        Strictness::Error => Severity::Error,
    };
    let mut missing: BTreeSet<Missing<'_>> = BTreeSet::new();
    for index in hierarchy.indexes() {
        let environment = &hierarchy.group(index).environment;
        let Some(catalogue) = catalogues.get(environment) else { continue };
        for source in hierarchy.lineage(index) {
            for (class, parameters) in hierarchy.group(source).classes.as_ref() {
                match catalogue.classes.get(class) {
                    None => {
                        missing.insert(Missing { source, class, parameter: None, environment });
                    }
                    Some(known) => {
                        let unknown = parameters.keys().filter(|it| !known.contains_key(*it));
                        missing.extend(unknown.map(|parameter| Missing {
                            source,
                            class,
                            parameter: Some(parameter),
                            environment,
                        }));
                    }
                }
            }
        }
    }
    for it in missing {
        let Some(catalogue) = catalogues.get(it.environment) else { continue };
        if let Some(mut found) = report(&it, hierarchy, catalogue, places) {
            found.severity = severity;
            diagnostics.push(found);
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Missing<'h> {
    source: GroupIndex,
    class: &'h ClassName,
    parameter: Option<&'h Key>,
    environment: &'h EnvironmentName,
}

fn report(
    missing: &Missing<'_>,
    hierarchy: &Hierarchy,
    catalogue: &Catalogue,
    places: &BTreeMap<GroupId, GroupPlaces<'_>>,
) -> Option<Diagnostic> {
    let Missing { source, class, parameter, environment } = missing;
    let group = hierarchy.group(*source);
    let written =
        places.get(&group.id)?.classes.iter().find(|it| it.name.as_ref() == class.as_str())?;
    let (kind, place, message, similar) = match parameter {
        None => {
            let known = catalogue.classes.keys().map(ClassName::as_str);
            let message = format!("the environment `{environment}` has no class `{class}`");
            (Kind::MissingClass, &written.place, message, closest(class.as_str(), known))
        }
        Some(parameter) => {
            let known = catalogue.classes.get(*class)?.keys().map(Key::as_str);
            let message = format!(
                "the class `{class}` has no parameter `{parameter}` in the environment `{environment}`"
            );
            let written =
                written.parameters.iter().find(|it| it.name.as_ref() == parameter.as_str())?;
            let similar = closest(parameter.as_str(), known);
            (Kind::MissingParameter, &written.place, message, similar)
        }
    };
    let found = Diagnostic::new(kind, place.clone(), message).in_group(group.name.as_str());
    Some(match similar {
        Some(similar) => found.with_help(format!("did you mean `{similar}`?")),
        None => found.with_help(format!(
            "the catalogue is `{environment}` in the directory of environments"
        )),
    })
}
