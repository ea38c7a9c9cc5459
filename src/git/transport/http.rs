//! The transport of `http` and `https`: git's smart protocol, one request a turn.

mod session;

use std::io::{self, Read, Write};
use std::sync::Arc;

use git2::transport::{Service, SmartSubtransport, SmartSubtransportStream};
use parking_lot::Mutex;
use ureq::BodyReader;

use self::session::{Session, tell};
use super::advertisement::Advertisement;
use super::attempt::Attempt;
use crate::git::failure::FetchError;

pub(super) struct Http {
    attempt: Arc<Attempt>,
    /// Made by the first request, for credentials are read then.
    session: Mutex<Option<Arc<Session>>>,
}

impl Http {
    pub(super) fn new(attempt: Arc<Attempt>) -> Self {
        Self { attempt, session: Mutex::new(None) }
    }

    fn open(&self, service: Service) -> Result<Stream, FetchError> {
        let mut slot = self.session.lock();
        if let (Service::UploadPack | Service::ReceivePack, Some(session)) =
            (service, slot.as_ref())
        {
            let turn = Turn::Asking(Arc::clone(session), Vec::new());
            let advertisement = Advertisement::over();
            return Ok(Stream { attempt: Arc::clone(&self.attempt), turn, advertisement });
        }
        let name = match service {
            Service::UploadPackLs | Service::UploadPack => "git-upload-pack",
            Service::ReceivePackLs | Service::ReceivePack => "git-receive-pack",
        };
        let (session, body) = Session::open(&self.attempt, name)?;
        *slot = Some(Arc::new(session));
        let turn = Turn::Answering(Box::new(body));
        let advertisement = self.attempt.advertisement();
        Ok(Stream { attempt: Arc::clone(&self.attempt), turn, advertisement })
    }
}

impl SmartSubtransport for Http {
    fn action(
        &self,
        _url: &str,
        service: Service,
    ) -> Result<Box<dyn SmartSubtransportStream>, git2::Error> {
        let stream = self.open(service).map_err(|error| self.attempt.fail(error))?;
        Ok(Box::new(stream))
    }

    fn close(&self) -> Result<(), git2::Error> {
        *self.session.lock() = None;
        Ok(())
    }
}

/// One request and its answer: libgit2 writes the whole question, then reads.
struct Stream {
    attempt: Arc<Attempt>,
    turn: Turn,
    advertisement: Advertisement,
}

enum Turn {
    Asking(Arc<Session>, Vec<u8>),
    Answering(Box<BodyReader<'static>>),
}

impl Stream {
    fn receive(&mut self, buffer: &mut [u8]) -> Result<usize, FetchError> {
        let mut advertisement = std::mem::take(&mut self.advertisement);
        let received = advertisement.read_from(buffer, |it| self.answer(it));
        self.advertisement = advertisement;
        received
    }

    fn answer(&mut self, buffer: &mut [u8]) -> Result<usize, FetchError> {
        if let Turn::Asking(session, question) = &self.turn {
            self.attempt.note_sent(question);
            let body = session.post(&self.attempt, question)?;
            self.turn = Turn::Answering(Box::new(body));
        }
        let Turn::Answering(body) = &mut self.turn else { return Ok(0) };
        self.attempt.remaining()?;
        let bytes = body.read(buffer).map_err(|error| tell(&self.attempt, error.into()))?;
        self.attempt.check(buffer.get(..bytes).unwrap_or_default())?;
        Ok(bytes)
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.receive(buffer).map_err(|error| self.attempt.fail_io(error))
    }
}

impl Write for Stream {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        match &mut self.turn {
            Turn::Asking(_, question) => {
                question.extend_from_slice(buffer);
                Ok(buffer.len())
            }
            Turn::Answering(_) => Err(io::Error::other("the question was asked already")),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
