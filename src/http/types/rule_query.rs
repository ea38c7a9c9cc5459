//! The nodes that a rule matches, before it is written anywhere.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::violation::SchemaViolation;
use super::{Finding, TranslatedRule};
use crate::diagnostic::Diagnostic;
use crate::model::Condition;
use crate::rule::{self, QueryFormat, RuleSearch, to_console, to_whole_query};

/// A rule to search nodes by.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct RuleQuery {
    /// The rule: a text in either notation, or the array form itself.
    pub rule: Value,
}

/// The nodes that a rule matches.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RuleMatches {
    /// The rule in the array form.
    #[schema(value_type = Condition)]
    pub rule: Value,
    /// The rule in the console's notation; null where that cannot say it.
    #[schema(required)]
    pub console: Option<String>,
    /// The rule as queries of `PuppetDB`.
    pub translated: TranslatedRule,
    /// The warnings about the rule, with places in its text.
    pub diagnostics: Vec<Finding>,
    /// How many nodes were searched.
    pub searched: u64,
    /// How many nodes were not, because the request asked for the first ones only.
    #[serde(default)]
    pub unsearched: u64,
    /// How many nodes match.
    pub total: u64,
    /// Those of the page, by name.
    pub nodes: Vec<MatchedNode>,
    /// The nodes of which it is not known whether they match.
    pub undecided: UndecidedNodes,
    /// The paths that the rule reads, up to 64, with how many nodes have a value there.
    pub paths: Vec<RulePath>,
    /// Why some nodes were not searched.
    pub unreadable: Vec<String>,
}

/// A node that a rule matches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MatchedNode {
    /// Its certname.
    pub name: String,
}

/// The nodes of which it is not known whether a rule matches them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UndecidedNodes {
    /// How many there are.
    pub total: u64,
    /// The first of them by name, as many as a page has.
    pub nodes: Vec<UndecidedNode>,
}

/// A node of which it is not known whether a rule matches it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UndecidedNode {
    /// Its certname.
    pub name: String,
    /// Why it is not known.
    pub error: String,
}

/// A path that a rule reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RulePath {
    /// The path, in the console's notation.
    pub path: String,
    /// How many nodes have a value there.
    pub nodes: u64,
}

impl RuleQuery {
    /// Reads a body.
    pub(in crate::http) fn read(mut body: Value) -> Result<Self, SchemaViolation> {
        let is_object = body.is_object();
        let error = match body.get_mut("rule") {
            Some(rule @ (Value::String(_) | Value::Array(_))) => {
                return Ok(Self { rule: rule.take() });
            }
            Some(_) => "({:rule (not (or (string? rule) (sequential? rule)))})",
            None if is_object => "({:rule missing-required-key})",
            None => "(not (map? the-body))",
        };
        Err(SchemaViolation { schema: "RuleQuery", submitted: body, error: error.to_owned() })
    }

    /// Returns the rule as text.
    pub(in crate::http) fn into_text(self) -> String {
        match self.rule {
            Value::String(text) => text,
            array => array.to_string(),
        }
    }
}

impl RuleMatches {
    /// Describes the result of a search.
    pub fn of(
        search: &RuleSearch,
        matches: &rule::RuleMatches,
        diagnostics: &[Diagnostic],
        unreadable: Vec<String>,
    ) -> Self {
        let condition = search.condition();
        let name = |name: &str| MatchedNode { name: name.to_owned() };
        let undecided = matches
            .errors()
            .map(|(name, error)| UndecidedNode { name: name.to_owned(), error: error.to_string() });
        let paths = matches.paths.iter();
        let paths = paths.map(|(path, nodes)| RulePath { path: path.to_string(), nodes: *nodes });
        Self {
            rule: rule::to_value(condition),
            console: to_console(condition).ok(),
            translated: translated(condition),
            diagnostics: diagnostics.iter().map(Finding::from).collect(),
            searched: matches.searched,
            unsearched: 0,
            total: matches.total,
            nodes: matches.names().map(name).collect(),
            undecided: UndecidedNodes { total: matches.undecided, nodes: undecided.collect() },
            paths: paths.collect(),
            unreadable,
        }
    }
}

/// Returns the queries of a rule; null where there is none.
fn translated(condition: &Condition) -> TranslatedRule {
    let query = |format| to_whole_query(condition, format).unwrap_or_default();
    TranslatedRule {
        nodes_query_format: query(QueryFormat::Nodes),
        inventory_query_format: query(QueryFormat::Inventory),
    }
}
