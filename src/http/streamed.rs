//! Responses that are computed while they are sent: chunk by chunk, as fast as the client reads.
//!
//! Each chunk is computed on a thread that may block, and that is free while the client reads.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use hyper::body::Frame;

use super::compute::Lane;
use super::error::ApiError;

/// A chunk of a response.
#[derive(Debug)]
pub(super) enum Chunk {
    /// More chunks follow.
    More(Vec<u8>),
    /// The last chunk.
    Last(Vec<u8>),
}

/// Writes the next chunk of a response. Blocking.
type Write<E> = Box<dyn FnMut() -> Result<Chunk, E> + Send>;

/// Sends JSON that is written chunk by chunk. An error instead of the first chunk is the response; a later
/// one closes the connection, so that no client takes a part for the whole.
///
/// # Errors
///
/// Returns the error of the first chunk.
pub(super) async fn stream<E>(
    lane: &'static Lane,
    weight: usize,
    write: impl FnMut() -> Result<Chunk, E> + Send + 'static,
) -> Result<Response, ApiError>
where
    E: Into<ApiError> + std::error::Error + Send + Sync + 'static,
{
    let mut write: Write<E> = Box::new(write);
    let (write, first) = lane
        .run(weight, move || {
            let chunk = write();
            (write, chunk)
        })
        .await?;
    Ok(respond(lane, first.map_err(Into::into)?, write))
}

/// Sends JSON of which the first chunk is written, and the others as in [`stream`].
pub(super) fn follow<E>(
    lane: &'static Lane,
    first: Chunk,
    write: impl FnMut() -> Result<Chunk, E> + Send + 'static,
) -> Response
where
    E: std::error::Error + Send + Sync + 'static,
{
    respond(lane, first, Box::new(write))
}

fn respond<E>(lane: &'static Lane, first: Chunk, write: Write<E>) -> Response
where
    E: std::error::Error + Send + Sync + 'static,
{
    let body = match first {
        // A short response has a length.
        Chunk::Last(text) => Body::from(text),
        Chunk::More(text) => {
            Body::new(Streamed { lane, state: State::Ready { text: text.into(), write } })
        }
    };
    let mut response = body.into_response();
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

/// The rest of a response.
struct Streamed<E> {
    lane: &'static Lane,
    state: State<E>,
}

type WriteResult<E> = Result<(Write<E>, Result<Chunk, E>), ApiError>;

enum State<E> {
    /// A chunk can be sent.
    Ready {
        text: Bytes,
        write: Write<E>,
    },
    /// A chunk is being written.
    Writing(Pin<Box<dyn Future<Output = WriteResult<E>> + Send>>),
    Ended,
}

/// A response is incomplete.
#[derive(Debug, thiserror::Error)]
#[error("the rest of the response cannot be written")]
struct Incomplete;

impl<E: std::error::Error + Send + 'static> HttpBody for Streamed<E> {
    type Data = Bytes;
    type Error = Incomplete;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Incomplete>>> {
        let lane = self.lane;
        match std::mem::replace(&mut self.state, State::Ended) {
            State::Ended => Poll::Ready(None),
            State::Ready { text, mut write } => {
                self.state = State::Writing(Box::pin(lane.run_next(move || {
                    let chunk = write();
                    (write, chunk)
                })));
                Poll::Ready(Some(Ok(Frame::data(text))))
            }
            State::Writing(mut future) => match future.as_mut().poll(context) {
                Poll::Pending => {
                    self.state = State::Writing(future);
                    Poll::Pending
                }
                Poll::Ready(Ok((write, Ok(Chunk::More(text))))) => {
                    self.state = State::Ready { text: text.into(), write };
                    self.poll_frame(context)
                }
                Poll::Ready(Ok((_, Ok(Chunk::Last(text))))) => {
                    Poll::Ready(Some(Ok(Frame::data(text.into()))))
                }
                Poll::Ready(Ok((_, Err(error)))) => {
                    tracing::warn!(%error, "a response is cut off");
                    Poll::Ready(Some(Err(Incomplete)))
                }
                Poll::Ready(Err(_)) => Poll::Ready(Some(Err(Incomplete))),
            },
        }
    }
}
