//! A rule, typed: what is wrong with it, and which nodes it matches before it is written anywhere.

use askama::Template;
use axum::response::Response;

use super::context::PageError;
use super::layout::{PageFrame, Section, escaped};
use super::markup as m;
use super::pager::Pager;
use super::rule_text as r;
use super::visit::Visit;
use crate::http::types::{Finding, RuleMatches};

/// How many nodes a page has.
const PAGE: usize = 100;

/// How many nodes of which it is not known whether the rule matches them are named.
const UNDECIDED: usize = 5;

/// How many nodes are searched at once for a first answer; a whole fleet takes about ten microseconds a node.
const FIRST: usize = 1000;

#[derive(Debug, Template)]
#[template(path = "query.html")]
struct RulePage {
    layout: PageFrame,
    rule: String,
    matches: Option<RuleMatches>,
    pager: Pager,
    /// Where all nodes are searched, if these are the first ones only.
    whole: Option<String>,
    /// Where programs get the answer.
    json: String,
    /// What is wrong with the rule, or noticed.
    findings: Vec<Finding>,
    /// The rule as the lines of a file of a group.
    yaml: String,
}

/// Shows the page.
pub(super) async fn show(visit: Visit) -> Response {
    let page = page(&visit).await;
    visit.show(page)
}

async fn page(visit: &Visit) -> Result<RulePage, PageError> {
    let rule = visit.parameter("rule").to_owned();
    let mut page = RulePage {
        layout: visit.layout(Section::Query),
        matches: None,
        pager: Pager::new(0, (0, 0, PAGE), ""),
        whole: None,
        json: String::new(),
        findings: Vec::new(),
        yaml: String::new(),
        rule,
    };
    if page.rule.is_empty() {
        return Ok(page);
    }
    let offset = visit.offset();
    let rule = escaped(&page.rule);
    let is_whole = offset > 0 || visit.parameter("all") == "true";
    let first = if is_whole { String::new() } else { format!("&search={FIRST}") };
    let route = format!("/controller/query?rule={rule}&limit={PAGE}&offset={offset}{first}");
    let found: Result<RuleMatches, PageError> = visit.get(&route).await;
    match found {
        Ok(matches) => {
            let address = visit.links().plain(&format!("/query?rule={rule}&all=true"));
            page.pager = Pager::new(matches.total, (offset, matches.nodes.len(), PAGE), &address);
            page.json = visit.links().plain(&format!("/controller/query?rule={rule}&limit=1000"));
            page.whole = (matches.unsearched > 0).then_some(address);
            page.findings.clone_from(&matches.diagnostics);
            page.yaml = yaml(&matches);
            page.matches = Some(matches);
        }
        Err(trouble) => page.findings = findings(trouble)?,
    }
    Ok(page)
}

/// Returns the findings about a rule that is not valid.
fn findings(trouble: PageError) -> Result<Vec<Finding>, PageError> {
    let PageError::Api(error) = &trouble else { return Err(trouble) };
    if error.status.as_u16() != 400 {
        return Err(trouble);
    }
    let listed = error.error.details.get("diagnostics").cloned();
    let listed = listed.and_then(|it| serde_json::from_value::<Vec<Finding>>(it).ok());
    Ok(listed.unwrap_or_else(|| vec![Finding::of_commit(error.error.msg.clone())]))
}

/// Writes a rule as a line of a file of a group.
fn yaml(matches: &RuleMatches) -> String {
    match &matches.console {
        // A JSON string is one of YAML.
        Some(console) => format!("rule: {}", serde_json::Value::from(console.as_str())),
        None => format!("rule: {}", matches.rule),
    }
}

impl RulePage {
    /// Returns how many of the undecided nodes are not named.
    fn more_undecided(&self) -> u64 {
        let total = self.matches.as_ref().map_or(0, |it| it.undecided.total);
        total.saturating_sub(UNDECIDED as u64)
    }

    /// Returns the part of the rule before a finding, the part that it is about, and the rest; of its line.
    fn marked(&self, finding: &Finding) -> Option<(String, String, String)> {
        let line = finding.line?;
        let start = usize::try_from(finding.column?).ok()?.checked_sub(1)?;
        let text = self.rule.lines().nth(usize::try_from(line).ok()?.checked_sub(1)?)?;
        let end = match (finding.end_line, finding.end_column) {
            (Some(end_line), Some(end)) if end_line == line => usize::try_from(end).ok()?,
            _ => text.chars().count() + 1,
        };
        let length = end.saturating_sub(1).saturating_sub(start).max(1);
        let before = text.chars().take(start).collect();
        let marked = text.chars().skip(start).take(length).collect();
        Some((before, marked, text.chars().skip(start + length).collect()))
    }
}
