//! The nodes that a rule matches, before it is written anywhere.

use axum::Json;
use axum::body::Body;
use axum::extract::{FromRef, State};
use serde_json::{Value, json};

use super::blocking::{Panicked, STORE, Turns, run_blocking};
use super::body::{RULE_VALUES, read_json_within};
use super::client_presence::{ClientPresence, ClientWatch};
use super::error::ApiError;
use super::fleet::{self, ReadNode, Surveyor, UseRows};
use super::node_lookup::FactsPolicy;
use super::openapi::errors::{PageErrors, RuleBodyErrors, RuleErrors, StoreErrors};
use super::openapi::parameters::{RuleParameter, SearchPage};
use super::privacy::PrivacyPolicy;
use super::query::Parameters;
use super::types::{ErrorKind, Finding, RuleMatches, RuleQuery};
use crate::changeset::{SHOWN_PROBLEMS, first_problems};
use crate::diagnostic::Severity;
use crate::mentioned::MentionedPaths;
use crate::model::Node;
use crate::rule::{RuleSearch, SearchRange};
use crate::store::{CheckIns, ScanExtent};
use crate::validation::TypedRule;

/// How many nodes a page has unless the request says how many.
const PAGE: usize = 100;

/// How many nodes a page has at most: names alone are short, and each page reads the whole fleet.
const LARGEST_PAGE: usize = 10_000;

/// How many nodes a brief search has: it takes about as long as another page, unless their facts are large or come
/// from elsewhere.
const BRIEF: usize = 1000;

/// Brief searches do not wait for long ones.
static BRIEF_SEARCHES: Turns = Turns::new();

/// Searches run one at a time: each reads the facts of the whole fleet.
static SEARCHES: Turns = Turns::new();

/// Searches the nodes that have checked in by rules.
#[derive(Clone, Debug)]
pub(super) struct NodeSearcher {
    check_ins: CheckIns,
    facts: FactsPolicy,
    privacy: PrivacyPolicy,
}

impl<S> FromRef<S> for NodeSearcher
where
    CheckIns: FromRef<S>,
    FactsPolicy: FromRef<S>,
    PrivacyPolicy: FromRef<S>,
{
    fn from_ref(state: &S) -> Self {
        Self {
            check_ins: CheckIns::from_ref(state),
            facts: FactsPolicy::from_ref(state),
            privacy: PrivacyPolicy::from_ref(state),
        }
    }
}

/// Finds the nodes that a rule matches, of those that have checked in.
#[utoipa::path(
    get, path = "/controller/query", operation_id = "query", tag = "Controller",
    params(RuleParameter, SearchPage),
    responses(
        (status = 200, body = RuleMatches),
        RuleErrors,
        PageErrors,
        StoreErrors,
    ),
)]
pub(super) async fn query(
    State(searcher): State<NodeSearcher>,
    parameters: Parameters,
) -> Result<Json<RuleMatches>, ApiError> {
    let (range, extent) = (range_of(&parameters)?, extent_of(&parameters)?);
    let Some(rule) = parameters.get("rule") else {
        let error = "the parameter `rule` is missing";
        return Err(ApiError::schema_violation(Value::Null, "RuleQuery", error.into()));
    };
    searcher.search(rule.to_owned(), range, extent).await.map(Json)
}

/// Finds the nodes that the rule of a body matches, of those that have checked in.
#[utoipa::path(
    post, path = "/controller/query", operation_id = "query_by_body", tag = "Controller",
    params(SearchPage),
    request_body = RuleQuery,
    responses(
        (status = 200, body = RuleMatches),
        RuleBodyErrors,
        PageErrors,
        StoreErrors,
    ),
)]
pub(super) async fn query_by_body(
    State(searcher): State<NodeSearcher>,
    parameters: Parameters,
    body: Body,
) -> Result<Json<RuleMatches>, ApiError> {
    let (range, extent) = (range_of(&parameters)?, extent_of(&parameters)?);
    let body = read_json_within(body, RULE_VALUES).await?.unwrap_or_default();
    let rule = RuleQuery::read(body)?.into_text();
    searcher.search(rule, range, extent).await.map(Json)
}

fn range_of(parameters: &Parameters) -> Result<SearchRange, ApiError> {
    Ok(SearchRange {
        offset: parameters.number("offset")?.unwrap_or(0),
        limit: parameters.number("limit")?.unwrap_or(PAGE).min(LARGEST_PAGE),
    })
}

fn extent_of(parameters: &Parameters) -> Result<ScanExtent, ApiError> {
    Ok(parameters.number("search")?.map_or(ScanExtent::All, ScanExtent::First))
}

impl NodeSearcher {
    /// Finds the nodes that a rule matches, in either notation.
    ///
    /// # Errors
    ///
    /// Returns 400 with all findings for a rule that is not valid, and an error if nodes cannot be read.
    pub(super) async fn search(
        &self,
        rule: String,
        range: SearchRange,
        extent: ScanExtent,
    ) -> Result<RuleMatches, ApiError> {
        let turns = match extent {
            ScanExtent::First(nodes) if nodes <= BRIEF && !self.check_ins.may_be_incomplete() => {
                &BRIEF_SEARCHES
            }
            _ => &SEARCHES,
        };
        let turn = turns.take().await?;
        let permit = STORE.admit().await?;
        let searcher = self.clone();
        let presence = ClientPresence::default();
        let watch = presence.watch();
        let search = move || {
            let _permits = (turn, permit);
            searcher.search_now(&rule, range, extent, &watch)
        };
        let done = run_blocking(search).await;
        done.map_err(|Panicked| ApiError::internal("The nodes could not be searched."))?
    }

    /// Finds the nodes. Blocking.
    fn search_now(
        &self,
        rule: &str,
        range: SearchRange,
        extent: ScanExtent,
        watch: &ClientWatch,
    ) -> Result<RuleMatches, ApiError> {
        let TypedRule { condition, diagnostics } = TypedRule::read(rule);
        let Some(condition) = condition else {
            return Err(invalid(rule, diagnostics.iter().map(Finding::from).collect()));
        };
        let paths = MentionedPaths::of_rule(&condition);
        let search = RuleSearch::new(condition);
        let mut matches = search.matches(range);
        // A value may have been stored before it was masked: a rule must not find it out.
        let examine = |node: Node| search.examine(&self.privacy.shown(node));
        let surveyor = Surveyor { examine: &examine, paths: &paths, facts: &self.facts, watch };
        let read = |each: UseRows<'_, ReadNode>| fleet::read(&self.check_ins, &paths, extent, each);
        let unreadable = surveyor.survey(read, &mut |it| matches.add(it))?;
        let known = match extent {
            ScanExtent::All => 0,
            ScanExtent::First(_) => self.check_ins.size()?.nodes,
        };
        let searched = matches.searched.saturating_add(unreadable.len() as u64);
        let unsearched = known.saturating_sub(searched);
        Ok(RuleMatches {
            unsearched,
            ..RuleMatches::of(&search, &matches, &diagnostics, unreadable)
        })
    }
}

/// Returns the error for a rule that is not valid, with the first that was found in it.
fn invalid(rule: &str, findings: Vec<Finding>) -> ApiError {
    let errors = findings.iter().filter(|it| it.severity == Severity::Error.as_str());
    let error = first_problems(errors.map(|it| &it.message), "; ");
    let message = format!("The rule is not valid: {error}.");
    let diagnostics: Vec<Value> =
        findings.into_iter().take(SHOWN_PROBLEMS).map(Value::from).collect();
    ApiError::new(
        ErrorKind::SchemaViolation,
        message,
        json!({"submitted": rule, "schema": "Rule", "error": error, "diagnostics": diagnostics}),
    )
}
