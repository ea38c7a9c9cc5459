//! The answer to browsers that ask for a page which does not exist.

use axum::http::Uri;
use axum::response::Response;

use super::context::PageError;
use super::failure::ErrorPage;
use super::visit::Visit;

/// Answers a visitor who asks for a page that does not exist.
pub(super) async fn missing(visit: Visit, uri: Uri) -> Response {
    let path: String = uri.path().chars().take(200).collect();
    visit.show(Err::<ErrorPage, _>(PageError::NotFound(format!("There is no page `{path}`."))))
}
