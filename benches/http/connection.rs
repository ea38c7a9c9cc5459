//! A connection that stays, for one request after the other.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

pub(crate) struct Connection(TcpStream);

impl Connection {
    pub(crate) fn new(address: &str) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        Self(stream)
    }

    /// Asks, with more headers; returns the first line and the body of the response.
    pub(crate) fn exchange(
        &mut self,
        method: &str,
        path: &str,
        more: &str,
        body: &[u8],
    ) -> (String, Vec<u8>) {
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\n{more}Content-Length: {}\r\n\r\n",
            body.len()
        );
        self.0.write_all(&[head.as_bytes(), body].concat()).unwrap();
        let (mut response, mut buffer) = (Vec::new(), vec![0; 64 << 10]);
        loop {
            let read = self.0.read(&mut buffer).unwrap();
            assert!(read > 0, "{method} {path}: the server closed the connection");
            response.extend_from_slice(&buffer[..read]);
            let Some(head) = response.windows(4).position(|it| it == b"\r\n\r\n") else { continue };
            let text = std::str::from_utf8(&response[..head]).unwrap().to_owned();
            let is_chunked = text.to_ascii_lowercase().contains("transfer-encoding: chunked");
            let length = text.lines().find_map(|it| {
                let (name, value) = it.split_once(": ")?;
                name.eq_ignore_ascii_case("content-length").then(|| value.parse::<usize>().unwrap())
            });
            let is_whole = match is_chunked {
                true => response.ends_with(b"0\r\n\r\n"),
                false => response.len() >= head + 4 + length.unwrap_or_default(),
            };
            if is_whole {
                let body = response.split_off(head + 4);
                return (
                    text.lines().next().unwrap_or_default().to_owned(),
                    dechunked(body, is_chunked),
                );
            }
        }
    }
}

/// Joins the chunks of a body.
fn dechunked(body: Vec<u8>, is_chunked: bool) -> Vec<u8> {
    if !is_chunked {
        return body;
    }
    let (mut whole, mut rest) = (Vec::new(), &body[..]);
    loop {
        let end = rest.windows(2).position(|it| it == b"\r\n").unwrap();
        let size = usize::from_str_radix(std::str::from_utf8(&rest[..end]).unwrap(), 16).unwrap();
        if size == 0 {
            return whole;
        }
        whole.extend_from_slice(&rest[end + 2..end + 2 + size]);
        rest = &rest[end + 4 + size..];
    }
}
