//! Decides before a handler whether a request is answered: the connection limit, the host, who sends it, and the role.

use axum::extract::Request;

use super::access::{Access, Caller, Requirement, UnknownTokens};
use super::error::ApiError;
use super::request_context::{Peer, RequestContext};
use super::route_tree::ParameterRanges;

/// Adds the caller and the parameters of the path to the context of a request, if the caller meets the requirement of
/// the route.
///
/// # Errors
///
/// Returns 401 or 403 if it does not, and 503 beyond the connection limit.
pub(super) fn admit(
    access: &Access,
    requirement: Requirement,
    parameters: ParameterRanges,
    request: &mut Request,
) -> Result<(), ApiError> {
    let caller = identify(access, requirement, request)?;
    // Most may do it for all nodes; the path is decoded for the others.
    if !requirement.is_met_by(&caller, None) {
        check_for_node(requirement, &caller, &parameters, request)?;
    }
    let context = RequestContext::of_mut(request.extensions_mut());
    context.caller = Some(caller);
    context.required = requirement.role();
    context.parameters = parameters;
    Ok(())
}

/// Authenticates a request that no handler answers, and checks what it requires.
///
/// # Errors
///
/// Returns 401 or 403 if the caller does not meet the requirement, and 503 beyond the connection limit.
pub(super) fn check(
    access: &Access,
    requirement: Requirement,
    parameters: &ParameterRanges,
    request: &Request,
) -> Result<(), ApiError> {
    let caller = identify(access, requirement, request)?;
    check_for_node(requirement, &caller, parameters, request)
}

/// Checks a caller for the node that the path names: its first parameter. A path that is not UTF-8 names none.
fn check_for_node(
    requirement: Requirement,
    caller: &Caller,
    parameters: &ParameterRanges,
    request: &Request,
) -> Result<(), ApiError> {
    let node = parameters.decoded(request.uri().path()).next().and_then(Result::ok);
    requirement.check(caller, node.as_deref())
}

/// Returns who sends a request. Beyond the connection limit only probes are answered.
fn identify(
    access: &Access,
    requirement: Requirement,
    request: &Request,
) -> Result<Caller, ApiError> {
    let peer = RequestContext::of(request.extensions()).map(|it| &it.peer);
    if peer.is_some_and(|it| it.is_over_limit) && requirement != Requirement::Probe {
        return Err(ApiError::busy());
    }
    if peer.is_some_and(|it| it.is_local) {
        return Ok(Caller::unlimited());
    }
    let tokens =
        if requirement.is_open() { UnknownTokens::Ignored } else { UnknownTokens::Refused };
    access.identify(request, peer.map(Peer::identity).unwrap_or_default(), tokens)
}
