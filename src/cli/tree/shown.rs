//! What an explanation shows of the facts of its node.

use serde_json::Value;

use crate::classification::{
    self, ClassificationError, Explanation, Outcome, WithheldFacts, conclude,
};
use crate::masking::Masks;
use crate::model::Node;
use crate::rule::{Explained, ExplainedForm};

/// Masks the values that a rule saw; whether it holds stays.
pub(super) fn mask_seen(explained: &mut Explained<'_>, masks: &Masks) {
    match &mut explained.form {
        ExplainedForm::And(terms) | ExplainedForm::Or(terms) => {
            for term in terms {
                mask_seen(term, masks);
            }
        }
        ExplainedForm::Not(inner) => mask_seen(inner, masks),
        ExplainedForm::Test(test, value) => masks.mask_at(&test.path, value),
    }
}

/// Returns a classification with the facts of another node in its values.
pub(super) fn with_values_of<'e>(
    explanation: &Explanation<'e>,
    shown: &Node,
) -> Result<Explanation<'e>, ClassificationError> {
    let mut explanation = explanation.clone();
    if let Outcome::Classified(result) = &mut explanation.outcome {
        result.show_facts_of(explanation.estate, shown)?;
    }
    Ok(explanation)
}

/// Returns the explanation document of the API, as a daemon masks it.
pub(super) fn document(
    explanation: &Explanation<'_>,
    masks: &Masks,
) -> Result<Value, ClassificationError> {
    let mut fields = classification::explanation_fields(explanation);
    if let Some(matches) = fields.get_mut("match_explanations") {
        masks.mask_explanation(matches);
    }
    let shown = masks.node(explanation.node);
    let groups: Vec<_> = explanation.matches.iter().map(|it| it.group).collect();
    let concluded = conclude(explanation.estate, &shown, &groups, WithheldFacts::Mark)?;
    fields.extend(classification::explained_values(&concluded));
    Ok(classification::explanation_with(shown.into_owned(), fields))
}
