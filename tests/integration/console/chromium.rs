//! A headless Chromium, driven over `WebDriver`.
//!
//! Every call has a deadline. The driver leaves connections open (its browser inherits them), so an answer ends where
//! its length says, not where the connection does.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use base64::Engine as _;
use serde_json::{Value, json};

use crate::program::{Daemon, root};

/// How long the driver may take to start, and a page to load or to be in a state.
const TIMEOUT: Duration = Duration::from_mins(2);

/// A browser with a profile of its own; it ends when this is dropped.
pub(crate) struct Chromium {
    child: Child,
    /// The address of the driver.
    driver: String,
    session: String,
    /// The leader of the group of processes that the browser is.
    browser: Option<u64>,
    _profile: tempfile::TempDir,
}

/// The colours that a visitor prefers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Scheme {
    Light,
    Dark,
}

impl Drop for Chromium {
    fn drop(&mut self) {
        call(&self.driver, "DELETE", &self.session, "").ok();
        if let Some(browser) = self.browser {
            // It has ended, unless it does not answer.
            let group = format!("-{browser}");
            Command::new("kill").args(["-KILL", "--", &group]).stderr(Stdio::null()).status().ok();
        }
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Starts the driver with a directory for all that it and its browser leave, and returns the address that it says it has.
///
/// It can end at once: other tests take ports, too, and the one that it chose may not be free any more.
fn start_driver(directory: &Path) -> std::io::Result<(Child, String)> {
    const ATTEMPTS: usize = 5;
    for _ in 0..ATTEMPTS {
        if let Some(started) = try_driver(directory)? {
            return Ok(started);
        }
    }
    panic!("chromedriver ended without a port, {ATTEMPTS} times");
}

/// Starts the driver once; `None` if it ends without a port.
fn try_driver(directory: &Path) -> std::io::Result<Option<(Child, String)>> {
    let mut command = Command::new("chromedriver");
    command.env("TMPDIR", directory);
    let mut child = command.arg("--port=0").stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let (sender, ports) = std::sync::mpsc::channel();
    // All of its output is read, so that it never waits for a reader.
    std::thread::spawn(move || {
        for line in lines.map_while(Result::ok) {
            if let Some((_, port)) = line.split_once("started successfully on port ") {
                sender.send(port.trim_end_matches('.').to_owned()).ok();
            }
        }
    });
    match ports.recv_timeout(TIMEOUT) {
        Ok(port) => Ok(Some((child, format!("127.0.0.1:{port}")))),
        Err(RecvTimeoutError::Disconnected) => {
            child.wait()?;
            Ok(None)
        }
        Err(RecvTimeoutError::Timeout) => panic!("chromedriver names no port"),
    }
}

/// Sends a command to the driver and returns the status and the value of its answer.
fn call(driver: &str, method: &str, path: &str, body: &str) -> std::io::Result<(u16, Value)> {
    let deadline = Instant::now() + TIMEOUT + Duration::from_secs(30);
    let mut stream = TcpStream::connect(driver)?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    let mut part = vec![0; 1 << 16];
    loop {
        if let Some(complete) = complete(&answer) {
            return Ok(complete);
        }
        let left = deadline.saturating_duration_since(Instant::now());
        // A timeout of nothing would be none.
        stream.set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
        match stream.read(&mut part)? {
            0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            read => answer.extend_from_slice(&part[..read]),
        }
    }
}

/// Returns the status and the value of an answer, if all of it is here.
fn complete(answer: &[u8]) -> Option<(u16, Value)> {
    let end = answer.windows(4).position(|it| it == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&answer[..end]).unwrap();
    let mut headers = head.lines().filter_map(|it| it.split_once(':'));
    let length = headers.find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let length: usize = length.unwrap().1.trim().parse().unwrap();
    let body = answer.get(end + 4..end + 4 + length)?;
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let body: Value = serde_json::from_slice(body).unwrap();
    Some((status, body["value"].clone()))
}

impl Chromium {
    /// Starts a browser; none where it is not installed.
    pub(crate) fn start() -> Option<Self> {
        let profile = tempfile::tempdir().unwrap();
        let Ok((child, driver)) = start_driver(profile.path()) else {
            eprintln!("skipped: needs chromium and chromium-driver (just setup)");
            return None;
        };
        let arguments = [
            "--headless=new",
            "--no-sandbox",
            "--no-first-run",
            "--disable-gpu",
            "--disable-background-networking",
            "--hide-scrollbars",
            "--disable-dev-shm-usage",
            "--window-size=1280,900",
            "--force-device-scale-factor=1",
            &format!("--user-data-dir={}", profile.path().join("profile").display()),
        ];
        let wanted = json!({"capabilities": {"alwaysMatch": {
            "browserName": "chrome",
            "timeouts": {"pageLoad": 120_000, "script": 120_000},
            "goog:chromeOptions": {"args": arguments},
        }}});
        let mut browser =
            Self { child, driver, session: String::new(), browser: None, _profile: profile };
        let opened = browser.send("/session", &wanted);
        browser.browser = opened["capabilities"]["goog:processID"].as_u64();
        browser.session = format!("/session/{}", opened["sessionId"].as_str().unwrap());
        Some(browser)
    }

    fn send(&self, path: &str, body: &Value) -> Value {
        self.call("POST", path, &body.to_string())
    }

    fn call(&self, method: &str, path: &str, body: &str) -> Value {
        let path = format!("{}{path}", self.session);
        let answer = call(&self.driver, method, &path, body);
        let (status, value) = answer.unwrap_or_else(|error| panic!("{path}: {error}"));
        assert_eq!(status, 200, "{path}: {value}");
        value
    }

    /// Sends a command of the developer tools.
    fn command(&self, command: &str, parameters: &Value) -> Value {
        self.send("/goog/cdp/execute", &json!({"cmd": command, "params": parameters}))
    }

    /// Opens a page and waits until it is there.
    pub(crate) fn open(&self, daemon: &Daemon, path: &str) {
        self.send("/url", &json!({"url": format!("http://{}{path}", daemon.address())}));
    }

    /// Runs a script and returns what it returns.
    pub(crate) fn run(&self, script: &str) -> Value {
        self.send("/execute/sync", &json!({"script": script, "args": []}))
    }

    /// Waits until a script returns true.
    pub(crate) fn wait_until(&self, script: &str) {
        let began = Instant::now();
        while self.run(script) != Value::Bool(true) {
            assert!(began.elapsed() < TIMEOUT, "never: {script}: {}", self.text());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Returns the text of the page.
    pub(crate) fn text(&self) -> String {
        self.run("return document.body.innerText").as_str().unwrap_or_default().to_owned()
    }

    /// Clicks the first element that a selector finds.
    pub(crate) fn click(&self, selector: &str) {
        let found = self.send("/element", &json!({"using": "css selector", "value": selector}));
        let id = found.as_object().unwrap().values().next().unwrap().as_str().unwrap().to_owned();
        self.send(&format!("/element/{id}/click"), &json!({}));
    }

    /// Presses keys, one after the other.
    pub(crate) fn press(&self, keys: &str) {
        let actions: Vec<Value> = keys
            .chars()
            .flat_map(|it| {
                [
                    json!({"type": "keyDown", "value": it.to_string()}),
                    json!({"type": "keyUp", "value": it.to_string()}),
                ]
            })
            .collect();
        self.send(
            "/actions",
            &json!({"actions": [{"type": "key", "id": "keys", "actions": actions}]}),
        );
    }

    /// Has pages drawn in light or dark colours.
    pub(crate) fn prefer(&self, scheme: Scheme) {
        let value = match scheme {
            Scheme::Light => "light",
            Scheme::Dark => "dark",
        };
        let features = json!({"features": [{"name": "prefers-color-scheme", "value": value}]});
        self.command("Emulation.setEmulatedMedia", &features);
    }

    /// Switches JavaScript off.
    pub(crate) fn without_scripts(&self) {
        self.command("Emulation.setScriptExecutionDisabled", &json!({"value": true}));
    }

    /// Makes the window as wide and as high as this.
    pub(crate) fn resize(&self, width: u32, height: u32) {
        let size =
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.command("Emulation.setDeviceMetricsOverride", &size);
    }

    /// Returns a picture of the window.
    pub(crate) fn picture(&self) -> Vec<u8> {
        let picture = self.call("GET", "/screenshot", "");
        let text = picture.as_str().unwrap();
        base64::engine::general_purpose::STANDARD.decode(text).unwrap()
    }

    /// Returns what axe-core finds wrong for people who cannot see or use a mouse; none without axe-core.
    pub(crate) fn violations(&self) -> Option<Vec<String>> {
        let axe = root().join("target/peers/node_modules/axe-core/axe.min.js");
        let Ok(axe) = std::fs::read_to_string(axe) else {
            eprintln!("skipped: needs axe-core (just setup)");
            return None;
        };
        self.run(&axe);
        let script = "const done = arguments[arguments.length - 1]; axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']}).then((it) => done(it.violations.map((v) => v.id + ': ' + v.nodes.slice(0, 3).map((n) => n.html + ' ' + n.failureSummary).join(' | '))))";
        let found = self.send("/execute/async", &json!({"script": script, "args": []}));
        Some(found.as_array().unwrap().iter().map(|it| it.as_str().unwrap().to_owned()).collect())
    }
}
