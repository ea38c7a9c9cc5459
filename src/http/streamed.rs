//! Answers that are computed while they are sent: piece by piece, as fast as the client reads.
//!
//! Each piece is computed on a thread that may block, which is free again while the client reads.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use hyper::body::Frame;

use super::compute::Lane;
use super::error::ApiError;

/// A part of an answer.
#[derive(Debug)]
pub(super) enum Piece {
    /// Others follow.
    More(Vec<u8>),
    /// It is the end.
    Last(Vec<u8>),
}

/// What writes the pieces of an answer. Blocking.
type Write<E> = Box<dyn FnMut() -> Result<Piece, E> + Send>;

/// Sends a JSON text that is written piece by piece. The first piece may be an error; a later one
/// breaks the connection off, so that no client takes a part for the whole.
///
/// # Errors
///
/// Returns why there is no first piece.
pub(super) async fn streamed<E>(
    lane: &'static Lane,
    weight: usize,
    write: impl FnMut() -> Result<Piece, E> + Send + 'static,
) -> Result<Response, ApiError>
where
    E: Into<ApiError> + std::error::Error + Send + Sync + 'static,
{
    let mut write: Write<E> = Box::new(write);
    let (write, first) = lane
        .run(weight, move || {
            let piece = write();
            (write, piece)
        })
        .await?;
    let body = match first.map_err(Into::into)? {
        // An answer that is short has a length.
        Piece::Last(text) => Body::from(text),
        Piece::More(text) => {
            Body::new(Streamed { lane, state: State::Ready { text: text.into(), write } })
        }
    };
    let mut response = body.into_response();
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    Ok(response)
}

/// The rest of an answer.
struct Streamed<E> {
    lane: &'static Lane,
    state: State<E>,
}

type Written<E> = Result<(Write<E>, Result<Piece, E>), ApiError>;

enum State<E> {
    /// A piece can be sent.
    Ready {
        text: Bytes,
        write: Write<E>,
    },
    /// A piece is being written.
    Writing(Pin<Box<dyn Future<Output = Written<E>> + Send>>),
    Ended,
}

/// An answer ended before its end.
#[derive(Debug, thiserror::Error)]
#[error("the rest of the answer cannot be written")]
struct BrokenOff;

impl<E: std::error::Error + Send + 'static> HttpBody for Streamed<E> {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        let lane = self.lane;
        match std::mem::replace(&mut self.state, State::Ended) {
            State::Ended => Poll::Ready(None),
            State::Ready { text, mut write } => {
                self.state = State::Writing(Box::pin(lane.go_on(move || {
                    let piece = write();
                    (write, piece)
                })));
                Poll::Ready(Some(Ok(Frame::data(text))))
            }
            State::Writing(mut future) => match future.as_mut().poll(context) {
                Poll::Pending => {
                    self.state = State::Writing(future);
                    Poll::Pending
                }
                Poll::Ready(Ok((write, Ok(Piece::More(text))))) => {
                    self.state = State::Ready { text: text.into(), write };
                    self.poll_frame(context)
                }
                Poll::Ready(Ok((_, Ok(Piece::Last(text))))) => {
                    Poll::Ready(Some(Ok(Frame::data(text.into()))))
                }
                Poll::Ready(Ok((_, Err(error)))) => {
                    tracing::warn!(%error, "an answer breaks off");
                    Poll::Ready(Some(Err(BrokenOff)))
                }
                Poll::Ready(Err(_)) => Poll::Ready(Some(Err(BrokenOff))),
            },
        }
    }
}
