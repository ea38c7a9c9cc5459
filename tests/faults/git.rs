//! git servers, as the integration tests have them.

#[path = "../integration/git/server.rs"]
#[expect(dead_code, reason = "the integration tests use more of it")]
pub(crate) mod server;
