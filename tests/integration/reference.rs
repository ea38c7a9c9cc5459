//! The reference: routes, metrics, settings and conditions are those of the program.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::process::Command;

use clade::internals::telemetry::Metrics;
use serde_json::Value;

use crate::program::{Daemon, root};
use crate::readme::{serve_fleet, updating};

/// People write the text above this line of a page.
const MARK: &str = "<!-- From here on UPDATE_DOCS=1 cargo test --test integration -- reference writes the page. -->\n";

fn page(name: &str) -> String {
    std::fs::read_to_string(root().join("docs/reference").join(name)).unwrap()
}

/// Checks or writes the generated part of a page.
fn generated(name: &str, text: &str) {
    let page = page(name);
    let (before, shown) = page.split_once(MARK).unwrap_or_else(|| panic!("{name} has no mark"));
    let expected = format!("\n{}", text.trim_start());
    if updating() {
        let path = root().join("docs/reference").join(name);
        std::fs::write(path, format!("{before}{MARK}{expected}")).unwrap();
    } else {
        assert_eq!(shown, expected, "run with UPDATE_DOCS=1 and read the difference");
    }
}

pub(crate) fn document() -> Value {
    let text = std::fs::read_to_string(root().join("src/http/openapi.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

const METHODS: [&str; 4] = ["get", "post", "put", "delete"];

#[test]
fn the_document_is_one_of_openapi() {
    let done = Command::new("openapi-spec-validator")
        .arg("src/http/openapi.json")
        .current_dir(root())
        .output();
    let Ok(done) = done else {
        eprintln!("skipped: needs openapi-spec-validator");
        return;
    };
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));
}

#[test]
fn the_document_is_what_the_program_generates() {
    let (_repository, daemon) = serve_fleet();
    let served = daemon.get("/openapi.json");
    assert_eq!(served.header("Content-Type"), Some("application/json"));
    assert_eq!(served.json()["info"]["version"], env!("CARGO_PKG_VERSION"));
    let path = root().join("src/http/openapi.json");
    if updating() {
        std::fs::write(path, served.body).unwrap();
    } else {
        let committed = std::fs::read_to_string(path).unwrap();
        assert!(committed == served.body, "run with UPDATE_DOCS=1 and read the difference");
    }
}

/// Checks an answer against the document.
pub(crate) fn conforms(document: &Value, method: &str, template: &str, status: u16, body: &str) {
    let responses = &document["paths"][template][method]["responses"];
    let response = &responses[status.to_string()];
    assert!(response.is_object(), "{method} {template}: {status} is not documented: {body}");
    let content = response["content"].as_object();
    let Some((kind, schema)) = content.and_then(|it| it.iter().next()) else { return };
    if kind == "application/json" || kind == "text/yaml" {
        let mut schema = schema["schema"].clone();
        schema["components"] = document["components"].clone();
        let body: Value = serde_json::from_str(body).unwrap();
        let validator = jsonschema::draft202012::new(&schema).unwrap();
        let faults: Vec<String> = validator.iter_errors(&body).map(|it| it.to_string()).collect();
        assert!(faults.is_empty(), "{method} {template}: {faults:?}: {body}");
    }
}

#[test]
fn answers_are_as_the_document_says() {
    let document = document();
    let (_repository, daemon) = serve_fleet();
    let facts =
        std::fs::read_to_string(root().join("examples/facts/web1.example.com.json")).unwrap();
    let web = "36241e24-ecd8-4143-9145-932efae5ffb1";
    let node = [("name", "web1.example.com"), ("certname", "web1.example.com")];
    let group = [("id", web)];
    let absent = [("id", "99999999-9999-4999-8999-999999999999")];
    let class = [("environment", "production"), ("class", "ntp")];
    let rule = r#"["=", ["fact", "os", "family"], "Debian"]"#;
    for (method, template, values, query, body) in [
        ("post", "/v1/classified/nodes/{name}", &node[..], "", facts.as_str()),
        ("get", "/v1/classified/nodes/{name}", &node, "?commit=nope", ""),
        ("post", "/v1/classified/nodes/{name}", &node, "", "{"),
        ("post", "/v2/classified/nodes/{name}", &node, "", &facts),
        ("post", "/v1/classified/nodes/{name}/explanation", &node, "", &facts),
        ("get", "/v1/classified/nodes/{name}/explanation", &node, "", ""),
        ("get", "/v1/classified/nodes/{name}/explanation", &[("name", "none")], "", ""),
        ("get", "/v1/groups", &[], "?limit=3", ""),
        ("get", "/v1/groups/{id}", &group, "?inherited=true", ""),
        ("get", "/v1/groups/{id}", &absent, "", ""),
        ("delete", "/v1/groups/{id}", &group, "", ""),
        ("get", "/v1/groups/{id}/rules", &group, "", ""),
        ("get", "/v1/group-children/{id}", &group, "", ""),
        ("post", "/v1/rules/translate", &[], "", rule),
        ("get", "/v1/classes", &[], "", ""),
        ("get", "/v1/environments", &[], "", ""),
        ("get", "/v1/environments/{environment}", &class, "", ""),
        ("get", "/v1/environments/{environment}/classes", &class, "", ""),
        ("get", "/v1/environments/{environment}/classes/{class}", &class, "", ""),
        ("get", "/v1/last-class-update", &[], "", ""),
        ("get", "/v1/nodes", &[], "", ""),
        ("get", "/v1/nodes/{name}", &node, "", ""),
        ("get", "/enc/{certname}", &node, "", ""),
        ("get", "/hiera/{certname}", &node, "", ""),
        ("get", "/status/v1/services", &[], "", ""),
        ("get", "/status/v1/services/{service}", &[("service", "classifier-service")], "", ""),
        ("get", "/status/v1/simple", &[], "", ""),
        ("get", "/controller/status", &[], "", ""),
        ("get", "/controller/commits", &[], "", ""),
        ("get", "/controller/commits/{revision}", &[("revision", "HEAD")], "", ""),
        ("get", "/controller/diff/{base}/{head}", &[("base", "HEAD"), ("head", "HEAD")], "", ""),
        ("get", "/controller/query", &[], "?rule=name%20~%20web&limit=1", ""),
        ("get", "/controller/query", &[], "?rule=name", ""),
        ("post", "/controller/query", &[], "", r#"{"rule": ["=", ["fact", "x"], "1"]}"#),
        ("post", "/controller/query", &[], "", "{}"),
        ("get", "/controller/nodes", &[], "?limit=2", ""),
        ("get", "/controller/nodes", &[], "?state=x", ""),
        ("get", "/controller/nodes/{name}", &node, "", ""),
        ("get", "/controller/nodes/{name}", &[("name", "none")], "", ""),
        ("get", "/controller/nodes/{name}/history", &node, "", ""),
        ("get", "/controller/nodes/{name}/history", &node, "?before=x", ""),
        ("delete", "/controller/nodes/{name}", &node, "", ""),
        ("post", "/controller/reconcile", &[], "", ""),
        ("post", "/controller/pin", &[], "", r#"{"commit": "HEAD"}"#),
        ("post", "/controller/resume", &[], "", ""),
    ] {
        ask(&document, &daemon, method, template, values, query, body);
    }
}

/// A path is bytes, and every part of one that a request chooses may be none of UTF-8.
#[test]
fn paths_that_cannot_be_read_are_answered_as_the_document_says() {
    let document = document();
    let (_repository, daemon) = serve_fleet();
    let parameter = regex::Regex::new(r"\{[^}]*\}").unwrap();
    let mut asked = 0;
    for (template, operations) in document["paths"].as_object().unwrap() {
        if !parameter.is_match(template) {
            continue;
        }
        let path = parameter.replace_all(template, "%FF");
        for method in ["get", "post", "put", "delete"] {
            if operations.get(method).is_none() {
                continue;
            }
            let answer = daemon.request(&method.to_uppercase(), &path, "");
            conforms(&document, method, template, answer.status, &answer.body);
            asked += 1;
        }
    }
    assert!(asked > 30, "{asked}");
}

/// Asks a route and checks the answer against the document.
fn ask(
    document: &Value,
    daemon: &Daemon,
    method: &str,
    template: &str,
    values: &[(&str, &str)],
    query: &str,
    body: &str,
) -> u16 {
    let path = values.iter().fold(template.to_owned(), |path, (name, value)| {
        path.replace(&format!("{{{name}}}"), value)
    });
    let answer = daemon.request(&method.to_uppercase(), &format!("{path}{query}"), body);
    conforms(document, method, template, answer.status, &answer.body);
    answer.status
}

#[test]
fn writes_answer_as_the_document_says() {
    let document = document();
    let (repository, _) = serve_fleet();
    let directory = tempfile::tempdir().unwrap();
    let (hub, data) = (directory.path().join("hub.git"), directory.path().join("data"));
    let mut clone = git2::build::RepoBuilder::new();
    clone.bare(true).clone(&repository.text_path(), &hub).unwrap();
    let daemon = Daemon::start(&[
        "--repo",
        hub.to_str().unwrap(),
        "--data-dir",
        data.to_str().unwrap(),
        "--path",
        "examples/fleet",
        "--writes",
        "commit",
    ]);
    let group = [("id", "11111111-1111-4111-8111-111111111111")];
    let made = r#"{"name": "Made", "description": "for a test", "parent": "00000000-0000-4000-8000-000000000000", "classes": {}}"#;
    let environment = [("environment", "production")];
    let fresh = [("environment", "fresh")];
    for (method, template, values, query, body, status) in [
        ("put", "/v1/groups/{id}", &group[..], "", made, 201),
        ("put", "/v1/groups/{id}", &group, "", made, 200),
        ("post", "/v1/groups/{id}", &group, "", r#"{"variables": {"a": 1}}"#, 200),
        ("post", "/v1/groups/{id}", &group, "", r#"{"serial_number": 9}"#, 409),
        ("post", "/v1/groups/{id}/pin", &group, "?nodes=n1,n2", "", 204),
        ("post", "/v1/groups/{id}/unpin", &group, "", r#"{"nodes": ["n1"]}"#, 204),
        ("post", "/v1/commands/unpin-from-all", &[], "", r#"{"nodes": ["n2"]}"#, 200),
        ("post", "/v1/groups", &[], "", made, 422),
        ("post", "/v1/groups", &[], "", &made.replace("Made", "Another"), 303),
        ("post", "/v1/groups", &[], "", "[]", 400),
        ("delete", "/v1/groups/{id}", &group, "", "", 204),
        ("delete", "/v1/groups/{id}", &group, "", "", 404),
        ("put", "/v1/environments/{environment}", &environment, "", "", 200),
        ("put", "/v1/environments/{environment}", &fresh, "", "", 201),
        ("delete", "/v1/environments/{environment}", &environment, "", "", 422),
        ("delete", "/v1/environments/{environment}", &fresh, "", "", 204),
        ("delete", "/v1/environments/{environment}", &fresh, "", "", 404),
        ("post", "/v1/import-hierarchy", &[], "", "{}", 400),
        ("post", "/v1/update-classes", &[], "", "", 201),
    ] {
        let answered = ask(&document, &daemon, method, template, values, query, body);
        assert_eq!(answered, status, "{method} {template} {body}");
    }
}

#[test]
fn routes_say_when_they_cannot_be_answered_for_now() {
    let document = document();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in METHODS.iter().map(|it| (it, &item[*it])) {
            let kinds: &[&str] = match operation["x-clade-role"].as_str() {
                Some("write") => &["`remote-unreachable`", "`storage-failed`", "`busy`"],
                Some("classify" | "check-in") => &["`busy`"],
                Some("read") if path.starts_with("/v1/") => &["`busy`"],
                _ => continue,
            };
            let said = operation["responses"]["503"]["description"].as_str().unwrap();
            for kind in kinds {
                assert!(said.contains(kind), "{method} {path}: {said}");
            }
        }
    }
}

#[test]
fn the_page_of_routes_is_the_document() {
    let document = document();
    let mut text = String::new();
    for tag in document["tags"].as_array().unwrap() {
        writeln!(
            text,
            "\n## {}\n\n| route | role | |\n|---|---|---|",
            tag["name"].as_str().unwrap()
        )
        .unwrap();
        for (path, item) in document["paths"].as_object().unwrap() {
            for method in METHODS {
                let operation = &item[method];
                if operation["tags"][0] != tag["name"] {
                    continue;
                }
                let role = operation["x-clade-role"].as_str().unwrap_or("");
                let summary = operation["summary"].as_str().unwrap();
                assert!(!summary.contains('\n'), "a row of a table is one line: {summary}");
                let parameters: Vec<&str> = operation["parameters"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter_map(|it| it["$ref"].as_str()?.rsplit('/').next())
                    .filter(|it| !["commit", "at", "pinned"].contains(it))
                    .collect();
                let query = match parameters.as_slice() {
                    [] => String::new(),
                    all => format!(" `?{}=`", all.join("=` `?")),
                };
                let words = words_of_the_path(operation);
                let method = method.to_uppercase();
                writeln!(text, "| `{method} {path}`{query} | {role} | {summary}{words} |").unwrap();
            }
        }
    }
    generated("http.md", &text);
}

/// Returns the words that a part of a path can be.
fn words_of_the_path(operation: &Value) -> String {
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    let words = parameters.filter(|it| it["in"] == "path").filter_map(|it| {
        let words = it["schema"]["enum"].as_array()?;
        let words: Vec<String> =
            words.iter().map(|word| format!("`{}`", word.as_str().unwrap())).collect();
        Some(format!("; `{}` is {}", it["name"].as_str().unwrap(), words.join(", ")))
    });
    words.collect()
}

#[test]
fn the_page_of_metrics_is_the_catalogue() {
    let mut text = "| metric | kind | labels | |\n|---|---|---|---|\n".to_owned();
    for it in Metrics::catalogue() {
        let labels: Vec<String> = it.labels.iter().map(|it| format!("`{it}`")).collect();
        writeln!(text, "| `{}` | {} | {} | {} |", it.name, it.kind, labels.join(" "), it.help)
            .unwrap();
    }
    generated("metrics.md", &text);
}

#[test]
fn the_page_of_settings_is_the_command_line() {
    let command = clade::internals::cli::command();
    let serve = command.get_subcommands().find(|it| it.get_name() == "serve").unwrap();
    let mut text = String::new();
    let mut heading = None;
    for arg in serve.get_arguments().filter(|it| it.get_id() != "help") {
        let section = arg.get_help_heading().unwrap_or("General");
        if heading != Some(section) {
            writeln!(text, "\n## {section}\n\n| flag | variable | default | |\n|---|---|---|---|")
                .unwrap();
            heading = Some(section);
        }
        let flag = arg.get_long().unwrap();
        let variable = arg.get_env().map(|it| format!("`{}`", it.to_str().unwrap()));
        let defaults: Vec<_> =
            arg.get_default_values().iter().filter_map(|it| it.to_str()).collect();
        let takes = arg.get_action().takes_values();
        let default = if takes && !defaults.is_empty() {
            format!("`{}`", defaults.join(","))
        } else {
            String::new()
        };
        let mut help = arg.get_help().unwrap().to_string().replace('|', "\\|");
        let values: Vec<String> =
            arg.get_possible_values().iter().map(|it| format!("`{}`", it.get_name())).collect();
        if takes && !values.is_empty() {
            write!(help, ": {}", values.join(", ")).unwrap();
        }
        let name = arg.get_value_names().filter(|_| takes).map(|it| format!(" {}", it[0]));
        let name = name.unwrap_or_default().replace('|', "\\|");
        writeln!(
            text,
            "| `--{flag}{name}` | {} | {default} | {help} |",
            variable.unwrap_or_default()
        )
        .unwrap();
    }
    generated("settings.md", &text);
}

/// Returns the names of an enumeration's variants, read from its source.
fn variants(source: &str, name: &str) -> BTreeSet<String> {
    let body = source.split_once(&format!("pub enum {name} {{")).unwrap().1;
    let body = body.split_once("\n}").unwrap().0;
    let lines = body.lines().filter_map(|it| it.trim().strip_suffix(','));
    lines.map(str::to_owned).collect()
}

#[test]
fn the_page_of_conditions_has_every_type_and_reason() {
    let source = std::fs::read_to_string(root().join("src/reconcile/status.rs")).unwrap();
    let page = page("conditions.md");
    for (name, heading) in [("ConditionKind", "## Types"), ("Reason", "## Reasons")] {
        let section = page.split_once(heading).unwrap().1.split("\n## ").next().unwrap();
        let shown: BTreeSet<String> = section
            .lines()
            .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
            .map(str::to_owned)
            .collect();
        assert_eq!(shown, variants(&source, name), "{heading}");
    }
}
