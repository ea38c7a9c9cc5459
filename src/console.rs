//! The console: pages for people about the commit that answers, the nodes and what they get.
//!
//! The pages show what the routes of the daemon answer: each asks them in the process, with the rights of its
//! visitor ([`visit`]), and writes what it gets with a template that is checked when it is compiled. So every number
//! of a page is one of the API, and no page has rights of its own. Nothing here decides, counts or classifies.
//!
//! - [`entrance`], [`visit`]: a request for a page: who asks, and then which commit it is about, where links lead.
//! - [`context`]: the API, assets and sessions, and errors as pages.
//! - [`layout`], [`markup`], [`asset`]: what all pages share: the frame, text from strangers, files.
//! - [`home`] and the other files of pages: one each, with a template of its name in `templates/`.

mod actions;
mod asset;
mod asset_route;
mod base_path;
mod chart;
mod commits;
mod compare;
mod context;
mod entrance;
mod events;
mod failure;
mod gone_pins;
mod group;
mod group_link;
mod groups;
mod home;
mod layout;
mod login;
mod markup;
mod missing;
mod node;
mod nodes;
mod page;
mod pager;
mod problems;
mod query;
mod rule_text;
mod session;
mod state;
mod stored;
mod trends;
mod visit;

use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn;
use axum::routing::{MethodRouter, get, post};
use tokio::sync::OnceCell;

pub use base_path::BasePath;
pub use session::{NoRandomness, Transport};

use crate::http::{ConsolePages, InProcessApi, yielding};
use asset::Assets;
use context::Console;
use gone_pins::PinMemory;
use session::Sessions;

/// What the console is told.
#[derive(Clone, Debug)]
pub struct ConsoleSettings {
    base_path: BasePath,
    transport: Transport,
    /// One session is good for all addresses.
    sessions: Arc<Sessions>,
}

impl ConsoleSettings {
    /// Takes the path that all addresses begin with, and how clients connect.
    ///
    /// # Errors
    ///
    /// Returns an error if the system gives no random bytes.
    pub fn new(base_path: BasePath, transport: Transport) -> Result<Self, NoRandomness> {
        Ok(Self { base_path, transport, sessions: Arc::new(Sessions::new()?) })
    }

    /// Returns the path that all addresses begin with.
    pub fn base_path(&self) -> &str {
        self.base_path.as_str()
    }
}

/// A page with what answers for it.
type PageRoute = (&'static str, MethodRouter<Arc<Console>>);

/// Returns the pages that read from the API.
fn readers() -> [PageRoute; 13] {
    [
        ("/", get(home::show)),
        ("/nodes", get(nodes::show)),
        ("/nodes/{name}", get(node::show)),
        ("/nodes/{name}/history", get(node::history)),
        ("/nodes/{name}/facts", get(node::facts)),
        ("/groups", get(groups::show)),
        ("/groups/{id}", get(group::show)),
        ("/commits", get(commits::list)),
        ("/commits/{*revision}", get(commits::show)),
        ("/compare", get(compare::open)),
        ("/compare/{*range}", get(compare::show)),
        ("/problems", get(problems::show)),
        ("/query", get(query::show)),
    ]
}

/// Returns the rest: actions of operators and small responses, which stay on the threads that answer agents.
fn others() -> [PageRoute; 5] {
    [
        ("/events", get(events::follow)),
        ("/login", get(login::show).post(login::sign_in)),
        ("/logout", post(login::sign_out)),
        ("/actions/{action}", post(actions::act)),
        ("/assets/{name}", get(asset_route::show)),
    ]
}

/// Returns the paths of all pages.
pub fn paths() -> impl Iterator<Item = &'static str> {
    readers().into_iter().chain(others()).map(|(path, _)| path)
}

/// Returns the pages.
pub fn pages(api: InProcessApi, settings: &ConsoleSettings) -> ConsolePages {
    let ConsoleSettings { base_path, transport, sessions } = settings.clone();
    let assets = Assets::new(&base_path);
    let (forge, pins) = (OnceCell::new(), PinMemory::default());
    let console = Console { api, assets, base_path, transport, sessions, forge, pins };
    let console = Arc::new(console);
    let missing = Router::new().fallback(missing::missing).with_state(Arc::clone(&console));
    let pages = readers().into_iter();
    let pages = pages.map(|(path, methods)| (path, methods.layer(from_fn(yielding))));
    let all = pages.chain(others());
    let routes = all.map(|(path, methods)| (path, methods.with_state(Arc::clone(&console))));
    let routes = routes.collect();
    ConsolePages { routes, missing }
}
