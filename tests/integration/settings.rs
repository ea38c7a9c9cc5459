//! Settings that require or exclude each other, from every source.

use std::collections::BTreeSet;

use clap::builder::{OsStringValueParser, Resettable};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, Command};

use crate::program::{Done, GitRepository, clade, run};

/// Where a setting can come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layer {
    Flag,
    Variable,
    File,
}

const LAYERS: [Layer; 3] = [Layer::Flag, Layer::Variable, Layer::File];

/// The commands with a settings file, with the flags that are no keys of it.
const FILES: [(&str, &[&str]); 2] =
    [("serve", &["config", "check"]), ("enc", &["config", "repo", "rev", "format"])];

/// A command whose settings are tested.
struct Tried {
    command: Command,
    name: String,
    /// The arguments after the name in every case.
    arguments: Vec<String>,
    directory: tempfile::TempDir,
}

/// The values of settings that do not take just any text.
const VALUES: [(&str, &str); 2] =
    [("proxy-auth-header", "X-Forwarded-User"), ("proxy-auth-from", "192.0.2.7")];

impl Tried {
    fn new(command: &Command) -> Self {
        let name = command.get_name().to_owned();
        let positional = command.get_positionals().filter(|it| it.is_required_set());
        let mut arguments: Vec<String> = positional.map(|_| "x".to_owned()).collect();
        for group in command.get_groups().filter(|it| it.is_required_set()) {
            let first = group.get_args().next().unwrap();
            let first = command.get_arguments().find(|it| it.get_id() == first).unwrap();
            arguments.push(flag(first, "/nowhere/x"));
        }
        if name == "serve" {
            arguments.push("--check".to_owned());
        }
        Self { command: command.clone(), name, arguments, directory: tempfile::tempdir().unwrap() }
    }

    fn settings(&self) -> impl Iterator<Item = &Arg> {
        self.command.get_arguments().filter(|it| it.get_long().is_some())
    }

    fn named(&self, flag: &str) -> &Arg {
        self.settings().find(|it| format!("--{}", it.get_long().unwrap()) == flag).unwrap()
    }

    /// Returns the flags that a setting requires, from clap's error when it is given alone.
    fn demands(&self, arg: &Arg) -> Vec<String> {
        let any = |it: Arg| {
            let it = it.env(Resettable::Reset);
            let takes_value = !matches!(it.get_action(), ArgAction::SetTrue);
            if takes_value { it.value_parser(OsStringValueParser::new()) } else { it }
        };
        let usual = self.arguments.iter().cloned();
        let all = std::iter::once("clade".to_owned()).chain(usual).chain([flag(arg, "x")]);
        let probe = self.command.clone().mut_args(any);
        match probe.try_get_matches_from(all) {
            Err(error) if error.kind() == ErrorKind::MissingRequiredArgument => {
                let Some(ContextValue::Strings(flags)) = error.get(ContextKind::InvalidArg) else {
                    panic!("{error}")
                };
                // One of several is what the command needs, not what one setting demands of another.
                let flags = flags.iter().filter(|it| it.starts_with("--"));
                flags.map(|it| it.split(' ').next().unwrap().to_owned()).collect()
            }
            _ => Vec::new(),
        }
    }

    fn layers(&self, arg: &Arg) -> Vec<Layer> {
        let file = FILES.iter().find(|(name, _)| *name == self.name);
        let in_file = file.is_some_and(|(_, without)| !without.contains(&arg.get_id().as_str()));
        let has = |layer: &Layer| match layer {
            Layer::Flag => true,
            Layer::Variable => arg.get_env().is_some(),
            Layer::File => in_file,
        };
        LAYERS.into_iter().filter(has).collect()
    }

    /// Runs the command with settings from their layers; each is the line of its number in the file.
    fn run(&self, settings: &[(&Arg, Layer)]) -> Done {
        let value = |arg: &Arg| {
            let word = arg.get_possible_values().first().map(|it| it.get_name().to_owned());
            let default = || arg.get_default_values().first().map(|it| it.to_str().unwrap());
            let of_shape = VALUES.iter().find(|(name, _)| arg.get_long() == Some(name));
            let other = || of_shape.map_or("/nowhere/x", |it| it.1);
            word.unwrap_or_else(|| default().unwrap_or_else(other).to_owned())
        };
        let mut arguments = vec![self.name.clone()];
        let (mut variables, mut lines) = (Vec::new(), Vec::new());
        for (arg, layer) in settings {
            let name = arg.get_long().unwrap();
            match layer {
                Layer::Flag => arguments.push(flag(arg, &value(arg))),
                Layer::Variable => variables.push((arg.get_env().unwrap(), value(arg))),
                Layer::File => lines.push(format!("{name}: {}\n", value(arg))),
            }
        }
        let path = self.path();
        std::fs::write(&path, lines.concat()).unwrap();
        if !lines.is_empty() {
            arguments.extend(["--config".to_owned(), path]);
        }
        arguments.extend(self.arguments.clone());
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        Done::from(clade(&arguments).envs(variables).output().unwrap())
    }

    fn path(&self) -> String {
        self.directory.path().join("settings.yaml").to_str().unwrap().to_owned()
    }

    /// Returns how a message names the place of a setting.
    fn place(&self, arg: &Arg, layer: Layer) -> String {
        match layer {
            Layer::Flag => "on the command line".to_owned(),
            Layer::Variable => format!("in the variable `{}`", arg.get_env().unwrap().display()),
            Layer::File => format!("at {}:", self.path()),
        }
    }
}

fn flag(arg: &Arg, value: &str) -> String {
    let name = arg.get_long().unwrap();
    match arg.get_action() {
        ArgAction::SetTrue => format!("--{name}"),
        _ => format!("--{name}={value}"),
    }
}

/// Whether the error is about settings that require each other.
fn is_about_relations(done: &Done) -> bool {
    ["is set without", "exclude each other", "were not provided", "cannot be used with"]
        .iter()
        .any(|it| done.stderr.contains(it))
}

fn commands_with_variables() -> Vec<Tried> {
    let mut all = clade::internals::cli::command();
    all.build();
    let has_variables = |it: &&Command| it.get_arguments().any(|it| it.get_env().is_some());
    all.get_subcommands().filter(has_variables).map(Tried::new).collect()
}

#[test]
fn what_a_setting_demands_holds_wherever_each_comes_from() {
    let mut tried = BTreeSet::new();
    for command in commands_with_variables() {
        for arg in command.settings() {
            let demanded = command.demands(arg);
            let flags: Vec<&Arg> = demanded.iter().map(|it| command.named(it)).collect();
            if flags.is_empty() {
                continue;
            }
            let own = format!("--{}", arg.get_long().unwrap());
            tried.insert(format!("{} {own} {}", command.name, demanded.join(" ")));
            for layer in command.layers(arg) {
                let done = command.run(&[(arg, layer)]);
                let said = format!("`{own}` is set without ");
                let place = format!("remove `{own}` {}", command.place(arg, layer));
                for text in demanded.iter().map(|it| format!("`{it}`")).chain([said, place]) {
                    assert!(done.stderr.contains(&text), "{layer:?} {text}: {}", done.stderr);
                }
                assert!(done.status == 2 || command.name == "enc", "{}", done.stderr);
                for other in LAYERS.into_iter().filter(|it| *it != layer) {
                    if flags.iter().all(|it| command.layers(it).contains(&other)) {
                        let rest = flags.iter().map(|it| (*it, other));
                        let all: Vec<_> = rest.chain([(arg, layer)]).collect();
                        let done = command.run(&all);
                        let shown = format!("{layer:?} {own}, {other:?} {demanded:?}");
                        assert!(!is_about_relations(&done), "{shown}: {}", done.stderr);
                    }
                }
            }
        }
    }
    for relation in [
        "serve --tls-cert --tls-key",
        "serve --tls-key --tls-cert",
        "serve --tls-client-crl --tls-cert --tls-key --tls-client-ca",
        "serve --git-username --git-password-file",
        "serve --forge --forge-token-file",
        "enc --tls-cert --tls-key",
        "status --tls-key --tls-cert",
    ] {
        assert!(tried.contains(relation), "{relation}: {tried:#?}");
    }
}

#[test]
fn settings_that_exclude_each_other_do_so_wherever_each_comes_from() {
    let mut tried = BTreeSet::new();
    let has_file = |it: &Tried| FILES.iter().any(|(name, _)| *name == it.name);
    for command in commands_with_variables().into_iter().filter(has_file) {
        for arg in command.settings() {
            let others = command.command.get_arg_conflicts_with(arg);
            for other in others.into_iter().filter(|it| it.get_long().is_some()) {
                let own = format!("--{}", arg.get_long().unwrap());
                let its = format!("--{}", other.get_long().unwrap());
                tried.insert(format!("{} {own} {its}", command.name));
                for (layer, second) in
                    LAYERS.iter().flat_map(|it| LAYERS.iter().map(move |second| (*it, *second)))
                {
                    let has = |arg: &Arg, layer| command.layers(arg).contains(&layer);
                    if !has(arg, layer) || !has(other, second) {
                        continue;
                    }
                    let mut all = vec![(arg, layer), (other, second)];
                    // What each demands is not what this is about.
                    for demanded in [arg, other].iter().flat_map(|it| command.demands(it)) {
                        all.push((command.named(&demanded), Layer::Flag));
                    }
                    let done = command.run(&all);
                    let shown = format!("{own} {layer:?} {its} {second:?}: {}", done.stderr);
                    assert_eq!(done.stderr.matches("exclude each other").count(), 1, "{shown}");
                    for (arg, layer) in [(arg, layer), (other, second)] {
                        let place = command.place(arg, layer);
                        let said = format!("`--{}` {place}", arg.get_long().unwrap());
                        assert!(done.stderr.contains(&said), "{said}: {shown}");
                    }
                }
            }
        }
    }
    for pair in ["serve --git-token-file --git-username", "enc --repo --server"] {
        assert!(tried.contains(pair), "{pair}: {tried:#?}");
    }
}

#[test]
fn no_setting_of_a_file_is_required_by_the_command_line() {
    let all = clade::internals::cli::command();
    for (name, without) in FILES {
        let command = all.find_subcommand(name).unwrap();
        for arg in command.get_opts().filter(|it| !without.contains(&it.get_id().as_str())) {
            assert!(!arg.is_required_set(), "{name} {arg}: a file could not have it");
        }
    }
}

#[test]
fn a_file_has_half_of_a_pair_and_a_flag_the_other() {
    let repository = GitRepository::new();
    repository.commit("first", &[("groups/a.yaml", "name: A\n")]);
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let certificate = certificate.self_signed(&key).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = directory.path().join(name).to_str().unwrap().to_owned();
        std::fs::write(&path, text).unwrap();
        path
    };
    let (cert, key) = (file("cert.pem", &certificate.pem()), file("key.pem", &key.serialize_pem()));
    let config = file("clade.yaml", &format!("tls-cert: {cert}\nallow-anonymous: false\n"));
    let path = repository.text_path();
    let usual = ["serve", "--check", "--repo", &path, "--config", &config];
    let done = run(&[&usual[..], &["--tls-key", &key]].concat());
    assert_eq!(done.status, 0, "{}", done.stderr);
    for line in [
        format!("tls-cert: \"{cert}\"  # file\n"),
        format!("tls-key: \"{key}\"  # flag\n"),
        "allow-anonymous: false  # file\n".to_owned(),
        "interval: \"30s\"  # default\n".to_owned(),
    ] {
        assert!(done.stdout.contains(&line), "{line}{}", done.stdout);
    }
    let done = run(&usual);
    let expected = format!(
        "error: `--tls-cert` is set without `--tls-key`: set it too, or remove `--tls-cert` at {config}:1:11\n"
    );
    assert_eq!((done.status, done.stderr), (2, expected));
}

#[test]
fn a_file_that_cannot_be_used_ends_the_start() {
    let repository = GitRepository::new();
    repository.commit("first", &[("groups/a.yaml", "name: A\n")]);
    let path = repository.text_path();
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &[u8]| {
        let path = directory.path().join(name).to_str().unwrap().to_owned();
        std::fs::write(&path, text).unwrap();
        path
    };
    let (empty, garbage, binary) = (
        file("empty", b""),
        file("garbage", b"-----BEGIN garbage\nno use\n"),
        file("binary", &[0xff, 0, 0xfe]),
    );
    let (absent, folder) = ("/nowhere/x".to_owned(), directory.path().to_str().unwrap().to_owned());
    let damaged = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let damaged = file("damaged.pem", damaged);
    for (flag, with) in [
        ("--git-password-file", &["--git-username", "x"][..]),
        ("--git-token-file", &[]),
        ("--git-ca-file", &[]),
        ("--ssh-key-file", &[]),
        ("--ssh-known-hosts-file", &[]),
        ("--allowed-signers-file", &[]),
        ("--openpgp-keys-file", &[]),
        ("--forge-token-file", &[]),
        ("--forge-ca-file", &[]),
        ("--facts-dir", &[]),
    ] {
        for value in [&absent, &empty, &garbage, &binary, &damaged, &folder] {
            // Hosts are added to a file of known hosts while the daemon runs.
            let is_used = match flag {
                "--facts-dir" => *value == folder,
                "--ssh-known-hosts-file" => [&empty, &garbage, &damaged].contains(&value),
                _ => false,
            };
            let arguments = ["serve", "--check", "--repo", &path, flag, value];
            let done = run(&[&arguments[..], with].concat());
            if is_used {
                assert_eq!(done.status, 0, "{}", done.stderr);
                continue;
            }
            let start = format!("error: `{flag} {value}` cannot be ");
            assert!(
                done.status == 2 && done.stderr.starts_with(&start),
                "{value}: {}",
                done.stderr
            );
            let reason = done.stderr.strip_prefix(&start).unwrap();
            assert!(reason.lines().count() == 1 && reason.len() > 15, "{}", done.stderr);
        }
    }
}

#[test]
fn faults_of_tls_files_are_reported_once() {
    let repository = GitRepository::new();
    repository.commit("first", &[("groups/a.yaml", "name: A\n")]);
    let path = repository.text_path();
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = directory.path().join(name).to_str().unwrap().to_owned();
        std::fs::write(&path, text).unwrap();
        path
    };
    let pair = |name: &str| {
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = rcgen::CertificateParams::new(vec![name.to_owned()]).unwrap();
        let certificate = certificate.self_signed(&key).unwrap();
        let pem = (certificate.pem(), key.serialize_pem());
        (file(&format!("{name}.pem"), &pem.0), file(&format!("{name}.key"), &pem.1))
    };
    let ((cert, key), (_, other)) = (pair("a"), pair("b"));
    let absent = "/nowhere/x".to_owned();
    for (cert, key, said) in [
        (
            &absent,
            &key,
            format!("`{absent}` cannot be read: No such file or directory (os error 2)"),
        ),
        (&cert, &cert, format!("`{cert}` cannot be used: there is no private key in it")),
        (&key, &key, format!("`{key}` cannot be used: there is no certificate in it")),
        (
            &cert,
            &other,
            format!(
                "the certificate in `{cert}` and the private key in `{other}` cannot be used together: the key does not belong to the certificate"
            ),
        ),
    ] {
        let done =
            run(&["serve", "--check", "--repo", &path, "--tls-cert", cert, "--tls-key", key]);
        assert_eq!((done.status, done.stderr), (2, format!("error: {said}\n")));
    }
}

#[test]
fn a_password_file_that_would_be_ignored_ends_the_start() {
    use std::os::unix::fs::PermissionsExt as _;

    let (repository, directory) = (GitRepository::new(), tempfile::tempdir().unwrap());
    let file = directory.path().join("pgpass");
    std::fs::write(&file, "db.example.com:5432:clade:clade:secret\n").unwrap();
    let path = file.to_str().unwrap().to_owned();
    let check = |mode: u32, store: &str, variables: &[(&str, &str)]| {
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        let repository = repository.text_path();
        let mut command = clade(&["serve", "--check", "--repo", &repository, "--store", store]);
        let command = command.env_remove("PGPASSWORD").env("PGPASSFILE", &path);
        let command = command.env("HOME", directory.path());
        Done::from(command.envs(variables.iter().copied()).output().unwrap())
    };
    let bare = "postgres://clade@db.example.com/clade";
    let ignored = check(0o440, bare, &[]);
    let reason = format!(
        "error: the password file `{path}` of `PGPASSFILE` is ignored, since its group or others may use it (mode 440): `chmod 600` it, or write the password into the URL of `CLADE_STORE`\n"
    );
    assert_eq!((ignored.status, ignored.stderr), (2, reason));
    let absent = check(0o600, bare, &[("PGPASSFILE", "/nowhere/pgpass")]);
    assert!(absent.status == 2 && absent.stderr.contains("cannot be read"), "{}", absent.stderr);
    assert_eq!(check(0o600, bare, &[]).status, 0);
    assert_eq!(check(0o440, bare, &[("PGPASSWORD", "secret")]).status, 0);
    assert_eq!(check(0o440, "postgres://clade:secret@db.example.com/clade", &[]).status, 0);
    assert_eq!(check(0o440, "sqlite:/nowhere/nodes.sqlite", &[]).status, 0);
    let top = directory.path().display();
    let refused = check(0o440, &format!("sqlite:{top}/"), &[]);
    let reason = format!(
        "error: `--store sqlite:{top}/` is a directory: name a file in it, such as `sqlite:{top}/nodes.sqlite`\n"
    );
    assert_eq!((refused.status, refused.stderr), (2, reason));
    // The usual file counts where the other one does not.
    let usual = directory.path().join(".pgpass");
    std::fs::write(&usual, "db.example.com:5432:clade:clade:secret\n").unwrap();
    std::fs::set_permissions(&usual, std::fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(check(0o440, bare, &[]).status, 0);
}

#[test]
fn an_address_in_links_is_a_url_and_a_daemon_has_a_name() {
    for (flag, value, wanted) in [
        (
            "--public-url",
            "foo",
            "`--public-url foo` is not a URL such as `https://clade.example.com`",
        ),
        ("--public-url", "ftp://clade.example.com", "is not a URL such as"),
        ("--public-url", "https:///x", "is not a URL such as"),
        ("--public-url", "https://bücher.example", "as `xn--…`"),
        ("--instance", "", "a value is required for '--instance"),
    ] {
        let done = run(&["serve", "--repo", "https://git.example.com/x", "--check", flag, value]);
        assert_eq!(done.status, 2, "{flag} {value}: {}", done.stderr);
        assert!(done.stderr.contains(wanted), "{flag} {value}: {}", done.stderr);
    }
    let good = ["--public-url", "https://clade.example.com/base/", "--instance", "a"];
    let repository = GitRepository::new();
    let path = repository.text_path();
    let done = run(&[&["serve", "--repo", &path, "--check"], &good[..]].concat());
    assert_eq!(done.status, 0, "{}", done.stderr);
}
