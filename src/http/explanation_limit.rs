//! Bounds explanations: every comparison shows what it saw, so a large fact is repeated as often as rules mention it, and
//! every leaf shows what it inherits, so what many inherit is repeated as often.

use super::error::ApiError;
use crate::classification::Explanation;
use crate::model::{Condition, Node};
use crate::rule::count_explained;

/// How many bytes of facts and trusted data an explanation may copy.
const MOST: usize = 16 << 20;

/// How many bytes of memory the values that its leaves inherit may take: small values take a hundred times their text.
const INHERITED: usize = 32 << 20;

/// Checks that the explanation of some rules for a node is not too large, before it is made.
///
/// # Errors
///
/// Returns 413 `payload-too-large`: asked again, it is as large.
pub(super) fn check_explanation<'r>(
    rules: impl IntoIterator<Item = &'r Condition>,
    node: &Node,
) -> Result<(), ApiError> {
    let advice = "Ask about one group (`GET /controller/nodes/NAME/membership?group=ID`), or run `clade explain` in a clone of the repository.";
    check(rules, node, advice)
}

/// Checks that what the leaves of an explanation inherit is not too large, before it is written.
///
/// # Errors
///
/// Returns 413 `payload-too-large`: asked again, it is as large.
pub(super) fn check_inherited(explanation: &Explanation<'_>) -> Result<(), ApiError> {
    if explanation.inherited_memory() > INHERITED {
        return Err(ApiError::inherited_too_large(INHERITED >> 20));
    }
    Ok(())
}

/// Checks the comparisons of one group, for which there is no smaller question.
///
/// # Errors
///
/// Returns 413 `payload-too-large`.
pub(super) fn check_membership<'r>(
    rules: impl IntoIterator<Item = &'r Condition>,
    node: &Node,
) -> Result<(), ApiError> {
    check(rules, node, "Run `clade explain` in a clone of the repository.")
}

fn check<'r>(
    rules: impl IntoIterator<Item = &'r Condition>,
    node: &Node,
    advice: &str,
) -> Result<(), ApiError> {
    let mut rules = rules.into_iter();
    let left = rules.try_fold(MOST, |left, rule| count_explained(rule, node, left));
    left.map(|_| ()).ok_or_else(|| ApiError::explanation_too_large(MOST >> 20, advice))
}

#[cfg(test)]
mod tests {
    use axum::body::{Body, to_bytes};
    use axum::http::Request;
    use serde_json::{Value, json};

    use crate::http::fixture::Fixture;
    use crate::http::privacy::PrivacyPolicy;
    use crate::http::request_context::RequestContext;
    use crate::http::router::RouteSet;

    /// Seventy groups inherit a text of half a MiB: 35 MiB in all.
    #[tokio::test]
    async fn an_explanation_in_which_many_groups_inherit_a_large_value_is_an_error() {
        for (leaves, expected) in [(60, 200), (70, 413)] {
            let text = "x".repeat(512 << 10);
            let parent = format!(
                "name: P\nid: 58463036-0efa-4365-b367-b5401c0711d3\nvariables: {{v: {text}}}\nrule: [\"=\", name, n]\n"
            );
            let child = |number: usize| {
                format!(
                    "name: C{number}\nid: 58463036-0efa-4365-b367-b5401c07{number:04}\nparent: P\nrule: [\"=\", name, n]\n"
                )
            };
            let groups: Vec<String> =
                std::iter::once(parent).chain((1..=leaves).map(child)).collect();
            let groups = groups.join("---\n");
            let fixture =
                Fixture::of(RouteSet::Whole, [&groups, &groups], PrivacyPolicy::default());
            let node = "/v1/classified/nodes/n";
            assert_eq!(ask(&fixture, "POST", node, "{}").await.0, 200, "the answer is small");
            let (status, answer) =
                ask(&fixture, "POST", &format!("{node}/explanation"), "{}").await;
            let kind = (expected == 413).then_some("payload-too-large");
            assert_eq!((status, answer["kind"].as_str()), (expected, kind), "{leaves}");
        }
    }

    /// Makes a daemon with a group whose rule compares one fact so many times.
    fn fixture(terms: usize) -> Fixture {
        let terms = vec![r#"["=", ["fact", "x"], "a"]"#; terms].join(", ");
        let id = "58463036-0efa-4365-b367-b5401c0711d3";
        let group = format!("name: A\nid: {id}\nrule: [or, [\"=\", name, n], {terms}]\n");
        Fixture::of(RouteSet::Whole, [&group, &group], PrivacyPolicy::default())
    }

    async fn ask(fixture: &Fixture, method: &str, path: &str, body: &str) -> (u16, Value) {
        let request = Request::builder().method(method).uri(path);
        let mut request = request.body(Body::from(body.to_owned())).unwrap();
        RequestContext::of_mut(request.extensions_mut()).peer.is_local = true;
        let answer = fixture.answer(request).await;
        let status = answer.status().as_u16();
        let body = to_bytes(answer.into_body(), 64 << 20).await.unwrap();
        (status, serde_json::from_slice(&body).unwrap())
    }

    #[tokio::test]
    async fn an_explanation_that_repeats_a_large_fact_too_often_is_an_error() {
        let body = json!({"fact": {"x": "b".repeat(300_000)}}).to_string();
        for (terms, is_shown) in [(55, true), (57, false)] {
            let fixture = fixture(terms);
            let node = "/v1/classified/nodes/n";
            assert_eq!(ask(&fixture, "POST", node, &body).await.0, 200, "the answer is small");
            let group = "58463036-0efa-4365-b367-b5401c0711d3";
            let explanation = format!("{node}/explanation");
            let membership = format!("/controller/nodes/n/membership?group={group}");
            for (method, path, body) in [
                ("POST", &explanation, &*body),
                ("GET", &explanation, ""),
                ("GET", &membership, ""),
            ] {
                let (status, answer) = ask(&fixture, method, path, body).await;
                let kind = (!is_shown).then_some("payload-too-large");
                let expected = if is_shown { 200 } else { 413 };
                assert_eq!((status, answer["kind"].as_str()), (expected, kind), "{path}");
                let advises = answer["msg"].as_str().is_some_and(|it| it.contains("/membership"));
                assert_eq!(advises, !is_shown && *path != membership, "{path}: {}", answer["msg"]);
            }
            let (status, listed) = ask(&fixture, "GET", "/v1/nodes?facts=true", "").await;
            let entry = &listed[0]["check_ins"][0];
            assert_eq!(status, 200);
            assert_eq!(entry["explanation"].get(group).is_some(), is_shown);
            assert_eq!(entry["error"]["kind"].as_str().is_none(), is_shown);
            assert!(entry["classification"].is_object() && listed[0]["error"].is_null());
        }
    }
}
