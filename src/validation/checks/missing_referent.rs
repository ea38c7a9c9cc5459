//! Classes and parameters that the catalogue of an environment does not have.

use std::collections::BTreeSet;

use super::class_use::ClassUse;
use super::{Check, CheckContext, FindingScope, Findings, Run};
use crate::diagnostic::{Diagnostic, Kind};
use crate::hierarchy::{Catalogue, GroupIndex, has_parameter};
use crate::model::EnvironmentName;

pub(super) const CHECK: Check = Check {
    kinds: &[Kind::MissingClass, Kind::MissingParameter],
    scope: FindingScope::Descendants,
    run: Run::EachGroup(check),
};

/// Checks the classes that a group names against the catalogues of all environments in which they
/// are set: its own, and those of its descendants.
fn check<'r>(context: &CheckContext<'r>, source: GroupIndex, findings: &mut Findings<'_>) {
    let (hierarchy, catalogues) = (context.hierarchy, &context.catalogues.classes);
    let Some(severity) = context.policy.missing_referents.severity() else { return };
    let classes = hierarchy.group(source).classes.as_ref();
    if catalogues.is_empty() || classes.is_empty() {
        return;
    }
    let environments: BTreeSet<&EnvironmentName> =
        hierarchy.subtree(source).map(|it| &hierarchy.group(it).environment).collect();
    let mut add = |it: ClassUse<'_>, catalogue: &'r Catalogue| {
        if let Some(user) = it.user(context) {
            findings.add_with(source, severity, || {
                let mut found = report(&it, user, context, catalogue)?;
                found.severity = severity;
                Some(found)
            });
        }
    };
    for environment in environments {
        let Some(catalogue) = catalogues.get(environment) else { continue };
        for (class, parameters) in classes {
            let it = ClassUse { source, class, parameter: None, environment };
            match catalogue.classes.get(class) {
                None if context.catalogues.lacks_classes(environment) => {}
                None => add(it, catalogue),
                Some(_) if context.catalogues.lacks_parameters(environment, class) => {}
                Some(known) => {
                    // A null removes an inherited value, which needs no parameter.
                    let unknown = parameters
                        .iter()
                        .filter(|(name, value)| !value.is_null() && !has_parameter(known, name));
                    for (parameter, _) in unknown {
                        add(ClassUse { parameter: Some(parameter), ..it }, catalogue);
                    }
                }
            }
        }
    }
}

/// Reports what is missing and comes out first in the group `user`.
fn report<'r>(
    missing: &ClassUse<'_>,
    user: GroupIndex,
    context: &CheckContext<'r>,
    catalogue: &'r Catalogue,
) -> Option<Diagnostic> {
    let ClassUse { source, class, parameter, environment } = missing;
    let group = context.hierarchy.group(*source);
    let file = context.places.of(group.id)?;
    let (kind, place, message, similar) = match parameter {
        None => {
            let message = format!("the environment `{environment}` has no class `{class}`");
            let similar = context.names.class(class.as_str(), catalogue);
            (Kind::MissingClass, file.class_place(class)?, message, similar)
        }
        Some(parameter) => {
            let known = catalogue.classes.get(*class)?;
            let message = format!(
                "the class `{class}` has no parameter `{parameter}` in the environment `{environment}`"
            );
            let similar = context.names.parameter(parameter.as_str(), known);
            (Kind::MissingParameter, file.parameter_place(class, parameter)?, message, similar)
        }
    };
    let heir = Some(context.hierarchy.group(user)).filter(|_| user != *source);
    let message = match heir {
        Some(heir) => format!("{message}, where `{}` inherits it", heir.name),
        None => message,
    };
    let found = Diagnostic::new(kind, place, message).in_group(group.name.as_str());
    let found = missing.show_user(user, found, context);
    Some(match similar {
        Some(similar) => found.with_help(format!("did you mean `{similar}`?")),
        None => found.with_help(format!(
            "the catalogue is `{environment}` in the directory of environments"
        )),
    })
}
