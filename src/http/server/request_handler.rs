//! What answers the requests of connections.

use axum::extract::Request;
use axum::response::Response;

/// Answers requests. The server knows no routes.
pub trait RequestHandler: Clone + Send + Sync + 'static {
    /// The answer.
    type Future: Future<Output = Response> + Send + 'static;

    /// Returns the handler of one connection. Requests count users of what it has: one count for all connections would
    /// have threads wait for its line of memory.
    #[must_use]
    fn for_connection(&self) -> Self {
        self.clone()
    }

    /// Answers a request.
    fn handle(&self, request: Request) -> Self::Future;
}
