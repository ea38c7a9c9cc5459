//! What the daemon is put under, each by some clients.

use std::io::Write as _;
use std::net::TcpStream;
use std::sync::LazyLock;
use std::time::Duration;

use super::client::{Counts, Reading, Stop, ask, until_admitted};
use super::pushes;
use super::site::{COMMITS, SECRET, Site, WRITTEN};

/// One kind of attack.
pub(super) struct Attack {
    pub(super) name: &'static str,
    /// How many clients attack at once.
    pub(super) clients: usize,
    /// What one of them does until the end.
    pub(super) run: fn(&Site, usize, &Stop) -> Counts,
}

pub(super) const ATTACKS: &[Attack] = &[
    Attack { name: "old commits", clients: 24, run: old_commits },
    Attack { name: "diffs", clients: 8, run: diffs },
    Attack { name: "pushes to main", clients: 1, run: pushes::to_main },
    Attack { name: "pushes beside it", clients: 2, run: pushes::beside_main },
    Attack { name: "half-sent bodies", clients: 8, run: half_sent },
    Attack { name: "uploads", clients: 24, run: uploads },
    Attack { name: "expanding bodies", clients: 32, run: expanding },
    Attack { name: "lists of nodes", clients: 16, run: lists },
    Attack { name: "inherited values", clients: 16, run: inherited },
    Attack { name: "explanations", clients: 40, run: explanations },
    Attack { name: "known nodes", clients: 40, run: known_nodes },
    Attack { name: "translations", clients: 16, run: translations },
    Attack { name: "webhooks", clients: 16, run: webhooks },
    Attack { name: "patterns", clients: 16, run: patterns },
    Attack { name: "repeated texts", clients: 8, run: repeated_texts },
    Attack { name: "writes", clients: 50, run: writes },
    Attack { name: "large writes", clients: 50, run: large_writes },
    Attack { name: "abandoned writes", clients: 16, run: abandoned_writes },
    Attack { name: "pins", clients: 1, run: pins },
    Attack { name: "reloads", clients: 1, run: reloads },
];

/// One text of 9 MB, as facts.
static TEXT: LazyLock<String> = LazyLock::new(|| "x".repeat(9_000_000));

/// As many values as a body may have, in the form that uses most memory.
static VALUES: LazyLock<String> = LazyLock::new(|| vec![r#"{"":0}"#; 120_000].join(","));

/// As many values as a hierarchy may have: 400,000. With more of them it would be refused before it is read.
static HIERARCHY: LazyLock<String> =
    LazyLock::new(|| format!("[{}]", vec![r#"{"":0}"#; 199_999].join(",")));

fn go_on(stop: &Stop, mut turn: impl FnMut(usize) -> u16) -> Counts {
    let mut counts = Counts::default();
    for number in 0.. {
        if stop.is_over() {
            break;
        }
        let status = turn(number);
        counts.count(status);
        if matches!(status, 0 | 503) {
            stop.sleep(Duration::from_millis(100));
        }
    }
    counts
}

fn get(site: &Site, stop: &Stop, path: &str, reading: Reading) -> u16 {
    ask(&site.address, stop, &format!("GET {path} HTTP/1.1\r\n"), b"", reading)
}

fn post(site: &Site, stop: &Stop, path: &str, body: &str, reading: Reading) -> u16 {
    ask(&site.address, stop, &format!("POST {path} HTTP/1.1\r\n"), body.as_bytes(), reading)
}

fn old_commits(site: &Site, client: usize, stop: &Stop) -> Counts {
    go_on(stop, |turn| {
        let commit = &site.commits[(client + turn * 24) % site.commits.len()];
        let path = match turn % 3 {
            0 => format!("/v1/groups?commit={commit}&limit=1"),
            1 => format!("/v1/groups?inherited=true&commit={commit}"),
            _ => format!("/enc/role-1-1.dc0.example.com?commit={commit}"),
        };
        get(site, stop, &path, Reading::Fast)
    })
}

/// Requests each old commit once; returns the counts by status.
pub(super) fn read_each_old_commit(site: &Site, clients: usize) -> Counts {
    let stop = Stop::new(Duration::from_mins(12));
    let mut counts = Counts::default();
    std::thread::scope(|scope| {
        let stop = &stop;
        let read = move |client: usize| {
            let mut counts = Counts::default();
            for commit in site.commits.iter().take(COMMITS).skip(client).step_by(clients) {
                let path = format!("/v1/groups?commit={commit}&limit=1");
                let status = loop {
                    let status = get(site, stop, &path, Reading::Fast);
                    if status != 503 || stop.is_over() {
                        break status;
                    }
                    stop.sleep(Duration::from_millis(200));
                };
                counts.count(status);
            }
            counts
        };
        let all: Vec<_> = (0..clients).map(|client| scope.spawn(move || read(client))).collect();
        for client in all {
            counts.add(&client.join().unwrap());
        }
    });
    counts
}

/// Uploads nodes with one fact of 9 MB each.
pub(super) fn store_large_nodes(site: &Site, nodes: usize) {
    let (stop, text) = (Stop::new(Duration::from_mins(5)), &*TEXT);
    for node in 0..nodes {
        let body = format!(r#"{{"name": "large{node}", "facts": {{"more": "{text}"}}}}"#);
        while post(site, &stop, "/api/hosts/facts", &body, Reading::Fast) != 201 {
            assert!(!stop.is_over(), "node {node} is not stored");
        }
    }
}

/// Compares two commits and lists all nodes, by so many clients each; returns how that ended.
pub(super) fn read_large_nodes(site: &Site, clients: usize) -> Counts {
    let stop = Stop::new(Duration::from_mins(10));
    let diff = format!("/controller/diff/{}/{}", site.commits[0], site.commits[1]);
    let mut counts = Counts::default();
    std::thread::scope(|scope| {
        let (stop, diff) = (&stop, &diff);
        let readers: Vec<_> = (0..2 * clients)
            .map(|client| if client % 2 == 0 { diff } else { "/v1/nodes?facts=1" })
            .map(|path| {
                let get = move || get(site, stop, path, Reading::Fast);
                scope.spawn(move || until_admitted(stop, get))
            })
            .collect();
        for reader in readers {
            counts.count(reader.join().unwrap());
        }
    });
    counts
}

/// Sends millions of times what many rules look for, and what each of them would have to read as a whole.
fn repeated_texts(site: &Site, _: usize, stop: &Stop) -> Counts {
    let banner = format!(r#"{{"fact": {{"banner": "{}"}}}}"#, "web-".repeat(2_000_000));
    let tags = format!(r#"{{"fact": {{"tags": [{}]}}}}"#, vec![r#""web""#; 120_000].join(","));
    let distinct: Vec<String> = (0..18_000).map(|it| format!(r#""web{it}""#)).collect();
    let distinct = format!(r#"{{"fact": {{"tags": [{}]}}}}"#, distinct.join(","));
    let digits = format!(r#"{{"fact": {{"digits": "{}"}}}}"#, "7".repeat(200_000));
    let bodies = [banner, tags, distinct, digits];
    go_on(stop, |turn| {
        let body = &bodies[turn % bodies.len()];
        post(site, stop, "/v1/classified/nodes/repeated", body, Reading::Fast)
    })
}

fn diffs(site: &Site, client: usize, stop: &Stop) -> Counts {
    go_on(stop, |turn| {
        let (base, head) = (&site.commits[client], &site.commits[COMMITS - turn % COMMITS]);
        get(site, stop, &format!("/controller/diff/{base}/{head}"), Reading::Fast)
    })
}

/// Sends half of large and of small bodies, and holds on to them.
fn half_sent(site: &Site, _: usize, stop: &Stop) -> Counts {
    go_on(stop, |turn| {
        let (connections, bytes) = if turn % 2 == 0 { (100, 60_000) } else { (6, 8_000_000) };
        let head = "POST /v1/classified/nodes/n HTTP/1.1\r\nHost: localhost\r\nContent-Length: 16000000\r\n\r\n";
        let open: Vec<TcpStream> = (0..connections)
            .filter_map(|_| {
                let mut stream = TcpStream::connect(&site.address).ok()?;
                stream.set_write_timeout(Some(Duration::from_secs(1))).unwrap();
                // It may have to give way at any time.
                stream.write_all(head.as_bytes()).ok();
                stream.write_all(&TEXT.as_bytes()[..bytes]).ok();
                Some(stream)
            })
            .collect();
        stop.sleep(Duration::from_secs(2));
        drop(open);
        0
    })
}

fn uploads(site: &Site, client: usize, stop: &Stop) -> Counts {
    let text = &*TEXT;
    let body = format!(r#"{{"name": "upload{client}", "facts": {{"more": "{text}"}}}}"#);
    go_on(stop, |_| post(site, stop, "/api/hosts/facts", &body, Reading::Fast))
}

fn expanding(site: &Site, client: usize, stop: &Stop) -> Counts {
    let values = &*VALUES;
    let facts = format!(r#"{{"name":"expanding{client}","fact":{{"a":[{values}]}},"facts":{{}}}}"#);
    let uploaded = format!(r#"{{"name":"expanding{client}","facts":{{"a":[{values}]}}}}"#);
    let (deep, ends) = ("[".repeat(100), "]".repeat(100));
    let deep = vec![format!("{deep}{ends}"); 1_200].join(",");
    let deep = format!(r#"{{"fact":{{"a":[{deep}]}}}}"#);
    let node = format!("/v1/classified/nodes/expanding{client}");
    go_on(stop, |turn| {
        let (path, body) = match turn % 9 {
            0 => (node.as_str(), &facts),
            1 => ("/enc/expanding", &facts),
            2 => ("/api/hosts/facts", &uploaded),
            3 => ("/v1/validate/group", &facts),
            4 => ("/controller/pin", &facts),
            5 => (node.as_str(), &deep),
            6 => ("/hiera/expanding", &facts),
            7 => ("/v1/commands/unpin-from-all", &facts),
            _ => ("/v2/classified/nodes/expanding", &deep),
        };
        post(site, stop, path, body, Reading::Fast)
    })
}

fn lists(site: &Site, client: usize, stop: &Stop) -> Counts {
    let reading = if client.is_multiple_of(4) { Reading::Fast } else { Reading::Slow };
    go_on(stop, |_| get(site, stop, "/v1/nodes?limit=20000&facts=1", reading))
}

fn inherited(site: &Site, client: usize, stop: &Stop) -> Counts {
    let reading = if client.is_multiple_of(4) { Reading::Fast } else { Reading::Slow };
    go_on(stop, |_| get(site, stop, "/v1/groups?inherited=true", reading))
}

/// Answers that are as large as their requests.
fn explanations(site: &Site, client: usize, stop: &Stop) -> Counts {
    let (text, values) = (&*TEXT, &*VALUES);
    let body = if client.is_multiple_of(2) {
        format!(r#"{{"fact":{{"a":"{text}"}}}}"#)
    } else {
        format!(r#"{{"fact":{{"a":[{values}]}}}}"#)
    };
    let path = "/v1/classified/nodes/explained/explanation";
    go_on(stop, |_| post(site, stop, path, &body, Reading::Slow))
}

/// Nodes whose facts are large, read as slowly as a client may.
fn known_nodes(site: &Site, client: usize, stop: &Stop) -> Counts {
    let name = format!("known{}", client % 4);
    if client < 4 {
        let text = &*TEXT;
        let body = format!(r#"{{"name": "{name}", "facts": {{"more": "{text}"}}}}"#);
        while post(site, stop, "/api/hosts/facts", &body, Reading::Fast) != 201 && !stop.is_over() {
        }
    }
    go_on(stop, |_| get(site, stop, &format!("/v1/nodes/{name}?facts=1"), Reading::Slow))
}

fn translations(site: &Site, _: usize, stop: &Stop) -> Counts {
    let terms: Vec<String> = (0..12_000).map(|it| format!(r#"["=","name","n{it}"]"#)).collect();
    let rule = format!(r#"["or",{}]"#, terms.join(","));
    let deep = format!("{}[\"=\",\"name\",\"x\"]{}", "[\"not\",".repeat(100), "]".repeat(100));
    go_on(stop, |turn| {
        let body = if turn % 4 == 3 { &deep } else { &rule };
        post(site, stop, "/v1/rules/translate?format=inventory", body, Reading::Fast)
    })
}

/// Signed ones, and ones that are not.
fn webhooks(site: &Site, client: usize, stop: &Stop) -> Counts {
    let body = format!(
        r#"{{"ref": "refs/heads/main", "after": "{}", "more": "{}"}}"#,
        site.commits[0],
        "x".repeat(4_000_000)
    );
    let signature = sign(&body);
    go_on(stop, |turn| {
        let signature = if turn % 4 == 0 { &signature } else { "sha256=00" };
        let head = format!(
            "POST /webhook/github HTTP/1.1\r\nX-Hub-Signature-256: {signature}\r\nX-GitHub-Event: push\r\nX-GitHub-Delivery: {client}-{turn}\r\n"
        );
        ask(&site.address, stop, &head, body.as_bytes(), Reading::Fast)
    })
}

fn sign(body: &str) -> String {
    use hmac::{Hmac, KeyInit as _, Mac as _};

    let mut mac: Hmac<sha2::Sha256> = Hmac::new_from_slice(SECRET.as_bytes()).unwrap();
    mac.update(body.as_bytes());
    let made = mac.finalize().into_bytes();
    made.iter().fold("sha256=".to_owned(), |hex, it| hex + &format!("{it:02x}"))
}

/// A pattern that runs out of steps.
fn patterns(site: &Site, _: usize, stop: &Stop) -> Counts {
    let body = format!(r#"{{"fact":{{"slow":"{}"}}}}"#, "a".repeat(20_000));
    go_on(stop, |_| post(site, stop, "/v1/classified/nodes/slow", &body, Reading::Fast))
}

fn writes(site: &Site, client: usize, stop: &Stop) -> Counts {
    go_on(stop, |turn| {
        let body = format!(r#"{{"classes": {{"written": {{"number": "{client}-{turn}"}}}}}}"#);
        post(site, stop, &format!("/v1/groups/{WRITTEN}"), &body, Reading::Fast)
    })
}

/// Writes that are refused once they were read.
fn large_writes(site: &Site, client: usize, stop: &Stop) -> Counts {
    let values = &*VALUES;
    let group = format!(r#"{{"name":"Large","parent":"Nowhere","variables":{{"a":[{values}]}}}}"#);
    go_on(stop, |turn| match (client + turn) % 3 {
        0 => post(site, stop, "/v1/groups", &group, Reading::Fast),
        1 => post(site, stop, &format!("/v1/groups/{WRITTEN}"), &group, Reading::Fast),
        _ => post(site, stop, "/v1/import-hierarchy", &HIERARCHY, Reading::Fast),
    })
}

/// Large writes whose clients disconnect: they are still made.
fn abandoned_writes(site: &Site, _: usize, stop: &Stop) -> Counts {
    let body = &*HIERARCHY;
    let head = format!(
        "POST /v1/import-hierarchy HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    go_on(stop, |_| {
        let Ok(mut stream) = TcpStream::connect(&site.address) else { return 0 };
        stream.set_write_timeout(Some(Duration::from_secs(1))).unwrap();
        let sent =
            stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes()));
        stop.sleep(Duration::from_millis(50));
        u16::from(sent.is_ok())
    })
}

fn pins(site: &Site, _: usize, stop: &Stop) -> Counts {
    let counts = go_on(stop, |turn| {
        let body = format!(r#"{{"commit": "{}"}}"#, site.commits[turn % 3]);
        let pinned = post(site, stop, "/controller/pin", &body, Reading::Fast);
        stop.sleep(Duration::from_millis(500));
        post(site, stop, "/controller/resume", "", Reading::Fast);
        stop.sleep(Duration::from_millis(500));
        pinned
    });
    let late = Stop::new(Duration::from_mins(1));
    post(site, &late, "/controller/resume", "", Reading::Fast);
    counts
}

fn reloads(site: &Site, _: usize, stop: &Stop) -> Counts {
    go_on(stop, |_| {
        site.signal("HUP");
        stop.sleep(Duration::from_millis(300));
        200
    })
}
