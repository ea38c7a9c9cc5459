//! A JSON list that is written while it is sent: element by element, as fast as the client reads.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use hyper::body::Frame;
use serde_json::Value;

/// From this size on, what is written is sent.
const CHUNK: usize = 64 << 10;

/// A list whose elements are made when they are sent.
pub(super) struct JsonList<I, F> {
    elements: I,
    write: F,
    progress: Progress,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    Start,
    Within,
    Ended,
}

impl<I, F> JsonList<I, F> {
    pub(super) fn new(elements: I, write: F) -> Self {
        Self { elements, write, progress: Progress::Start }
    }
}

impl<I: Iterator, F: Fn(I::Item) -> Value> JsonList<I, F> {
    /// Returns the next piece of the text.
    fn chunk(&mut self) -> Option<Vec<u8>> {
        let mut text = Vec::new();
        while self.progress != Progress::Ended && text.len() < CHUNK {
            let element = self.elements.next();
            text.push(match (self.progress, &element) {
                (Progress::Start, _) => b'[',
                (_, Some(_)) => b',',
                (_, None) => b']',
            });
            match element {
                Some(element) => {
                    text.extend((self.write)(element).to_string().into_bytes());
                    self.progress = Progress::Within;
                }
                None => {
                    if self.progress == Progress::Start {
                        text.push(b']');
                    }
                    self.progress = Progress::Ended;
                }
            }
        }
        (!text.is_empty()).then_some(text)
    }
}

impl<I, F> HttpBody for JsonList<I, F>
where
    I: Iterator + Unpin,
    F: Fn(I::Item) -> Value + Unpin,
{
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let chunk = self.get_mut().chunk();
        Poll::Ready(chunk.map(|it| Ok(Frame::data(it.into()))))
    }
}

/// A list of which the first piece is written already.
struct Resumed<L> {
    first: Option<Bytes>,
    rest: L,
}

impl<L: HttpBody<Data = Bytes, Error = Infallible> + Unpin> HttpBody for Resumed<L> {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.first.take() {
            Some(first) => Poll::Ready(Some(Ok(Frame::data(first)))),
            None => Pin::new(&mut self.rest).poll_frame(context),
        }
    }
}

impl<I, F> IntoResponse for JsonList<I, F>
where
    I: Iterator + Unpin + Send + 'static,
    F: Fn(I::Item) -> Value + Unpin + Send + 'static,
{
    fn into_response(mut self) -> Response {
        let first = self.chunk().unwrap_or_default();
        // A short list is sent with its length.
        let body = match self.progress {
            Progress::Ended => Body::from(first),
            _ => Body::new(Resumed { first: Some(first.into()), rest: self }),
        };
        let mut response = Response::new(body);
        let json = HeaderValue::from_static("application/json");
        response.headers_mut().insert(header::CONTENT_TYPE, json);
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pieces_are_one_list() {
        for count in [0_usize, 1, 2, 50_000] {
            let mut list = JsonList::new(0..count, |it: usize| Value::from(it.to_string()));
            let mut pieces = 0;
            let mut text = Vec::new();
            while let Some(piece) = list.chunk() {
                assert!(piece.len() < CHUNK + 16);
                text.extend(piece);
                pieces += 1;
            }
            let read: Vec<String> = serde_json::from_slice(&text).unwrap();
            assert!(read.into_iter().eq((0..count).map(|it| it.to_string())));
            assert_eq!(pieces > 1, count == 50_000);
        }
    }
}
