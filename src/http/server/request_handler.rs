//! What answers the requests of connections.

use axum::extract::Request;
use axum::response::Response;

/// Answers requests. The server knows no routes.
pub trait RequestHandler: Clone + Send + Sync + 'static {
    /// The answer.
    type Future: Future<Output = Response> + Send + 'static;

    /// Answers a request.
    fn handle(&self, request: Request) -> Self::Future;
}
