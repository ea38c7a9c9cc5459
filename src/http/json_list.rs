//! A JSON list that is written while it is sent: element by element.

use serde::Serialize;

use super::streamed::Chunk;

/// From this size on, what is written is sent.
pub(super) const CHUNK: usize = 64 << 10;

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

impl<I: Iterator, T: Serialize, F: Fn(I::Item) -> T> JsonList<I, F> {
    /// Writes the next chunk.
    pub(super) fn next_chunk(&mut self) -> Chunk {
        let text = self.next_text().unwrap_or_default();
        if self.progress == Progress::Ended { Chunk::Last(text) } else { Chunk::More(text) }
    }

    /// Returns the text of the next chunk.
    fn next_text(&mut self) -> Option<Vec<u8>> {
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
                    // Wire types are always written, and a vector takes all.
                    serde_json::to_writer(&mut text, &(self.write)(element)).ok();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chunks_are_one_list() {
        for count in [0_usize, 1, 2, 50_000] {
            let mut list = JsonList::new(0..count, |it: usize| it.to_string());
            let mut chunks = 0;
            let mut text = Vec::new();
            while let Some(piece) = list.next_text() {
                assert!(piece.len() < CHUNK + 16);
                text.extend(piece);
                chunks += 1;
            }
            let read: Vec<String> = serde_json::from_slice(&text).unwrap();
            assert!(read.into_iter().eq((0..count).map(|it| it.to_string())));
            assert_eq!(chunks > 1, count == 50_000);
        }
    }
}
