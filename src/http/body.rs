//! Reads the bodies of requests, within limits of bytes and values.

use axum::body::{Body, Bytes, HttpBody as _};
use http_body_util::BodyExt as _;
use serde_json::Value;

use super::compute::BODIES;
use super::error::ApiError;
use super::server::{BodyTimeout, MemoryReservation, OverBudget};
use crate::changeset::check_numbers;
use crate::model::{NODE_VALUES, has_more_values};

/// The largest body, in bytes.
pub(super) const LIMIT: usize = 16 << 20;

/// How many values a rule may have: one that pins 12,000 nodes has as many.
pub(super) const RULE_VALUES: usize = 50_000;

/// How many values a whole hierarchy of groups may have.
pub(super) const HIERARCHY_VALUES: usize = 400_000;

/// Reads a body; an empty one is `None`. The content type does not matter.
pub(super) async fn read(body: Body) -> Result<Option<Bytes>, ApiError> {
    // What says that it is too long is not read.
    if body.size_hint().lower() > LIMIT as u64 {
        return Err(ApiError::payload_too_large(LIMIT));
    }
    let bytes = collect(body).await?;
    Ok(Some(bytes).filter(|it| !it.iter().all(u8::is_ascii_whitespace)))
}

/// A body that is answered from its text if it can be. No memory is reserved for its values.
#[derive(Debug)]
pub(super) struct BodyText(Bytes);

impl BodyText {
    /// Reads a body as [`read`] does.
    pub(super) async fn read(body: Body) -> Result<Option<Self>, ApiError> {
        Ok(MemoryReservation::while_text_alone(read(body)).await?.map(Self))
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Waits for the memory of its values.
    ///
    /// # Errors
    ///
    /// Returns 503 `busy` if too much waits already, or for too long.
    pub(super) async fn with_values(self) -> Result<Bytes, ApiError> {
        let reserved = MemoryReservation::of_request().reserve_values(&self.0).await;
        reserved.map_or_else(|OverBudget| Err(ApiError::busy()), |()| Ok(self.0))
    }
}

/// How many bytes are reserved for a body because it says that it has so many.
const RESERVED: u64 = 64 << 10;

/// Collects a body. A frame shares the connection's buffer, so each one is copied unless it is the whole
/// body: a body that never ends takes its bytes, and not a buffer for each frame.
async fn collect(mut body: Body) -> Result<Bytes, ApiError> {
    let mut text = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| read_error(&error))?;
        let Ok(data) = frame.into_data() else { continue };
        if data.len() > LIMIT - text.len() {
            return Err(ApiError::payload_too_large(LIMIT));
        }
        let left = body.size_hint();
        if text.is_empty() {
            if left.exact() == Some(0) {
                return admitted(body, data).await;
            }
            let rest = usize::try_from(left.lower().min(RESERVED)).unwrap_or_default();
            text.reserve_exact(data.len() + rest);
        } else if text.capacity() - text.len() < data.len() {
            // Twice as much, as a vector takes by itself, would be half in vain.
            text.reserve_exact(data.len().max(text.len() / 8));
        }
        text.extend_from_slice(&data);
    }
    Ok(text.into())
}

/// Waits for the end of a complete body: it comes when the budget has the memory for its values.
async fn admitted(mut body: Body, whole: Bytes) -> Result<Bytes, ApiError> {
    while let Some(frame) = body.frame().await {
        frame.map_err(|error| read_error(&error))?;
    }
    Ok(whole)
}

/// Checks that JSON has no more than so many values, before any is made of it.
///
/// # Errors
///
/// Returns 413 for more.
pub(super) fn check_values(bytes: &[u8], most: usize) -> Result<(), ApiError> {
    if has_more_values(bytes, most) { Err(ApiError::too_many_values(most)) } else { Ok(()) }
}

/// Says why a body could not be read to its end.
pub(super) fn read_error(error: &axum::Error) -> ApiError {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if error.is::<BodyTimeout>() {
            return ApiError::request_timeout();
        }
        if error.is::<OverBudget>() {
            return ApiError::busy();
        }
        cause = error.source();
    }
    ApiError::malformed_request("", "the body did not arrive whole")
}

/// Reads a body as JSON; an empty one is `None`.
pub(super) async fn read_json(body: Body) -> Result<Option<Value>, ApiError> {
    read_json_within(body, NODE_VALUES).await
}

/// Reads a body as JSON of at most so many values.
pub(super) async fn read_json_within(body: Body, most: usize) -> Result<Option<Value>, ApiError> {
    let Some(bytes) = read(body).await? else { return Ok(None) };
    BODIES.run(bytes.len(), move || to_json_within(&bytes, most).map(Some)).await?
}

/// Reads the bytes of a body as JSON of at most so many values.
pub(super) fn to_json_within(bytes: &[u8], most: usize) -> Result<Value, ApiError> {
    check_values(bytes, most)?;
    to_json(bytes)
}

/// Reads a body that says what groups are, as a schema says it; an empty one is `None`.
pub(super) async fn read_groups(
    body: Body,
    most: usize,
    schema: &'static str,
) -> Result<Option<Value>, ApiError> {
    let Some(bytes) = read(body).await? else { return Ok(None) };
    BODIES.run(bytes.len(), move || to_groups(&bytes, most, schema).map(Some)).await?
}

/// Reads the bytes of a body that says what groups are; the numbers of these must fit into files.
pub(super) fn to_groups(bytes: &[u8], most: usize, schema: &str) -> Result<Value, ApiError> {
    let value = to_json_within(bytes, most)?;
    match check_numbers(&value, &String::from_utf8_lossy(bytes)) {
        Ok(()) => Ok(value),
        Err(error) => Err(ApiError::schema_violation(value, schema, error.into())),
    }
}

/// Reads the bytes of a body as JSON.
pub(super) fn to_json(bytes: &[u8]) -> Result<Value, ApiError> {
    serde_json::from_slice(bytes).map_err(|error| {
        let text = String::from_utf8_lossy(bytes);
        let shown: String = text.chars().take(4096).collect();
        ApiError::malformed_request(&shown, &error.to_string())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a body that comes in pieces.
    fn in_pieces(pieces: Vec<Bytes>) -> Body {
        struct Pieces(std::collections::VecDeque<Bytes>);

        impl axum::body::HttpBody for Pieces {
            type Data = Bytes;
            type Error = std::convert::Infallible;

            fn poll_frame(
                mut self: std::pin::Pin<&mut Self>,
                _: &mut std::task::Context<'_>,
            ) -> std::task::Poll<Option<Result<hyper::body::Frame<Bytes>, Self::Error>>>
            {
                std::task::Poll::Ready(
                    self.0.pop_front().map(|it| Ok(hyper::body::Frame::data(it))),
                )
            }
        }

        Body::new(Pieces(pieces.into()))
    }

    #[tokio::test]
    async fn a_body_in_pieces_is_collected_up_to_the_limit() {
        let pieces = |sizes: &[usize]| sizes.iter().map(|it| vec![b'x'; *it].into()).collect();
        for sizes in [&[][..], &[3], &[3, 0, 4], &[LIMIT], &[1, LIMIT - 1]] {
            let text = collect(in_pieces(pieces(sizes))).await.unwrap();
            assert_eq!(text.len(), sizes.iter().sum::<usize>());
        }
        for sizes in [&[LIMIT + 1][..], &[LIMIT, 1], &[1, LIMIT]] {
            let error = collect(in_pieces(pieces(sizes))).await.unwrap_err();
            assert_eq!(error.status(), 413);
        }
    }

    #[tokio::test]
    async fn a_body_that_comes_at_once_is_not_copied() {
        let whole = Bytes::from_static(b"whole");
        let text = collect(Body::from(whole.clone())).await.unwrap();
        assert_eq!(text.as_ptr(), whole.as_ptr());
    }
}
