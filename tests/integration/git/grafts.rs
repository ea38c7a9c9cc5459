//! A file of grafts that git reads and Clade does not.

use crate::hub::Hub;
use crate::program::{Daemon, run};

const A: &str = "name: A\nid: aaaaaaaa-0000-4000-8000-00000000000a\n";

#[test]
fn a_file_of_grafts_that_is_not_read_is_named_while_it_is_there() {
    let hub = Hub::new(&[("groups/a.yaml", A)]);
    let daemon = Daemon::start(&["--repo", &hub.text_path(), "--writes", "commit"]);
    daemon.wait_until("it answers", |it| it.get("/v1/groups").status == 200);
    let grafts = hub.path().join("info/grafts");
    std::fs::create_dir_all(grafts.parent().unwrap()).unwrap();
    std::fs::write(&grafts, format!("# why\n{}\n", hub.head_id())).unwrap();
    let named = format!("line 1 of `{}`", grafts.display());
    let condition = |it: &Daemon| {
        let all = it.get("/controller/status").json()["conditions"].clone();
        let all = all.as_array().unwrap().clone();
        all.into_iter().find(|it| it["type"] == "FetchFailed")
    };
    daemon.request("POST", "/controller/reconcile", "");
    daemon.wait_until("the fetch fails", |it| condition(it).is_some());
    let failed = condition(&daemon).unwrap();
    assert_eq!(failed["reason"], "FetchFailed");
    assert!(failed["message"].as_str().unwrap().contains(&named), "{failed}");
    let edit = r#"{"description": "d"}"#;
    let edited =
        |it: &Daemon| it.request("POST", "/v1/groups/aaaaaaaa-0000-4000-8000-00000000000a", edit);
    let refused = edited(&daemon);
    assert_eq!(refused.status, 503, "{}", refused.body);
    assert!(refused.body.contains(&named), "{}", refused.body);
    let validated = run(&["validate", &hub.text_path(), "--rev", "HEAD"]);
    assert!(validated.status != 0 && validated.stderr.contains(&named), "{}", validated.stderr);
    std::fs::write(&grafts, format!("{}\n", hub.head_id())).unwrap();
    daemon.request("POST", "/controller/reconcile", "");
    daemon.wait_until("it is read again", |it| condition(it).is_none());
    let done = edited(&daemon);
    assert_eq!(done.status, 200, "{}", done.body);
}
