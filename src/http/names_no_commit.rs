//! Requests that no other commit than the live one can answer.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use super::error::ApiError;
use super::query::Parameters;

/// The parameters that choose the snapshot of a read.
const SNAPSHOT_PARAMETERS: [&str; 2] = ["commit", "at"];

/// A request for what is not read from a snapshot, which names none. The header that names one may always be sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct NamesNoCommit;

impl<S: Send + Sync> FromRequestParts<S> for NamesNoCommit {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let parameters = Parameters::from_request_parts(parts, state).await?;
        match named(&parameters) {
            None => Ok(Self),
            Some(name) => Err(refusal(name)),
        }
    }
}

/// Returns the error of a parameter that names a snapshot.
pub(super) fn refusal(name: &str) -> ApiError {
    let message = format!("This is not read from a commit: leave out the parameter `{name}`.");
    ApiError::malformed_head(message)
}

/// Returns the parameter that names a snapshot, if there is one.
pub(super) fn named(parameters: &Parameters) -> Option<&'static str> {
    SNAPSHOT_PARAMETERS.into_iter().find(|it| parameters.get(it).is_some())
}
