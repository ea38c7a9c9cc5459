//! The queue of the writer.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use parking_lot::Mutex;

use super::receipt::Deliveries;
use super::request::{WriteError, WriteRequest, Written};
use crate::model::CommitId;

/// Answers a client.
pub(super) type Reply = Box<dyn FnOnce(Result<Written, WriteError>) + Send>;

/// A write that waits.
pub(super) struct QueuedWrite {
    pub(super) request: WriteRequest,
    /// Why the commit that it was tried on last does not allow it; none before a try, and where it was applied.
    pub(super) refusal: Option<WriteError>,
    pub(super) reply: Reply,
}

/// What the writer's thread receives.
pub(super) enum Message {
    /// A write.
    Write(Box<QueuedWrite>),
    /// The client of a write has its answer.
    Delivered(CommitId),
}

/// The end of the queue that messages are sent to.
#[derive(Clone, Debug)]
pub(super) struct WriteQueue {
    /// None when the daemon stops.
    sender: Arc<Mutex<Option<Sender<Message>>>>,
}

impl WriteQueue {
    /// Returns both ends of a queue.
    pub(super) fn new() -> (Self, Receiver<Message>) {
        let (sender, receiver) = channel();
        (Self { sender: Arc::new(Mutex::new(Some(sender))) }, receiver)
    }

    /// Sends a message; returns it if the queue is closed.
    pub(super) fn send(&self, message: Message) -> Result<(), Message> {
        match self.sender.lock().as_ref() {
            Some(sender) => sender.send(message).map_err(|error| error.0),
            None => Err(message),
        }
    }

    /// Takes no more messages.
    pub(super) fn close(&self) {
        self.sender.lock().take();
    }

    /// Returns deliveries that send a message for each answer that was sent.
    pub(super) fn deliveries(&self) -> Deliveries {
        let queue = self.clone();
        Deliveries::new(move |commit| {
            // When the daemon stops it is not noted: the same request again gets the same answer.
            let _stopping = queue.send(Message::Delivered(commit));
        })
    }
}
