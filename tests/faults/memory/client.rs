//! Clients that send requests, read slowly, and end at a deadline.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The deadline of the clients.
#[derive(Debug)]
pub(super) struct Stop {
    deadline: Instant,
    is_early: AtomicBool,
}

impl Stop {
    pub(super) fn new(time: Duration) -> Self {
        Self { deadline: Instant::now() + time, is_early: AtomicBool::new(false) }
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_early.load(Ordering::Relaxed) || Instant::now() >= self.deadline
    }

    pub(super) fn sleep(&self, time: Duration) {
        let until = Instant::now() + time;
        while Instant::now() < until && !self.is_over() {
            std::thread::sleep(time.min(Duration::from_millis(20)));
        }
    }
}

/// How requests ended, by status; 0 is a connection that ended or was left without an answer.
#[derive(Debug, Default)]
pub(super) struct Counts(BTreeMap<u16, u64>);

impl Counts {
    pub(super) fn count(&mut self, status: u16) {
        *self.0.entry(status).or_default() += 1;
    }

    pub(super) fn add(&mut self, other: &Self) {
        for (status, count) in &other.0 {
            *self.0.entry(*status).or_default() += count;
        }
    }
}

impl std::fmt::Display for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let all: Vec<String> =
            self.0.iter().map(|(status, count)| format!("{count} × {status}")).collect();
        f.write_str(&all.join(", "))
    }
}

/// How fast a client reads.
#[derive(Clone, Copy, Debug)]
pub(super) enum Reading {
    Fast,
    /// As slowly as it may without losing its connection.
    Slow,
}

/// Sends a request and discards the answer; returns its status.
pub(super) fn ask(address: &str, stop: &Stop, head: &str, body: &[u8], reading: Reading) -> u16 {
    let length = body.len();
    let head =
        format!("{head}Host: localhost\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n");
    let Ok(mut stream) = TcpStream::connect(address) else { return 0 };
    stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    stream.set_write_timeout(Some(Duration::from_millis(100))).unwrap();
    if !send(&mut stream, stop, head.as_bytes()) {
        return 0;
    }
    // The daemon may answer, and close, before all is sent.
    send(&mut stream, stop, body);
    read(&mut stream, stop, reading)
}

/// Asks until the daemon is not busy any more: on a busy machine others may take their turns for too long.
pub(super) fn until_admitted(stop: &Stop, ask: impl Fn() -> u16) -> u16 {
    loop {
        let status = ask();
        if status != 503 || stop.is_over() {
            return status;
        }
        stop.sleep(Duration::from_secs(1));
    }
}

fn send(stream: &mut TcpStream, stop: &Stop, bytes: &[u8]) -> bool {
    let mut left = bytes;
    while !left.is_empty() {
        if stop.is_over() {
            return false;
        }
        match stream.write(left) {
            Ok(count) => left = &left[count..],
            Err(error) if is_timeout(&error) => {}
            Err(_) => return false,
        }
    }
    true
}

fn read(stream: &mut TcpStream, stop: &Stop, reading: Reading) -> u16 {
    let (mut start, mut buffer) = (Vec::new(), vec![0; 64 << 10]);
    while !stop.is_over() {
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) if start.len() < 16 => start.extend_from_slice(&buffer[..count.min(16)]),
            Ok(_) => {}
            Err(error) if is_timeout(&error) => {}
            Err(_) => break,
        }
        if let Reading::Slow = reading {
            stop.sleep(Duration::from_millis(500));
        }
    }
    let start = String::from_utf8_lossy(&start).into_owned();
    start.split(' ').nth(1).and_then(|it| it.parse().ok()).unwrap_or(0)
}

fn is_timeout(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}
