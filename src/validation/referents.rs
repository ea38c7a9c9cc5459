//! Classes and parameters that the catalogue of an environment does not have.

use std::collections::BTreeSet;

use super::findings::Ground;
use super::layout::Strictness;
use super::uses::Use;
use crate::diagnostic::{Diagnostic, Kind, Severity, closest};
use crate::hierarchy::{Catalogue, GroupIndex};
use crate::model::{ClassName, EnvironmentName, Key};

/// Checks the classes that a group names against the catalogues of all environments in which they
/// are set: its own, and those of its descendants.
pub(super) fn check(ground: &Ground<'_>, source: GroupIndex, keep: &mut dyn FnMut(Diagnostic)) {
    let (hierarchy, catalogues) = (ground.hierarchy, &ground.catalogues.classes);
    let severity = match ground.strictness {
        Strictness::Off => return,
        Strictness::Warn => Severity::Warning,
        Strictness::Error => Severity::Error,
    };
    let classes = hierarchy.group(source).classes.as_ref();
    if catalogues.is_empty() || classes.is_empty() {
        return;
    }
    let environments: BTreeSet<&EnvironmentName> =
        hierarchy.subtree(source).map(|it| &hierarchy.group(it).environment).collect();
    let mut found = |it: Use<'_>, catalogue: &Catalogue| {
        // The text of a finding that is only counted is never made.
        if let Some(user) = it.user(hierarchy)
            && ground.keeps(severity)
            && let Some(mut found) = report(&it, user, ground, catalogue)
        {
            found.severity = severity;
            keep(found);
        }
    };
    for environment in environments {
        let Some(catalogue) = catalogues.get(environment) else { continue };
        for (class, parameters) in classes {
            let it = Use { source, class, parameter: None, environment };
            match catalogue.classes.get(class) {
                None => found(it, catalogue),
                Some(known) => {
                    // A null removes an inherited value, which needs no parameter.
                    let unknown = parameters
                        .iter()
                        .filter(|(name, value)| !value.is_null() && !known.contains_key(*name));
                    for (parameter, _) in unknown {
                        found(Use { parameter: Some(parameter), ..it }, catalogue);
                    }
                }
            }
        }
    }
}

/// Reports what is missing and comes out first in the group `user`.
fn report(
    missing: &Use<'_>,
    user: GroupIndex,
    ground: &Ground<'_>,
    catalogue: &Catalogue,
) -> Option<Diagnostic> {
    let Use { source, class, parameter, environment } = missing;
    let group = ground.hierarchy.group(*source);
    let written =
        ground.places.of(group.id)?.classes.iter().find(|it| it.name.as_ref() == class.as_str())?;
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
    let heir = Some(ground.hierarchy.group(user)).filter(|_| user != *source);
    let message = match heir {
        Some(heir) => format!("{message}, where `{}` inherits it", heir.name),
        None => message,
    };
    let found = Diagnostic::new(kind, place.clone(), message).in_group(group.name.as_str());
    let found = missing.show_user(user, found, ground);
    Some(match similar {
        Some(similar) => found.with_help(format!("did you mean `{similar}`?")),
        None => found.with_help(format!(
            "the catalogue is `{environment}` in the directory of environments"
        )),
    })
}
