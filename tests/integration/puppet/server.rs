//! A Puppet Server of our own on loopback, with its own authority, and agents.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::program::root;

/// The way in which Puppet Server asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Over `clade enc`.
    Exec,
    /// Through the node terminus.
    Terminus,
}

/// How long the server may take to start or to reload its settings.
const TIMEOUT: Duration = Duration::from_mins(15);

/// A Puppet Server; everything that it writes is in one directory.
pub(super) struct PuppetServer {
    home: tempfile::TempDir,
    port: u16,
    process: Option<Child>,
}

/// What a run left.
pub(super) struct Run {
    pub(super) status: i32,
    pub(super) text: String,
}

impl PuppetServer {
    /// Makes settings, code and an authority.
    pub(super) fn prepare() -> Self {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        let server = Self { home: tempfile::tempdir().unwrap(), port, process: None };
        for directory in ["var", "run", "log", "gems"] {
            fs::create_dir_all(server.path(directory)).unwrap();
        }
        for environment in ["production", "staging"] {
            let target = server.path(&format!("code/environments/{environment}"));
            copy(&root().join("tests/puppet/environments/production"), target.as_ref());
            let module = format!("{target}/modules/clade");
            copy(&root().join("examples/puppet/clade"), module.as_ref());
        }
        server.write_settings(Way::Exec);
        server.write("conf/server/server.conf", &server.service_settings());
        for file in ["auth.conf", "web-routes.conf", "ca.conf"] {
            let packaged = Path::new("/etc/puppet/puppetserver/conf.d").join(file);
            fs::copy(packaged, server.path(&format!("conf/server/{file}"))).unwrap();
        }
        server.write("conf/logback.xml", &format!(
            "<configuration><appender name=\"F\" class=\"ch.qos.logback.core.FileAppender\"><file>{}</file><encoder><pattern>%d %-5p [%c{{1}}] %m%n</pattern></encoder></appender><root level=\"info\"><appender-ref ref=\"F\"/></root></configuration>",
            server.path("log/server.log"),
        ));
        let conf = server.path("conf/puppet.conf");
        let names = ["--certname", "localhost", "--subject-alt-names", "localhost"];
        let done = Command::new("puppetserver")
            .args(["ca", "setup", "--config", &conf])
            .args(names)
            .output()
            .unwrap();
        assert!(done.status.success(), "{done:?}");
        server
    }

    pub(super) fn path(&self, name: &str) -> String {
        self.home.path().join(name).to_str().unwrap().to_owned()
    }

    pub(super) fn write(&self, name: &str, content: &str) -> String {
        let path = self.path(name);
        fs::create_dir_all(Path::new(&path).parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    fn write_settings(&self, way: Way) {
        let home = self.home.path().display();
        let identity = |flag: &str| {
            let output = Command::new("id").arg(flag).output().unwrap();
            String::from_utf8(output.stdout).unwrap().trim().to_owned()
        };
        let terminus = match way {
            Way::Exec => {
                let program = env!("CARGO_BIN_EXE_clade");
                format!(
                    "node_terminus = exec\nexternal_nodes = {program} enc --config {home}/conf/enc.yaml\n"
                )
            }
            Way::Terminus => "node_terminus = clade\n".to_owned(),
        };
        self.write("conf/puppet.conf", &format!(
            "[main]\nserver = localhost\nserverport = {port}\nca_server = localhost\nca_port = {port}\ncertname = localhost\ncodedir = {home}/code\nenvironmentpath = {home}/code/environments\nssldir = {home}/ssl\ncadir = {home}/ca\nvardir = {home}/var\nrundir = {home}/run\nlogdir = {home}/log\npublicdir = {home}/public\nuser = {user}\ngroup = {group}\n\n[server]\nautosign = true\nenvironment_timeout = 0\n{terminus}",
            port = self.port,
            user = identity("-un"),
            group = identity("-gn"),
        ));
    }

    fn service_settings(&self) -> String {
        let home = self.home.path().display();
        let library = root().join("examples/puppet/clade/lib");
        format!(
            r#"global: {{ logging-config: "{home}/conf/logback.xml" }}
webserver: {{ client-auth: want, ssl-host: 127.0.0.1, ssl-port: {port} }}
jruby-puppet: {{
    ruby-load-path: ["/usr/lib/puppetserver/ruby/vendor_ruby", "{library}"]
    gem-home: "{home}/gems"
    gem-path: ["{home}/gems", "/usr/lib/puppetserver/vendored-jruby-gems"]
    server-conf-dir: "{home}/conf"
    server-code-dir: "{home}/code"
    server-var-dir: "{home}/var"
    server-run-dir: "{home}/run"
    server-log-dir: "{home}/log"
    max-active-instances: 1
}}
http-client: {{ connect-timeout-milliseconds: 5000, idle-timeout-milliseconds: 10000 }}
metrics: {{
    server-id: localhost
    registries: {{ puppetserver: {{ reporters: {{ jmx: {{ enabled: false }} }} }} }}
}}
product: {{ check-for-updates: false }}
dropsonde: {{ enabled: false }}
"#,
            library = library.display(),
            port = self.port,
        )
    }

    /// Boots the server.
    pub(super) fn start(&mut self, way: Way) {
        self.write_settings(way);
        self.write("run/restart", "0");
        let output = fs::File::create(self.path("log/stdout.log")).unwrap();
        let process = Command::new("java")
            .args(["-Xms256m", "-Xmx1g", "-Djruby.lib=/usr/share/jruby/lib"])
            .arg("-Djruby.logger.class=com.puppetlabs.jruby_utils.jruby.Slf4jLogger")
            .arg(format!("-Djava.io.tmpdir={}", self.path("run")))
            .args(["-jar", "/usr/share/puppetserver/puppetserver.jar"])
            .args(["--config", &self.path("conf/server")])
            .args(["--bootstrap-config", "/etc/puppet/puppetserver/services.d"])
            .args(["--restart-file", &self.path("run/restart")])
            .stdin(Stdio::null())
            .stdout(output.try_clone().unwrap())
            .stderr(output)
            .spawn()
            .unwrap();
        self.process = Some(process);
        self.wait_for_start("1");
    }

    /// Makes the server reload its settings.
    pub(super) fn reload(&mut self, way: Way) {
        self.write_settings(way);
        let id = self.process.as_ref().unwrap().id().to_string();
        assert!(Command::new("kill").args(["-HUP", &id]).status().unwrap().success());
        self.wait_for_start("2");
    }

    /// Gives the server the places that its package gives it: settings in `/etc/puppet`, and everything
    /// belongs to the user `puppet`. It asks no classifier for nodes. The next reload finds it so.
    pub(super) fn install(&self) {
        copy(Path::new("/etc/puppet/puppetserver"), self.path("conf/puppetserver").as_ref());
        for file in ["enc.yaml", "classifier.yaml"] {
            fs::remove_file(self.path(&format!("conf/{file}"))).unwrap();
        }
        let conf = fs::read_to_string(self.path("conf/puppet.conf")).unwrap();
        let kept = |line: &&str| {
            let key = line.split(' ').next().unwrap_or_default();
            !["node_terminus", "external_nodes", "user", "group"].contains(&key)
        };
        let lines: Vec<&str> = conf.lines().filter(kept).collect();
        let owned = lines.join("\n").replace("[main]", "[main]\nuser = puppet\ngroup = puppet");
        self.write("conf/puppet.conf", &(owned + "\n"));
        // The terminus is found where the guide puts it.
        let library = format!(", \"{}\"", root().join("examples/puppet/clade/lib").display());
        let settings = self.service_settings().replace(&library, "");
        self.write("conf/server/server.conf", &settings);
        let id = self.process.as_ref().unwrap().id();
        self.write("run/server.pid", &id.to_string());
        let home = self.home.path().to_str().unwrap();
        for command in [
            vec!["chmod", "0755", home],
            vec!["chown", "-R", "puppet:puppet", home],
            vec!["mount", "--bind", &self.path("conf"), "/etc/puppet"],
        ] {
            let (program, arguments) = command.split_first().unwrap();
            assert!(Command::new(program).args(arguments).status().unwrap().success());
        }
    }

    /// Waits until the server has counted a start.
    fn wait_for_start(&mut self, number: &str) {
        let deadline = Instant::now() + TIMEOUT;
        while fs::read_to_string(self.path("run/restart")).unwrap().trim() != number {
            let ended = self.process.as_mut().unwrap().try_wait().unwrap();
            assert!(ended.is_none() && Instant::now() < deadline, "{ended:?}: {}", self.log());
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Says where the daemon is, and returns the settings of `clade enc`.
    pub(super) fn ask(&self, way: Way, address: &str) -> String {
        let port = address.rsplit_once(':').unwrap().1;
        match way {
            Way::Exec => {
                self.write_classifier_settings(port);
                let conf = self.path("conf/puppet.conf");
                let text = format!("server: https://localhost:{port}\npuppet-conf: {conf}\n");
                self.write("conf/enc.yaml", &text)
            }
            Way::Terminus => self.write_classifier_settings(port),
        }
    }

    fn write_classifier_settings(&self, port: &str) -> String {
        let text = format!("server: localhost\nport: {port}\nprefix: /classifier-api\n");
        self.write("conf/classifier.yaml", &text)
    }

    /// Returns the warnings and errors that the server logged.
    pub(super) fn log(&self) -> String {
        let log = fs::read_to_string(self.path("log/server.log")).unwrap_or_default();
        let is_one = |line: &&str| line.contains(" WARN ") || line.contains(" ERROR ");
        log.lines().filter(is_one).collect::<Vec<_>>().join("\n")
    }

    /// Runs a command of Puppet with the facts that the server keeps, and returns what it prints.
    pub(super) fn command(&self, way: Way, arguments: &[&str]) -> String {
        self.write_settings(way);
        // The settings of a command are those of [main].
        let conf = fs::read_to_string(self.path("conf/puppet.conf")).unwrap();
        let own = self.write("cli/puppet.conf", &conf.replace("[server]\n", ""));
        fs::copy(self.path("conf/classifier.yaml"), self.path("cli/classifier.yaml")).unwrap();
        let terminus = if arguments[0] == "node" { "json" } else { "facter" };
        let output = Command::new("puppet")
            .args(arguments)
            .args(["--config", &own, "--confdir", &self.path("cli"), "--color=false"])
            .args(["--facts_terminus", terminus])
            .args(["--client_datadir", &self.path("var/server_data")])
            .env("RUBYLIB", root().join("examples/puppet/clade/lib"))
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {text} {errors}");
        text
    }
}

impl Drop for PuppetServer {
    fn drop(&mut self) {
        if let Some(process) = &mut self.process {
            process.kill().ok();
            process.wait().ok();
        }
    }
}

/// An agent with its own directories.
pub(super) struct Agent {
    pub(super) name: String,
    home: PathBuf,
}

impl Agent {
    pub(super) fn new(puppet: &PuppetServer, name: &str, role: Option<&str>) -> Self {
        let home = PathBuf::from(puppet.path(&format!("agents/{name}")));
        let agent = Self { name: name.to_owned(), home };
        fs::create_dir_all(agent.home.join("facts")).unwrap();
        if let Some(role) = role {
            let attributes = format!("extension_requests: {{pp_role: {role}}}\n");
            fs::write(agent.home.join("csr_attributes.yaml"), attributes).unwrap();
        }
        let home = agent.home.display();
        // A connection that a certificate request went over hangs in Debian's server: none is kept.
        let settings = format!(
            "[main]\nconfdir = {home}\nssldir = {home}/ssl\ncodedir = {home}/code\nvardir = {home}/var\nrundir = {home}/run\nlogdir = {home}/log\npublicdir = {home}/public\ncsr_attributes = {home}/csr_attributes.yaml\ncertname = {name}\nserver = localhost\nserverport = {}\nreport = false\nusecacheonfailure = false\nhttp_keepalive_timeout = 0\n",
            puppet.port,
        );
        fs::write(agent.home.join("puppet.conf"), settings).unwrap();
        agent
    }

    pub(super) fn fact(&self, name: &str, value: &str) {
        self.add_fact(name, &format!("'{value}'"));
    }

    /// Sends trusted data that no certificate proves.
    pub(super) fn forge_trusted_fact(&self) {
        self.add_fact("trusted", "{'certname' => 'forged', 'extensions' => {'pp_role' => 'db'}}");
    }

    fn add_fact(&self, name: &str, ruby: &str) {
        let code = format!("Facter.add(:{name}) {{ setcode {{ {ruby} }} }}\n");
        fs::write(self.home.join(format!("facts/{name}.rb")), code).unwrap();
    }

    /// Runs the agent once; 0 is a run that worked.
    pub(super) fn run(&self, puppet: &PuppetServer, arguments: &[&str]) -> Run {
        assert!(puppet.process.is_some());
        let output: Output = Command::new("puppet")
            .args(["agent", "--config", self.home.join("puppet.conf").to_str().unwrap()])
            .args(["--confdir", self.home.to_str().unwrap()])
            .args(["--vardir", self.home.join("var").to_str().unwrap()])
            .args(["--test", "--color=false", "--waitforcert", "0"])
            .args(arguments)
            .env("FACTERLIB", self.home.join("facts"))
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned()
            + &String::from_utf8_lossy(&output.stderr);
        // 2 says that something was changed.
        let status = output.status.code().unwrap();
        Run { status: if status == 2 { 0 } else { status }, text }
    }

    /// Returns the catalog of the last run that worked.
    pub(super) fn catalog(&self) -> Value {
        let file = self.home.join(format!("var/client_data/catalog/{}.json", self.name));
        serde_json::from_slice(&fs::read(file).unwrap()).unwrap()
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (path, target) = {
            let entry = entry.unwrap();
            (entry.path(), to.join(entry.file_name()))
        };
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
        }
    }
}
