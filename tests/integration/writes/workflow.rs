//! A whole working day with groups, and the log that it leaves.

use serde_json::json;

use super::{Hub, ROOT, create, groups, post, without_edits};

const WEB: &str = "# The web servers of the shop
name: Web   # as in the CMDB
description: 'Serves the shop'
rule: name ~ \"^web\"

classes:
  # tuned in 2019
  apache:
    keepalive: 5  # seconds
    docroot: \"/srv\"
  ssl:
variables: {ntp: [a, b]}   # both
";

#[test]
fn a_day_of_writes_reads_like_the_work_of_a_careful_colleague() {
    let hub = Hub::new(&[("groups/web.yaml", WEB), ("README.md", "# Groups\n")]);
    let daemon = hub.serve(&["--write-trailer", "Change-Board: exempt"]);
    let web = groups(&daemon).iter().find(|it| it["name"] == "Web").unwrap()["id"].clone();
    let web = web.as_str().unwrap();

    let shop = create(&daemon, &json!({"name": "Shop", "parent": ROOT, "classes": {}}));
    let cart = create(
        &daemon,
        &json!({"name": "Cart/Till", "parent": shop, "classes": {"cart": {"port": 80}}, "environment": "staging"}),
    );
    assert_eq!(
        post(&daemon, &format!("/v1/groups/{web}/pin"), &json!({"nodes": ["w1", "w2"]})).status,
        204
    );
    let edited = post(
        &daemon,
        &format!("/v1/groups/{web}"),
        &json!({
            "classes": {"apache": {"keepalive": 6, "docroot": null}, "ssl": null, "mod": {}},
            "variables": {"ntp": ["a"], "zone": "eu"},
        }),
    );
    assert_eq!(edited.status, 200);
    assert_eq!(edited.header("X-Clade-Commit"), Some(hub.head_id().as_str()));
    assert_eq!(edited.json()["classes"], json!({"apache": {"keepalive": 6}, "mod": {}}));
    assert_eq!(
        edited.json()["rule"],
        json!(["or", ["~", "name", "^web"], ["=", "name", "w1"], ["=", "name", "w2"]])
    );
    let moved = post(&daemon, &format!("/v1/groups/{web}"), &json!({"parent": shop}));
    assert_eq!((moved.status, moved.json()["parent"].as_str()), (200, Some(shop.as_str())));
    // Its children name it by its name, and follow.
    assert_eq!(
        post(&daemon, &format!("/v1/groups/{shop}"), &json!({"name": "The Shop"})).status,
        200
    );
    let twice =
        post(&daemon, "/v1/groups", &json!({"name": "The Shop", "parent": ROOT, "classes": {}}));
    assert_eq!((twice.status, twice.json()["kind"].as_str()), (422, Some("uniqueness-violation")));
    let occupied = daemon.request("DELETE", &format!("/v1/groups/{shop}"), "{}");
    assert_eq!(
        (occupied.status, occupied.json()["kind"].as_str()),
        (422, Some("children-present"))
    );
    let backup = daemon.get("/v1/groups");
    let gone = daemon.request("DELETE", &format!("/v1/groups/{cart}"), "");
    assert_eq!((gone.status, gone.body.as_str()), (204, ""));
    assert_eq!(daemon.get(&format!("/v1/groups/{cart}")).status, 404);
    let unpinned =
        post(&daemon, "/v1/commands/unpin-from-all", &json!({"nodes": ["w2", "unknown"]}));
    assert_eq!(
        unpinned.json(),
        json!({"nodes": [{"name": "w2", "groups": [{"id": web, "name": "Web", "environment": "production"}]}]})
    );
    let restored = daemon.request("POST", "/v1/import-hierarchy", &backup.body);
    assert_eq!((restored.status, restored.body.as_str()), (204, ""));
    let groups = daemon.get("/v1/groups").json();
    assert_eq!(without_edits(&groups), without_edits(&backup.json()));
    // A write without a change makes no commit.
    assert_eq!(daemon.request("POST", "/v1/import-hierarchy", &backup.body).status, 204);

    insta::assert_snapshot!(hub.log().join("\n"), @r#"
    Begin
    Add the group "Shop" below "All Nodes"
    Add the group "Cart/Till" below "Shop"
    Pin w1, w2 to the group "Web"
    Edit the group "Web": classes, variables
    Move the group "Web" below "Shop"
    Rename the group "Shop" to "The Shop"
    Remove the group "Cart/Till"
    Unpin w2 from all groups
    Import a hierarchy of 4 groups
    "#);
    insta::assert_snapshot!(hub.show("groups/web.yaml").unwrap(), @r##"
    # The web servers of the shop
    name: Web   # as in the CMDB
    description: 'Serves the shop'
    parent: The Shop
    rule: name ~ "^web"
    pinned:
      - w1
      - w2

    classes:
      # tuned in 2019
      apache:
        keepalive: 6  # seconds
      mod: {}
    variables: {ntp: [a], zone: eu}   # both
    "##);
    the_new_file_and_the_message(&hub);
    assert_eq!(hub.show("README.md").unwrap(), "# Groups\n");
}

fn the_new_file_and_the_message(hub: &Hub) {
    insta::with_settings!({filters => vec![(r#""?[0-9a-f]{8}-[0-9a-f-]{27}"?"#, "ID")]}, {
        insta::assert_snapshot!(hub.show("groups/shop/cart-till.yaml").unwrap(), @r#"
        name: Cart/Till
        id: ID
        parent: The Shop
        environment: staging
        classes:
          cart:
            port: 80
        "#);
        insta::assert_snapshot!(hub.head().unwrap().message().unwrap(), @r"
        Import a hierarchy of 4 groups

        Through the classifier API, by an unnamed client.

        Clade-Request: POST /v1/import-hierarchy
        Clade-Actor: an unnamed client
        Change-Board: exempt
        ");
    });
}

#[test]
fn a_group_without_an_id_keeps_its_own_when_it_is_renamed() {
    let hub = Hub::new(&[
        ("groups/a.yaml", "name: A\n"),
        ("groups/b.yaml", "name: B\nparent: A\n---\nname: C\nparent: A # the same\n"),
    ]);
    let daemon = hub.serve(&[]);
    let a = groups(&daemon).iter().find(|it| it["name"] == "A").unwrap()["id"].clone();
    let a = a.as_str().unwrap();
    let renamed = post(&daemon, &format!("/v1/groups/{a}"), &json!({"name": "Z"}));
    assert_eq!((renamed.status, renamed.json()["id"].as_str()), (200, Some(a)));
    assert!(hub.show("groups/a.yaml").unwrap().starts_with("name: Z\nid: "));
    assert_eq!(
        hub.show("groups/b.yaml").unwrap(),
        "name: B\nparent: Z\n---\nname: C\nparent: Z # the same\n"
    );
    // A name that two groups have names no parent any more.
    create(&daemon, &json!({"name": "Z", "environment": "dev", "parent": ROOT, "classes": {}}));
    let b = hub.show("groups/b.yaml").unwrap();
    assert!(b.contains(&format!("parent: {a}")) || b.contains(&format!("parent: \"{a}\"")), "{b}");
    // One document of several goes, the other stays as it is.
    let c = groups(&daemon).iter().find(|it| it["name"] == "B").unwrap()["id"].clone();
    let gone = daemon.request("DELETE", &format!("/v1/groups/{}", c.as_str().unwrap()), "");
    assert_eq!(gone.status, 204);
    assert!(hub.show("groups/b.yaml").unwrap().starts_with("name: C\n"));
}

#[test]
fn a_group_is_made_where_groups_are_read() {
    let parent = "aaaaaaaa-0000-4000-8000-000000000001";
    for (setting, file) in [
        ("nodes: groups/nodes", "nodes"),
        ("tests: groups/t", "t"),
        ("environments: groups/e", "e"),
    ] {
        let text = format!("name: Parent\nid: {parent}\n");
        let hub = Hub::new(&[
            ("clade.yaml", &format!("{setting}\n")),
            (&format!("groups/{file}.yaml"), &text),
        ]);
        let daemon = hub.serve(&[]);
        let body = json!({"name": "Kid", "parent": parent, "classes": {}}).to_string();
        let made = daemon.request("POST", "/v1/groups", &body);
        assert_eq!(made.status, 303, "{setting}: {}", made.body);
        let groups = daemon.get("/v1/groups").json();
        let kid = groups.as_array().unwrap().iter().find(|it| it["name"] == "Kid").unwrap();
        let below = json!({"name": "Grandchild", "parent": kid["id"], "classes": {}}).to_string();
        assert_eq!(daemon.request("POST", "/v1/groups", &below).status, 303, "{setting}");
    }
}
