//! A server may answer and close before it has read all of the request, for instance with the TLS alert
//! that says why it refuses a certificate. A failed write must not hide what it sent.

use std::io::{self, ErrorKind};

use ureq::Error;
use ureq::unversioned::transport::{Buffers, ConnectionDetails, Connector, NextTimeout, Transport};

/// Wraps connections so that failed writes are reported only after what the server sent was read.
#[derive(Debug)]
pub(super) struct EarlyClose;

#[derive(Debug)]
pub(super) struct EarlyCloseConnection<T> {
    inner: T,
    failed_write: Option<io::Error>,
}

impl<In: Transport> Connector<In> for EarlyClose {
    type Out = EarlyCloseConnection<In>;

    fn connect(
        &self,
        _details: &ConnectionDetails<'_>,
        chained: Option<In>,
    ) -> Result<Option<Self::Out>, Error> {
        Ok(chained.map(|inner| EarlyCloseConnection { inner, failed_write: None }))
    }
}

impl<T: Transport> Transport for EarlyCloseConnection<T> {
    fn buffers(&mut self) -> &mut dyn Buffers {
        self.inner.buffers()
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), Error> {
        if self.failed_write.is_some() {
            return Ok(());
        }
        match self.inner.transmit_output(amount, timeout) {
            Err(Error::Io(error))
                if matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) =>
            {
                self.failed_write = Some(error);
                Ok(())
            }
            done => done,
        }
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, Error> {
        let done = self.inner.await_input(timeout);
        match (done, self.failed_write.take()) {
            (Ok(false) | Err(_), Some(error)) => Err(Error::Io(error)),
            (done, failed) => {
                self.failed_write = failed;
                done
            }
        }
    }

    fn is_open(&mut self) -> bool {
        self.failed_write.is_none() && self.inner.is_open()
    }

    fn is_tls(&self) -> bool {
        self.inner.is_tls()
    }
}
