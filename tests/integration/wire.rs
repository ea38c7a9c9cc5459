//! Every answer is what its type writes: the bytes are read as the type, written again, and compared.
//!
//! Handlers mostly write the type itself. Classified documents, explanations, ENC documents, lists that are
//! streamed and comparisons are written elsewhere; this holds them to the type that the document shows.

use clade::internals::http::types::{
    BlamedValue, CheckIn, Class, Classified, ClassifiedV2, Commit, CountedNodes, Diff, EncDocument,
    Environment, Error, ErrorKind, Explanation, Group, GroupMembers, GroupNodes, GroupRules,
    GroupTree, LastClassUpdate, LocatedValue, Membership, NodePage, Pinned, Query, Requested,
    RuleMatches, Service, Status, StoredChange, StoredFacts, StoredNode,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::program::{Daemon, root};
use crate::readme::serve_fleet;
use crate::table::each_row;

/// Reads a text as a type and writes it again.
type Rewrite = fn(&str) -> Result<String, serde_json::Error>;

fn rewrite<T: Serialize + DeserializeOwned>(text: &str) -> Result<String, serde_json::Error> {
    serde_json::to_string(&serde_json::from_str::<T>(text)?)
}

/// Asks a route and compares what it answers with its type.
fn check(daemon: &Daemon, method: &str, path: &str, body: &str, rewrite: Rewrite) {
    let answer = daemon.request(method, path, body);
    let written = rewrite(&answer.body);
    assert_eq!(written.ok().as_deref(), Some(&*answer.body), "{method} {path}: {}", answer.status);
}

const WEB: &str = "36241e24-ecd8-4143-9145-932efae5ffb1";
const ROOT: &str = "00000000-0000-4000-8000-000000000000";

#[test]
fn answers_are_what_their_types_write() {
    let (_repository, daemon) = serve_fleet();
    let facts =
        std::fs::read_to_string(root().join("examples/facts/web1.example.com.json")).unwrap();
    let node = "/v1/classified/nodes/web1.example.com";
    let explanation = format!("{node}/explanation");
    let upload = format!(r#"{{"name": "web9.example.com", "facts": {facts}}}"#);
    let (group, tree) = (format!("/v1/groups/{WEB}"), format!("/v1/group-children/{ROOT}"));
    let (rules, nodes) = (format!("{group}/rules"), format!("{group}/nodes"));
    let membership = format!("/controller/nodes/web1.example.com/membership?group={WEB}");
    for (method, path, body, rewrite) in [
        ("POST", node, &*facts, rewrite::<Classified> as Rewrite),
        ("GET", node, "", rewrite::<Classified>),
        ("POST", "/v2/classified/nodes/web1.example.com", &facts, rewrite::<ClassifiedV2>),
        ("POST", &explanation, &facts, rewrite::<Explanation>),
        ("POST", "/v1/classified/nodes/nowhere/explanation", "", rewrite::<Explanation>),
        ("GET", &explanation, "", rewrite::<Explanation>),
        ("GET", "/v1/groups", "", rewrite::<Vec<Group>>),
        ("GET", "/v1/groups?inherited=true", "", rewrite::<Vec<Group>>),
        ("GET", &group, "", rewrite::<Group>),
        ("GET", &tree, "", rewrite::<Vec<GroupTree>>),
        ("GET", &rules, "", rewrite::<GroupRules>),
        ("GET", &nodes, "", rewrite::<GroupNodes>),
        ("POST", "/v1/rules/translate", r#"["=", "name", "x"]"#, rewrite::<Query>),
        (
            "POST",
            "/v1/validate/group",
            r#"{"name": "x", "description": "d", "parent": "00000000-0000-4000-8000-000000000000", "classes": {}}"#,
            rewrite::<Group>,
        ),
        ("GET", "/v1/classes", "", rewrite::<Vec<Class>>),
        ("GET", "/v1/environments", "", rewrite::<Vec<Environment>>),
        ("GET", "/v1/environments/production/classes/ntp", "", rewrite::<Class>),
        ("GET", "/v1/last-class-update", "", rewrite::<LastClassUpdate>),
        ("POST", "/api/hosts/facts", &upload, rewrite::<StoredFacts>),
        ("GET", "/v1/nodes?facts=true", "", rewrite::<Vec<CheckIn>>),
        ("GET", "/v1/nodes/web1.example.com", "", rewrite::<CheckIn>),
        ("GET", "/status/v1/services", "", rewrite::<indexmap::IndexMap<String, Service>>),
        ("GET", "/status/v1/services/rbac-service", "", rewrite::<Service>),
        ("GET", "/controller/status", "", rewrite::<Status>),
        ("GET", "/controller/commits", "", rewrite::<Vec<Commit>>),
        ("GET", "/controller/diff/HEAD/HEAD", "", rewrite::<Diff>),
        ("GET", "/controller/query?rule=name%20~%20web", "", rewrite::<RuleMatches>),
        ("POST", "/controller/query", r#"{"rule": "osfamily = x"}"#, rewrite::<RuleMatches>),
        ("GET", "/controller/node-counts", "", rewrite::<CountedNodes>),
        ("GET", "/controller/group-members", "", rewrite::<Vec<GroupMembers>>),
        ("GET", "/controller/nodes/web1.example.com/values", "", rewrite::<Vec<LocatedValue>>),
        ("GET", &membership, "", rewrite::<Membership>),
        ("GET", "/controller/nodes", "", rewrite::<NodePage>),
        ("GET", "/controller/nodes/web1.example.com", "", rewrite::<StoredNode>),
        ("GET", "/controller/nodes/web9.example.com", "", rewrite::<StoredNode>),
        ("GET", "/controller/nodes/web1.example.com/history", "", rewrite::<Vec<StoredChange>>),
        ("GET", "/controller/nodes/web1.example.com/blame", "", rewrite::<Vec<BlamedValue>>),
        ("POST", "/controller/reconcile", "", rewrite::<Requested>),
        ("POST", "/controller/pin", r#"{"commit": "HEAD"}"#, rewrite::<Pinned>),
        ("POST", "/controller/resume", "", rewrite::<Pinned>),
    ] {
        check(&daemon, method, path, body, rewrite);
    }
}

#[test]
fn an_enc_document_is_what_its_type_says() {
    let (_repository, daemon) = serve_fleet();
    let facts =
        std::fs::read_to_string(root().join("examples/facts/web1.example.com.json")).unwrap();
    for (method, body) in [("POST", &*facts), ("GET", "")] {
        let answer = daemon.request(method, "/enc/web1.example.com", body);
        // Its blanks are for readers of YAML.
        assert_eq!(rewrite::<EncDocument>(&answer.body).unwrap(), answer.json().to_string());
    }
}

#[test]
fn errors_are_what_their_type_writes_with_the_status_of_their_kind() {
    let (_repository, daemon) = serve_fleet();
    let rows = [
        ("GET", "/nowhere", ""),
        ("PUT", "/livez", ""),
        ("POST", "/v1/classified/nodes/n", "{"),
        ("POST", "/v1/classified/nodes/n", "[]"),
        ("GET", "/v1/groups/x", ""),
        ("GET", "/v1/groups?limit=x", ""),
        ("GET", "/v1/group-children/00000000-0000-4000-8000-000000000000?depth=-1", ""),
        ("GET", "/v1/groups?commit=nope", ""),
        ("POST", "/v1/rules/translate", "[]"),
        ("GET", "/controller/query?rule=name", ""),
        ("POST", "/controller/query", r#"{"rule": ["~", "name", "("]}"#),
        ("POST", "/v1/groups", "{}"),
        ("GET", "/v1/nodes/nowhere", ""),
        ("GET", "/status/v1/services?level=loud", ""),
    ];
    each_row(rows, |(method, path, body)| {
        let answer = daemon.request(method, path, body);
        let error: Error = serde_json::from_str(&answer.body).unwrap();
        assert_eq!(serde_json::to_string(&error).unwrap(), answer.body);
        let status = error.kind().map(ErrorKind::status);
        assert_eq!(status.map(|it| it.as_u16()), Some(answer.status), "{method} {path}: {error:?}");
    });
}
