//! A connection of an agent's server, which stays open from check-in to check-in.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use crate::load::header;

pub(super) struct Connection<'a> {
    address: &'a str,
    stream: Option<TcpStream>,
    response: Vec<u8>,
}

pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) commit: String,
    pub(super) body: String,
}

impl<'a> Connection<'a> {
    pub(super) fn new(address: &'a str) -> Self {
        Self { address, stream: None, response: Vec::new() }
    }

    /// Posts a body; one that fails is not repeated, and the next request opens another connection.
    pub(super) fn post(&mut self, path: &str, body: &str) -> Result<Answer, String> {
        let answer = self.exchange(path, body);
        if answer.is_err() {
            self.stream = None;
        }
        answer
    }

    fn exchange(&mut self, path: &str, body: &str) -> Result<Answer, String> {
        let said = |error: std::io::Error| format!("{path}: {}", error.kind());
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => {
                let stream = TcpStream::connect(self.address).map_err(said)?;
                stream.set_nodelay(true).map_err(said)?;
                stream.set_read_timeout(Some(Duration::from_secs(30))).map_err(said)?;
                stream
            }
        };
        let length = body.len();
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).map_err(said)?;
        let answer = self.read(&mut stream).map_err(said)?;
        self.stream = Some(stream);
        Ok(answer)
    }

    fn read(&mut self, stream: &mut TcpStream) -> std::io::Result<Answer> {
        let response = &mut self.response;
        response.clear();
        let mut buffer = [0; 16 << 10];
        loop {
            let count = stream.read(&mut buffer)?;
            if count == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            response.extend_from_slice(&buffer[..count]);
            let Some(end) = response.windows(4).position(|it| it == b"\r\n\r\n") else { continue };
            let head = String::from_utf8_lossy(&response[..end]).into_owned();
            let length = header(&head, "Content-Length").and_then(|it| it.parse::<usize>().ok());
            let Some(length) = length else { return Err(ErrorKind::InvalidData.into()) };
            if response.len() >= end + 4 + length {
                let status = head.split(' ').nth(1).and_then(|it| it.parse().ok());
                let commit = header(&head, "X-Clade-Commit").unwrap_or_default().to_owned();
                let body = String::from_utf8_lossy(&response[end + 4..]).into_owned();
                return Ok(Answer { status: status.unwrap_or_default(), commit, body });
            }
        }
    }
}
