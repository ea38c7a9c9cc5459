//! What is stored, shown and logged of the facts and trusted data of requests.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;

use super::error::ApiError;
use crate::masking::{CommitForm, Masks, StoredForm};
use crate::model::{CommitId, Condition, MASKED, Node};
use crate::rule::read_console;
use crate::snapshot::Snapshot;
use crate::store::FactChange;

/// How many paths are remembered that have been warned about.
const WARNED_PATHS: usize = 1000;

/// What is stored, shown and logged of the facts and trusted data of requests.
#[derive(Clone, Debug, Default)]
pub struct PrivacyPolicy(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    form: StoredForm,
    last: Mutex<LastForm>,
}

/// The form of the commit that answered last.
#[derive(Debug, Default)]
struct LastForm {
    commit: Option<CommitId>,
    form: Option<CommitForm>,
    /// The paths that were warned about.
    warned: BTreeSet<String>,
}

impl PrivacyPolicy {
    /// Makes a policy of what is stored.
    pub fn new(form: StoredForm) -> Self {
        Self(Arc::new(Inner { form, last: Mutex::default() }))
    }

    /// Returns the masks.
    pub(super) fn masks(&self) -> &Masks {
        &self.0.form.masks
    }

    /// Returns a node as it is stored; without a commit that answers it, no path is mentioned.
    pub(super) fn stored_node<'n>(
        &self,
        node: &'n Node,
        answering: Option<&Snapshot>,
    ) -> Cow<'n, Node> {
        self.stored_form(answering).map_or(Cow::Borrowed(node), |it| it.node(node))
    }

    /// Returns the form in which facts and trusted data are stored; none if all is stored as it is.
    pub(super) fn stored_form(&self, answering: Option<&Snapshot>) -> Option<CommitForm> {
        let Some(snapshot) = answering else {
            return CommitForm::new(&self.0.form, Arc::default);
        };
        let mut last = self.0.last.lock();
        if last.commit != Some(snapshot.commit) {
            last.form = CommitForm::new(&self.0.form, || Arc::clone(snapshot.mentioned()));
            last.commit = Some(snapshot.commit);
            self.warn(snapshot, &mut last.warned);
        }
        last.form.clone()
    }

    /// Returns a node as it is shown.
    pub(super) fn shown(&self, mut node: Node) -> Node {
        self.masks().mask_node(&mut node);
        node
    }

    /// Returns a changed fact as it is shown. One that was stored before its mask is masked, too.
    pub(super) fn shown_change(&self, change: FactChange) -> FactChange {
        // The path is written as in rules.
        let path = match read_console(&format!("{} = x", change.path)) {
            Ok(Condition::Test(test)) => Some(test.path),
            _ => None,
        };
        let mask = |value: Option<Value>| {
            let mut value = value?;
            match &path {
                // Masks reach below the path as well.
                Some(path) => self.masks().mask_at(path, &mut value),
                None if self.masks().may_cover_text(&change.path) => value = MASKED.into(),
                None => self.masks().mask_anywhere(&mut value),
            }
            Some(value)
        };
        let (before, after) = (mask(change.before), mask(change.after));
        FactChange { before, after, ..change }
    }

    /// Masks what rules saw, in an explanation that is shown.
    pub(super) fn mask_explanation(&self, explanation: &mut Value) {
        self.masks().mask_explanation(explanation);
    }

    /// Returns an error as it is shown: it may repeat a part of the request.
    pub(super) fn shown_error(&self, error: ApiError) -> ApiError {
        error.masked(self.masks())
    }

    /// Warns, once for each path, that rules read masked values.
    fn warn(&self, snapshot: &Snapshot, warned: &mut BTreeSet<String>) {
        if self.masks().is_empty() {
            return;
        }
        for path in snapshot.mentioned().paths().filter(|it| self.masks().covers(it)) {
            let path = path.to_string();
            if warned.len() < WARNED_PATHS && warned.insert(path.clone()) {
                tracing::warn!(
                    commit = %snapshot.commit,
                    "rules read `{path}`, which a mask covers: nodes are classified by it while they send \
                     their facts, and requests that need the stored value get an error"
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::masking::StoredExtent;
    use crate::table::each_row;

    #[test]
    fn changed_facts_below_a_mask_are_masked() {
        let masks = ["os.secret", "trusted.extensions.*pass*"].map(|it| it.parse().unwrap());
        let form = StoredForm { masks: Masks::of_settings(&masks), facts: StoredExtent::All };
        let policy = PrivacyPolicy::new(form);
        let rows = [
            ("os.family", false),
            ("os.secret", true),
            ("os.secret.name", true),
            ("os.\"secret\"", true),
            // What cannot be read is masked rather than shown.
            ("\"os.secret\"", true),
            ("trusted.extensions.pp_role", false),
            ("trusted.extensions.pp_pass", true),
        ];
        each_row(rows, |(path, is_masked)| {
            let after = Some(Value::from(1));
            let shown = policy.shown_change(FactChange { path: path.into(), before: None, after });
            assert_eq!(shown.before, None);
            assert_eq!(shown.after == Some(MASKED.into()), is_masked, "{shown:?}");
        });
    }

    #[test]
    fn changed_facts_above_a_mask_are_masked_where_it_covers_them() {
        let masks = ["app.dsn", "trusted.extensions.*pass*"].map(|it| it.parse().unwrap());
        let form = StoredForm { masks: Masks::of_settings(&masks), facts: StoredExtent::All };
        let policy = PrivacyPolicy::new(form);
        let rows = [
            ("app", json!({"dsn": "s", "name": "a"}), json!({"dsn": MASKED, "name": "a"})),
            ("app", json!([{"dsn": "s"}, 1]), json!([{"dsn": MASKED}, 1])),
            ("app[0]", json!({"dsn": {"x": "s"}}), json!({"dsn": MASKED})),
            ("trusted.extensions", json!({"a_pass": "s"}), json!({"a_pass": MASKED})),
            ("app", json!({"x": {"db_password": "s"}}), json!({"x": {"db_password": MASKED}})),
            ("app", Value::Null, Value::Null),
            // Of what cannot be read it is not known where it belongs.
            ("\"app", json!({"app": {"dsn": "s"}}), json!({"app": {"dsn": MASKED}})),
        ];
        each_row(rows, |(path, value, shown)| {
            let change = FactChange {
                path: path.to_owned(),
                before: Some(value.clone()),
                after: Some(value),
            };
            let masked = policy.shown_change(change);
            assert_eq!((masked.before, masked.after), (Some(shown.clone()), Some(shown)));
        });
    }
}
