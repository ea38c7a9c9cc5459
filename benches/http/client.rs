//! A client that asks as fast as it gets answers, over connections that stay.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How many connections there are.
const CONNECTIONS: usize = 8;

/// Requests, in the bytes that are sent.
#[derive(Clone)]
pub(crate) struct Load {
    address: String,
    requests: Arc<Vec<Vec<u8>>>,
    pause: Duration,
}

/// How it went.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate {
    pub(crate) per_second: f64,
    /// The time that the server computes for a request.
    pub(crate) cpu: Duration,
    pub(crate) p50: Duration,
    pub(crate) p99: Duration,
}

impl Rate {
    pub(crate) fn median(mut rates: Vec<Self>) -> Self {
        let middle = rates.len() / 2;
        rates.sort_by(|a, b| a.per_second.total_cmp(&b.per_second));
        let per_second = rates[middle].per_second;
        let mut of = |key: fn(&Self) -> Duration| {
            rates.sort_by_key(key);
            key(&rates[middle])
        };
        Self { per_second, cpu: of(|it| it.cpu), p50: of(|it| it.p50), p99: of(|it| it.p99) }
    }
}

impl Load {
    pub(crate) fn posts(address: &str, path: &str, bodies: &[(String, Vec<u8>)]) -> Self {
        Self::posts_as(address, path, bodies, "")
    }

    /// Posts with a token.
    pub(crate) fn posts_with(
        address: &str,
        path: &str,
        bodies: &[(String, Vec<u8>)],
        token: &str,
    ) -> Self {
        Self::posts_as(address, path, bodies, &format!("Authorization: Bearer {token}\r\n"))
    }

    fn posts_as(address: &str, path: &str, bodies: &[(String, Vec<u8>)], header: &str) -> Self {
        let request = |(name, body): &(String, Vec<u8>)| {
            let length = body.len();
            let head = format!(
                "POST {path}{name} HTTP/1.1\r\nHost: localhost\r\n{header}Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
            );
            [head.as_bytes(), body].concat()
        };
        Self::of(address, bodies.iter().map(request).collect())
    }

    pub(crate) fn gets(address: &str, path: &str, bodies: &[(String, Vec<u8>)]) -> Self {
        let request = |(name, _): &(String, Vec<u8>)| {
            format!("GET {path}{name} HTTP/1.1\r\nHost: localhost\r\n\r\n").into_bytes()
        };
        Self::of(address, bodies.iter().map(request).collect())
    }

    fn of(address: &str, requests: Vec<Vec<u8>>) -> Self {
        Self { address: address.to_owned(), requests: Arc::new(requests), pause: Duration::ZERO }
    }

    /// Returns the same requests at a rate that the machine has no trouble with.
    pub(crate) fn paced(&self) -> Self {
        Self { pause: Duration::from_millis(5), ..self.clone() }
    }

    /// Asks for a time.
    pub(crate) fn run(&self, time: Duration, pid: u32) -> Rate {
        let (before, began) = (cpu(pid), Instant::now());
        let clients: Vec<_> = (0..CONNECTIONS)
            .map(|number| {
                let load = self.clone();
                std::thread::spawn(move || load.ask(number * 17, time))
            })
            .collect();
        let mut times: Vec<Duration> =
            clients.into_iter().flat_map(|it| it.join().unwrap()).collect();
        let took = began.elapsed();
        times.sort_unstable();
        Rate {
            per_second: times.len() as f64 / took.as_secs_f64(),
            cpu: (cpu(pid).saturating_sub(before)) / u32::try_from(times.len()).unwrap(),
            p50: times[times.len() / 2],
            p99: times[times.len() * 99 / 100],
        }
    }

    fn ask(&self, first: usize, time: Duration) -> Vec<Duration> {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_nodelay(true).unwrap();
        let mut buffer = vec![0; 64 << 10];
        let (mut times, began) = (Vec::new(), Instant::now());
        for number in first.. {
            let sent = Instant::now();
            if sent.duration_since(began) >= time {
                break;
            }
            stream.write_all(&self.requests[number % self.requests.len()]).unwrap();
            read_response(&mut stream, &mut buffer);
            times.push(sent.elapsed());
            if !self.pause.is_zero() {
                std::thread::sleep(self.pause);
            }
        }
        times
    }
}

/// Reads one response, which must be a good one.
fn read_response(stream: &mut TcpStream, buffer: &mut [u8]) {
    let mut filled = 0;
    loop {
        let read = stream.read(&mut buffer[filled..]).unwrap();
        assert!(read > 0, "the server closed the connection");
        filled += read;
        let Some(head) = buffer[..filled].windows(4).position(|it| it == b"\r\n\r\n") else {
            continue;
        };
        let text = std::str::from_utf8(&buffer[..head]).unwrap();
        assert!(text.starts_with("HTTP/1.1 200"), "{text}");
        let length = text.lines().find_map(|line| {
            let (name, value) = line.split_once(": ")?;
            name.eq_ignore_ascii_case("content-length").then(|| value.parse().unwrap())
        });
        let length: usize = length.unwrap();
        if filled == head + 4 + length {
            return;
        }
    }
}

/// Returns the time that a process has computed; the kernel counts hundredths of a second.
fn cpu(pid: u32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
    let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    Duration::from_millis(ticks * 10)
}
