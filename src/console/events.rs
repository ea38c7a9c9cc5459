//! News for pages that stay open.

use axum::response::Response;

use super::context::PageError;
use super::failure::ErrorPage;
use super::visit::Visit;
use crate::http::types::ErrorKind;

/// Tells of each change of the status until the visitor leaves or may not read any more.
pub(super) async fn follow(visit: Visit) -> Response {
    visit.follow_status().unwrap_or_else(|| {
        let message = "Too many pages are open; this one is loaded again at intervals.";
        let busy = PageError::Refused(ErrorKind::Busy, message.to_owned());
        visit.show(Err::<ErrorPage, _>(busy))
    })
}
