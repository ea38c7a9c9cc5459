//! A stub of a Puppet Server.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use sha2::{Digest as _, Sha256};

use crate::classes::answer;
use crate::git::server::{Request, Server};

/// A Puppet Server with a given answer for each environment.
pub(super) struct Puppet {
    pub(super) url: String,
    pub(super) state: Arc<State>,
    _server: Server,
}

#[derive(Default)]
pub(super) struct State {
    /// Status line and body of each environment.
    pub(super) said: Mutex<BTreeMap<String, (String, String)>>,
    /// The requested environments, with the answers.
    asked: Mutex<Vec<(String, u16)>>,
    pub(super) pause: Mutex<Duration>,
    pub(super) asking: AtomicUsize,
    /// The most requests at one time.
    pub(super) most: AtomicUsize,
}

impl State {
    pub(super) fn answer(&self, request: &Request) -> Vec<u8> {
        let now = self.asking.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        let pause = *self.pause.lock().unwrap();
        std::thread::sleep(pause);
        let path = "/puppet/v3/environment_classes?environment=";
        let environment = request.target.strip_prefix(path).unwrap_or("?").to_owned();
        let said = self.said.lock().unwrap().get(&environment).cloned();
        let (line, body) = said.unwrap_or_else(|| {
            let words = format!("Could not find environment '{environment}'");
            ("404 Not Found".to_owned(), json!({"message": words}).to_string())
        });
        let etag = hash(&body);
        let same = request.headers.get("if-none-match") == Some(&etag);
        let (line, body) = if same && line.starts_with("200") {
            ("304 Not Modified".to_owned(), String::new())
        } else {
            (line, body)
        };
        let status = line.split(' ').next().unwrap().parse().unwrap();
        self.asked.lock().unwrap().push((environment, status));
        self.asking.fetch_sub(1, Ordering::SeqCst);
        answer(&line, &format!("ETag: {etag}\r\n"), &body)
    }
}

impl Puppet {
    pub(super) fn new(environments: &[(&str, &str)]) -> Self {
        let state: Arc<State> = Arc::default();
        let server = Server::http({
            let state = Arc::clone(&state);
            move |request| state.answer(request)
        });
        let url = format!("http://127.0.0.1:{}", server.port);
        let puppet = Self { url, state, _server: server };
        for (environment, body) in environments {
            puppet.say(environment, "200 OK", body);
        }
        puppet
    }

    pub(super) fn say(&self, environment: &str, line: &str, body: &str) {
        let said = (line.to_owned(), body.to_owned());
        self.state.said.lock().unwrap().insert(environment.to_owned(), said);
    }

    /// Returns the requests since the last call.
    pub(super) fn asked(&self) -> Vec<(String, u16)> {
        std::mem::take(&mut self.state.asked.lock().unwrap())
    }
}

pub(super) fn hash(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().fold(String::new(), |text, it| text + &format!("{it:02x}"))
}

/// Returns what a Puppet Server says of classes, each with a parameter.
pub(super) fn of(classes: &[(&str, &str)]) -> String {
    let files = classes.iter().map(|(class, parameter)| {
        let parameters = json!([{"name": parameter, "type": "Integer", "default_literal": 1}]);
        json!({"path": format!("/code/{class}.pp"), "classes": [{"name": class, "params": parameters}]})
    });
    json!({"name": "x", "files": files.collect::<Vec<_>>()}).to_string()
}
