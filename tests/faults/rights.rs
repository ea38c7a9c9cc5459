//! Nobody gets past their rights.

use crate::program::{Daemon, GitRepository};
use crate::{Fault, Seen, Speed};

pub(crate) const FAULTS: &[Fault] = &[Fault {
    name: "rights::unknown-token",
    promise: "an unknown token gets 401 on every route that needs a role",
    injection: "a request with a token that is not in the file",
    speed: Speed::Fast,
    run: unknown_token,
}];

fn unknown_token() -> Seen {
    let repository = GitRepository::new();
    repository.commit("first", &[("groups/a.yaml", "name: A\n")]);
    let tokens = repository.path().join("tokens.yaml");
    std::fs::write(&tokens, "[]\n").unwrap();
    let path = repository.text_path();
    let daemon = Daemon::start(&["--repo", &path, "--tokens-file", tokens.to_str().unwrap()]);
    let answer = daemon.request_with("GET", "/v1/groups", "X-Authentication: guess\r\n", "");
    assert_eq!(answer.status, 401, "{}", answer.body);
    Seen::Held("401".to_owned())
}
