//! The parameters of a path, as handlers take them.
//!
//! Where they stand is in the context of the request, since [`dispatch`](super::dispatch) found the route by it.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use super::error::ApiError;
use super::request_context::RequestContext;

/// The one parameter of a path, decoded.
#[derive(Debug)]
pub(super) struct PathParameter(pub(super) String);

/// All parameters of a path, decoded.
#[derive(Debug)]
pub(super) struct PathParameters<const N: usize>(pub(super) [String; N]);

impl<S: Sync, const N: usize> FromRequestParts<S> for PathParameters<N> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        of_path(parts).map(Self)
    }
}

impl<S: Sync> FromRequestParts<S> for PathParameter {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        of_path(parts).map(|[parameter]| Self(parameter))
    }
}

/// Returns all parameters of the path of a request.
///
/// # Errors
///
/// Returns 400 if one is not UTF-8, and 500 if the route has another number of them.
fn of_path<const N: usize>(parts: &Parts) -> Result<[String; N], ApiError> {
    let context = RequestContext::of(&parts.extensions);
    let ranges = context.map(|it| &it.parameters).ok_or_else(other_number)?;
    let mut parameters = [const { String::new() }; N];
    let mut decoded = ranges.decoded(parts.uri.path());
    for parameter in &mut parameters {
        let found = decoded.next().ok_or_else(other_number)?;
        *parameter = found.map_err(|_| ApiError::unreadable_path())?.into_owned();
    }
    decoded.next().map_or(Ok(parameters), |_| Err(other_number()))
}

/// A handler takes another number of parameters than its route has.
fn other_number() -> ApiError {
    ApiError::internal("The route does not have the parameters that its handler takes.")
}
