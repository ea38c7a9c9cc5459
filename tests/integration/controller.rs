//! The controller: what it promises when things go wrong.

mod access;
mod commands;
mod history;
mod operators;
mod signatures;
mod signed_history;
mod ssh;
mod statuses;
pub(crate) mod storage;
mod webhooks;

use crate::follow::{conditions, has, live, text, wait_for};

fn group(name: &str) -> String {
    format!("name: {name}\n")
}

const BAD: &str = "name: Bad\nparent: Nowhere\n";
