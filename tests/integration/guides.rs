//! The guides: every command that they show is run, in order, and prints what they show.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::program::root;
use crate::readme::updating;

/// A guide cut at its commands: text that stays, commands, and what they print.
enum Part {
    /// Text, and what opens and closes blocks.
    Text(String),
    /// A command with its further lines, and what it is shown to print.
    Command { shown: String, output: String },
    /// A command in a comment: what a reader has already, such as certificates.
    Silent { text: String, command: String },
}

/// Output is one stream; a daemon has its own, and is waited for.
const PRELUDE: &str = "exec 2>&1
cd \"$HOME\"
export CLADE_CACHE_DIR=\"$HOME/cache\"
answers() {
    for _ in $(seq 400); do curl -ks -o /dev/null \"$1/readyz\" && return; sleep 0.05; done
    cat serve.log
}
";

fn parts(page: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut inside = false;
    for line in page.split_inclusive('\n') {
        let silent = line.strip_prefix("<!-- runs: ").and_then(|it| it.strip_suffix(" -->\n"));
        match parts.last_mut() {
            _ if line == "```console\n" => {
                inside = true;
                parts.push(Part::Text(line.to_owned()));
            }
            _ if inside && line == "```\n" => {
                inside = false;
                parts.push(Part::Text(line.to_owned()));
            }
            _ if inside && line.starts_with("$ ") => {
                parts.push(Part::Command { shown: line.to_owned(), output: String::new() });
            }
            Some(Part::Command { shown, .. }) if inside && line.starts_with("> ") => {
                *shown += line;
            }
            Some(Part::Command { output, .. }) if inside => *output += line,
            _ => match silent {
                Some(command) => {
                    parts.push(Part::Silent { text: line.to_owned(), command: command.to_owned() });
                }
                None => parts.push(Part::Text(line.to_owned())),
            },
        }
    }
    parts
}

/// The machine of a reader: a home, and the directories of the system that guides speak of.
struct Machine {
    directory: tempfile::TempDir,
    port: String,
}

impl Machine {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        for path in ["home", "bin", "etc/clade", "etc/puppetlabs/puppet", "var/lib"] {
            std::fs::create_dir_all(directory.path().join(path)).unwrap();
        }
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_clade"), directory.path().join("bin/clade"))
            .unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        Self { directory, port: port.to_string() }
    }

    fn path(&self, name: &str) -> String {
        self.directory.path().join(name).to_str().unwrap().to_owned()
    }

    /// Turns what a guide says into what is true here.
    fn here(&self, text: &str) -> String {
        // The daemons of tests are reached from this machine alone.
        text.replace("0.0.0.0:4433", "127.0.0.1:4433")
            .replace("server: https://puppet.example.com", "server: https://127.0.0.1")
            .replace("4433", &self.port)
            .replace("/etc/clade", &self.path("etc/clade"))
            .replace("/etc/puppetlabs", &self.path("etc/puppetlabs"))
            .replace("/var/lib/", &self.path("var/lib/"))
            .replace("/home/ada", &self.path("home"))
            .replace(
                "oci://ghcr.io/clade-classifier/charts/clade",
                root().join("charts/clade").to_str().unwrap(),
            )
    }

    /// Turns it back.
    fn shown(&self, text: &str) -> String {
        let time = regex::Regex::new(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z").unwrap();
        let text = time.replace_all(text, "2026-11-02T09:00:00Z");
        text.replace("listen: \"127.0.0.1", "listen: \"0.0.0.0")
            .replace(&self.path("etc/"), "/etc/")
            .replace(&self.path("var/"), "/var/")
            .replace(&self.path("home"), "/home/ada")
            .replace(&format!(":{}", self.port), ":4433")
    }

    /// Returns what the shell is to do for a command.
    fn line(&self, command: &str) -> String {
        // What a file of settings says is not to be overruled.
        let with_file = command.contains(" --config ");
        let Some(daemon) = command.strip_suffix(" &") else {
            return if with_file {
                format!("unset CLADE_SERVER\n{command}")
            } else {
                command.to_owned()
            };
        };
        let address = format!("127.0.0.1:{}", self.port);
        let (scheme, listen) = match with_file {
            true => ("https", String::new()),
            false => ("http", format!("CLADE_LISTEN={address} ")),
        };
        format!("{listen}{daemon} >serve.log 2>&1 &\nanswers {scheme}://{address}")
    }

    /// Runs commands in one shell and returns what each printed.
    fn run(&self, commands: &[String]) -> Vec<String> {
        let mut script = PRELUDE.to_owned();
        for command in commands {
            script += "printf '\\001'\n";
            script += &self.line(command);
            script.push('\n');
        }
        script += "printf '\\001'\nkill $(jobs -p) 2>/dev/null\nwait\n";
        let file = self.directory.path().join("script");
        std::fs::write(&file, script).unwrap();
        let path = format!("{}:{}", self.path("bin"), std::env::var("PATH").unwrap());
        let done = Command::new("bash")
            .arg(&file)
            .env_clear()
            .env("PATH", path)
            .env("HOME", self.path("home"))
            .env("ROOT", root())
            .env("CLADE_SERVER", format!("http://127.0.0.1:{}", self.port))
            .env("LC_ALL", "C.UTF-8")
            .envs(["AUTHOR", "COMMITTER"].into_iter().flat_map(|who| {
                [
                    (format!("GIT_{who}_NAME"), "Ada"),
                    (format!("GIT_{who}_EMAIL"), "ada@example.com"),
                    (format!("GIT_{who}_DATE"), "2026-11-02T09:00:00Z"),
                ]
            }))
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = String::from_utf8(done.stdout).unwrap();
        let mut outputs: Vec<String> =
            text.split('\u{1}').skip(1).map(|it| self.shown(it)).collect();
        outputs.pop();
        assert_eq!(outputs.len(), commands.len(), "the shell ended early: {text}");
        outputs
    }
}

/// Returns the command of lines that begin with `$ ` and `> `.
fn command(shown: &str) -> String {
    let lines = shown.lines().map(|line| line.get(2..).unwrap_or_default());
    lines.collect::<Vec<_>>().join("\n")
}

fn missing(page: &str) -> Option<&'static str> {
    let has = |it: &str| Command::new(it).arg("--help").output().is_ok();
    ["curl", "openssl", "git", "helm"].into_iter().find(|it| {
        (page.contains(&format!("$ {it}")) || page.contains(&format!("runs: {it}"))) && !has(it)
    })
}

fn check(path: &Path) -> usize {
    let page = std::fs::read_to_string(path).unwrap();
    if let Some(missing) = missing(&page) {
        eprintln!("skipped: needs {missing}");
        return 0;
    }
    let machine = Machine::new();
    let parts = parts(&page);
    let commands: Vec<String> = parts
        .iter()
        .filter_map(|part| match part {
            Part::Text(_) => None,
            Part::Command { shown, .. } => Some(machine.here(&command(shown))),
            Part::Silent { command, .. } => Some(machine.here(command)),
        })
        .collect();
    let mut printed = machine.run(&commands).into_iter();
    let mut updated = String::new();
    for part in &parts {
        match part {
            Part::Text(text) => updated += text,
            Part::Silent { text, .. } => {
                let said = printed.next().unwrap();
                assert!(said.is_empty(), "{text}{said}");
                updated += text;
            }
            Part::Command { shown, output } => {
                let mut said = printed.next().unwrap();
                if !said.is_empty() && !said.ends_with('\n') {
                    said.push('\n');
                }
                let name = path.display();
                let hint = "run with UPDATE_DOCS=1 and read the difference";
                assert!(
                    updating() || *output == said,
                    "{name}: {shown}shown:\n{output}is:\n{said}{hint}"
                );
                updated = updated + shown + &said;
            }
        }
    }
    if updating() {
        std::fs::write(path, updated).unwrap();
    }
    commands.len()
}

fn guides() -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(root().join("docs/guides"))
        .unwrap()
        .map(|it| it.unwrap().path())
        .filter(|it| it.extension().is_some_and(|it| it == "md"))
        .collect();
    found.sort();
    found
}

#[test]
fn every_command_of_the_guides_prints_what_they_show() {
    let checked: usize = guides().iter().map(|it| check(it)).sum();
    assert!(checked == 0 || checked > 20, "the commands are there: {checked}");
}

#[test]
fn links_between_documents_lead_somewhere() {
    let documents =
        ["README.md", "CHANGELOG.md", "SECURITY.md", "CONTRIBUTING.md", "ARCHITECTURE.md"];
    let others = ["docs/concepts.md", "charts/clade/README.md", "examples/monitoring/README.md"];
    let reference = ["http", "metrics", "settings", "conditions", "commands"]
        .map(|it| root().join(format!("docs/reference/{it}.md")));
    let all = documents.iter().chain(&others).map(|it| root().join(it));
    for path in all.chain(reference).chain(guides()) {
        let text = std::fs::read_to_string(&path).unwrap();
        for part in text.split("](").skip(1) {
            let target = part.split([')', '#']).next().unwrap();
            if target.is_empty() || target.contains("://") {
                continue;
            }
            let found = path.parent().unwrap().join(target);
            assert!(found.exists(), "{}: {target} leads nowhere", path.display());
        }
    }
}
