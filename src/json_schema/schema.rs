//! A schema that values are held to.

use std::sync::Arc;

use jsonschema::Validator;
use serde_json::Value;

use super::cost::SchemaCosts;
use super::documents::Documents;
use super::graph::SchemaPart;
use super::violation::{FaultyPart, VIOLATIONS, Violation, violations};
use crate::wording::counted;

/// How many violations looks may bring about at most where they are told one by one: the library makes all of them at once.
const TOLD: u64 = 400_000;

/// How often they may look at parts of values to find the field of one that breaks them.
const TRIED: u64 = 20_000_000;

/// A schema that values are held to.
#[derive(Debug)]
pub struct Schema {
    pub(super) validator: Validator,
    /// The number of its file.
    pub(super) root: usize,
    pub(super) costs: SchemaCosts,
    /// How many violations one look may bring about.
    pub(super) most_missing: u64,
    pub(super) documents: Arc<Documents>,
}

impl Schema {
    /// Returns whether the schema allows a value.
    pub fn is_valid(&self, value: &Value) -> bool {
        self.is_affordable(value) && self.validator.is_valid(value)
    }

    /// Returns what the schema does not allow of a value.
    pub fn violations(&self, value: &Value) -> Vec<Violation> {
        if !self.is_affordable(value) {
            return self.too_deep().into_iter().collect();
        }
        if self.cost_of(value).saturating_mul(self.most_missing) > TOLD {
            return self.too_large(value).into_iter().collect();
        }
        let errors = self.validator.iter_errors(value);
        let found = errors.flat_map(|it| violations(&it, &self.documents, self.root));
        found.take(VIOLATIONS).collect()
    }

    /// Returns the first part of the schema that a value breaks; `None` if there is none, or it would take
    /// too long to find it.
    pub fn failing_part(&self, value: &Value) -> Option<Value> {
        if !self.is_affordable(value) {
            return None;
        }
        let error = self.validator.validate(value).err()?;
        let found = violations(&error, &self.documents, self.root).into_iter().next();
        found.map(|it| it.part)
    }

    /// Returns how often schemas look at the parts of a value, at most.
    pub fn cost_of(&self, value: &Value) -> u64 {
        self.costs.looks.saturating_mul(count(value))
    }

    fn is_affordable(&self, value: &Value) -> bool {
        self.costs.deepest == usize::MAX || is_within(value, self.costs.deepest)
    }

    /// Says that a value breaks the schema somewhere, if it does.
    fn too_large(&self, value: &Value) -> Option<Violation> {
        let problem = format!(
            "the schema does not allow it: with {}, and {} at each at most, it takes too much memory to say where",
            counted(count(value), "value"),
            counted(self.costs.looks, "look")
        );
        let hint = "check it in parts, or correct what was changed last";
        if self.validator.is_valid(value) {
            return None;
        }
        let field = self.field_at_fault(value);
        let found = self.of_all(problem, hint)?;
        Some(Violation { instance: field.into_iter().collect(), ..found })
    }

    /// Returns the field without which the schema allows a value.
    fn field_at_fault(&self, value: &Value) -> Option<String> {
        let fields = value.as_object()?;
        let tries = fields.len() as u64;
        if self.cost_of(value).saturating_mul(tries) > TRIED {
            return None;
        }
        let is_it = |key: &&String| {
            let mut others = fields.clone();
            others.shift_remove(*key);
            self.validator.is_valid(&Value::Object(others))
        };
        fields.keys().find(is_it).cloned()
    }

    fn too_deep(&self) -> Option<Violation> {
        let (problem, hint) = match self.costs.deepest {
            0 => (
                "this schema takes too long for what is in a list or mapping".to_owned(),
                "have fewer alternatives in the schema",
            ),
            deepest => (
                format!(
                    "lists and mappings are nested over {deepest} deep, which takes this schema too long"
                ),
                "nest the value less, or simplify what refers to itself in the schema",
            ),
        };
        self.of_all(problem, hint)
    }

    /// Says something of a value as a whole.
    fn of_all(&self, problem: String, hint: &str) -> Option<Violation> {
        let root = SchemaPart { file: self.root, pointer: String::new() };
        Some(Violation {
            instance: Vec::new(),
            subject: FaultyPart::Value,
            problem,
            message: None,
            hints: vec![hint.to_owned()],
            schema: self.documents.place(&root)?,
            pointer: String::new(),
            part: Value::Null,
        })
    }
}

/// Returns how many values there are, this one counted.
fn count(value: &Value) -> u64 {
    match value {
        Value::Array(elements) => elements.iter().map(count).sum::<u64>() + 1,
        Value::Object(fields) => fields.values().map(count).sum::<u64>() + 1,
        _ => 1,
    }
}

/// Returns whether a value has at most so many levels.
fn is_within(value: &Value, levels: usize) -> bool {
    let Some(below) = levels.checked_sub(1) else {
        return !value.is_array() && !value.is_object();
    };
    match value {
        Value::Array(elements) => elements.iter().all(|it| is_within(it, below)),
        Value::Object(fields) => fields.values().all(|it| is_within(it, below)),
        _ => true,
    }
}
