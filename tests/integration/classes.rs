//! Class catalogues: from code, from a Puppet Server, and what they find.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

use clade::internals::document::{self, Limits};
use clade::internals::puppet::DataType;
use indoc::indoc;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::CertificateDer;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use serde_json::Value;

use crate::git::server::{Request, Server, tls};
use crate::program::{Done, clade, root, run};

/// A group repository in a temporary directory.
struct Groups(tempfile::TempDir);

impl Groups {
    fn new(files: &[(&str, &str)]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        for (path, content) in files {
            write(&directory.path().join(path), content);
        }
        Self(directory)
    }

    fn text(&self) -> &str {
        self.0.path().to_str().unwrap()
    }

    fn catalogue(&self) -> String {
        std::fs::read_to_string(self.0.path().join("environments/production.yaml")).unwrap()
    }

    /// Runs a command without the path of the directory in what it says.
    fn said(&self, done: &Done) -> (i32, String) {
        let said = format!("{}{}", done.stdout, done.stderr);
        (done.status, said.replace(self.text(), "GROUPS"))
    }
}

fn write(path: &Path, content: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}

const CONTROL: &str = "tests/fixtures/control";

#[test]
fn code_becomes_a_catalogue_that_finds_what_is_wrong_in_groups() {
    let groups = Groups::new(&[(
        "groups/web.yaml",
        indoc! {"
            name: Web
            classes:
              profile::wbe: {}
              ntp: {server: [a]}
              profile::web: {port: 80, vhosts: {a: [1, 70000]}, ensure: abcent}
        "},
    )]);
    let scanned = run(&["classes", "scan", CONTROL, groups.text()]);
    assert_eq!(
        groups.said(&scanned),
        (0, "GROUPS/environments/production.yaml written: 7 classes of 3 modules\n".to_owned())
    );
    insta::assert_snapshot!(groups.catalogue());
    let validated = clade(&["validate", "."]).current_dir(groups.text()).output().unwrap();
    insta::assert_snapshot!(Done::from(validated).stdout);
}

#[test]
fn a_catalogue_is_checked_without_being_written() {
    let groups = Groups::new(&[("clade.yaml", "environments: catalogues\n")]);
    let scan = |more: &[&str]| {
        let all = [&["classes", "scan", CONTROL, groups.text()], more].concat();
        groups.said(&run(&all))
    };
    let old = (1, "GROUPS/catalogues/staging.yaml is not up to date\n".to_owned());
    let staging = ["--environment", "staging"];
    assert_eq!(scan(&[&staging[..], &["--check"]].concat()), old);
    assert!(!groups.0.path().join("catalogues").exists());
    assert_eq!(scan(&staging).0, 0);
    let fresh =
        (0, "GROUPS/catalogues/staging.yaml is up to date: 7 classes of 3 modules\n".to_owned());
    assert_eq!(scan(&[&staging[..], &["--check"]].concat()), fresh);
    assert_eq!(scan(&staging), fresh);
}

#[test]
fn no_catalogue_is_written_where_the_layout_is_not_known() {
    for (settings, said) in [
        ("environments: [\n", "GROUPS/clade.yaml:1:15: "),
        ("environments: /srv\n", "GROUPS/clade.yaml:1:15: `/srv` is not a directory below"),
    ] {
        let groups = Groups::new(&[("clade.yaml", settings)]);
        let (status, found) = groups.said(&run(&["classes", "scan", CONTROL, groups.text()]));
        assert!(status == 2 && found.contains(said), "{found}");
        assert!(!groups.0.path().join("environments").exists());
    }
    for name in ["clade.yaml", "environments/production.yaml"] {
        let groups = Groups::new(&[("groups/web.yaml", "name: Web\n")]);
        let pipe = groups.0.path().join(name);
        std::fs::create_dir_all(pipe.parent().unwrap()).unwrap();
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let (status, found) = groups.said(&run(&["classes", "scan", CONTROL, groups.text()]));
        assert!(status == 2 && found.contains("it is not a regular file"), "{name}: {found}");
    }
}

#[test]
fn a_default_that_clade_does_not_read_is_written_as_text() {
    let control = Groups::new(&[(
        "modules/m/manifests/init.pp",
        "class m($h = 1e400, $k = { '<<' => 1 }, $n = 1.5, $o = { 'a' => [1] }) { }\n",
    )]);
    let groups = Groups::new(&[("groups/m.yaml", "name: M\nclasses: {m: {}}\n")]);
    let scanned = run(&["classes", "scan", control.text(), groups.text()]);
    assert_eq!(scanned.status, 0, "{}", scanned.stderr);
    let catalogue = groups.catalogue();
    let (_, parameters) = catalogue.split_once("parameters:\n").unwrap();
    let parameters: Vec<&str> = parameters.lines().map(str::trim).collect();
    assert_eq!(parameters, [r#"h: "1e+400""#, r#"k: "{\"<<\":1}""#, "n: 1.5", "o: {a: [1]}"]);
    let validated = run(&["validate", groups.text()]);
    assert_eq!(validated.status, 0, "{}", validated.stdout);
}

#[test]
fn no_catalogue_is_written_behind_a_link() {
    let outside = tempfile::tempdir().unwrap();
    let file = outside.path().join("production.yaml");
    for (link, target) in
        [("environments", outside.path()), ("environments/production.yaml", file.as_path())]
    {
        let groups = Groups::new(&[("groups/web.yaml", "name: Web\n")]);
        let link = groups.0.path().join(link);
        std::fs::create_dir_all(link.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(target, &link).unwrap();
        let done = run(&["classes", "scan", CONTROL, groups.text()]);
        assert!(done.status == 2 && done.stderr.contains("is a link"), "{}", done.stderr);
        assert!(!file.exists());
    }
}

#[test]
fn code_that_cannot_be_read_is_named_and_nothing_is_written() {
    let control = Groups::new(&[
        ("environment.conf", "modulepath = modules:/opt/shared:../up:$basemodulepath\n"),
        ("Puppetfile", "mod 'puppetlabs-stdlib', '1'\nmod 'a', :git => 'x'\n"),
        ("modules/a/manifests/init.pp", "class a {\n  $x = 'open\n}\n"),
        ("modules/a/manifests/b.pp", "class a::b { }\n"),
        ("modules/a/manifests/c.pp", "class a::other { }\n"),
        ("modules/a/manifests/d.pp", "class a::d::E { }\n"),
        ("base/b/manifests/init.pp", "class b { }\n"),
    ]);
    let groups = Groups::new(&[]);
    let scan = |more: &[&str]| {
        let all = [&["classes", "scan", control.text(), groups.text()], more].concat();
        let (status, said) = groups.said(&run(&all));
        (status, said.replace(control.text(), "CONTROL"))
    };
    let outside = |path: &str| {
        format!(
            "`{path}` of the modulepath is not in the repository and is not read; name it with --modulepath\n"
        )
    };
    let outside = outside("/opt/shared") + &outside("../up");
    assert_eq!(
        scan(&[]),
        (
            2,
            format!(
                "{outside}error: the module `puppetlabs-stdlib` of the Puppetfile is not installed: install it (`r10k puppetfile install`), or continue without its classes with --allow-missing-modules\n"
            )
        )
    );
    let (status, said) = scan(&["--allow-missing-modules"]);
    assert_eq!(status, 2);
    insta::assert_snapshot!(said);
    assert!(!groups.0.path().join("environments").exists());
    let base = format!("{}/base", control.text());
    let done = scan(&["--allow-missing-modules", "--skip-broken", "--basemodulepath", &base]);
    assert_eq!(done.0, 0, "{}", done.1);
    assert!(groups.catalogue().ends_with("classes:\n  a::b:\n  b:\n"), "{}", groups.catalogue());
    assert_eq!(
        run(&["classes", "scan", groups.text(), groups.text()]).stderr,
        format!(
            "error: there is no Puppet code in `{}`: neither modules nor manifests\n",
            groups.text()
        )
    );
}

/// What a Puppet Server 7.9 answered about the code in `tests/fixtures/control`.
pub(crate) const ANSWER: &str = include_str!("../fixtures/environment_classes.json");

pub(crate) fn answer(line: &str, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    let head = "Content-Type: application/json\r\nX-Puppet-Version: 7.23.0\r\n";
    format!("HTTP/1.1 {line}\r\n{head}{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}")
        .into()
}

/// Answers as a Puppet Server with `environment-class-cache-enabled` does.
fn puppet_server(request: &Request) -> Vec<u8> {
    let tag = "d529902d611155293a6ec1571d2989183b52bd843fdf9b65d55f108c1125098e";
    match request.target.as_str() {
        "/puppet/v3/environment_classes?environment=production" => {
            let etag = format!("ETag: {tag}\r\n");
            if request.headers.get("if-none-match").map(String::as_str) == Some(tag) {
                answer("304 Not Modified", &etag, "")
            } else {
                answer("200 OK", &etag, ANSWER)
            }
        }
        "/puppet/v3/environment_classes?environment=private" => answer(
            "403 Forbidden",
            "",
            "Forbidden request: /puppet/v3/environment_classes (method :get). Please see the server logs for details.",
        ),
        _ => answer("404 Not Found", "", "Could not find environment 'gone'"),
    }
}

#[test]
fn a_puppet_server_gives_the_same_catalogue_as_its_code() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&seen);
    let server = Server::http(move |request| {
        noted.lock().unwrap().push(request.headers.get("if-none-match").cloned());
        puppet_server(request)
    });
    let url = format!("http://127.0.0.1:{}", server.port);
    let (pulled, scanned) = (Groups::new(&[]), Groups::new(&[]));
    let pull = |more: &[&str]| {
        let all = [&["classes", "pull", "--server", &url, pulled.text()], more].concat();
        pulled.said(&run(&all))
    };
    let written = (0, "GROUPS/environments/production.yaml written: 7 classes\n".to_owned());
    assert_eq!(pull(&[]), written);
    assert_eq!(pull(&[]), (0, "the classes have not changed\n".to_owned()));
    let same = "GROUPS/environments/production.yaml is up to date: 7 classes\n".to_owned();
    assert_eq!(pull(&["--force"]), (0, same));
    let tag = Some("d529902d611155293a6ec1571d2989183b52bd843fdf9b65d55f108c1125098e".to_owned());
    assert_eq!(*seen.lock().unwrap(), [None, tag, None]);

    assert_eq!(run(&["classes", "scan", CONTROL, scanned.text()]).status, 0);
    assert_eq!(comparable(&pulled.catalogue()), comparable(&scanned.catalogue()));

    let (status, said) = pull(&["--environment", "private"]);
    assert_eq!(status, 2);
    assert!(said.starts_with("error: the server answers 403 Forbidden: Forbidden request: /puppet/v3/environment_classes (method :get). Please see the server logs for details; allow this certificate in its auth.conf: {match-request: "), "{said}");
    assert_eq!(
        pull(&["--environment", "gone"]),
        (
            2,
            "error: the server has no environment `gone`: Could not find environment 'gone'\n"
                .to_owned()
        )
    );
}

/// Returns classes -> parameters -> default and type, as far as both sources can know them: a
/// server sorts the words of an `Enum`, and gives code where a value has a sign.
fn comparable(catalogue: &str) -> Value {
    let contents = document::read(catalogue.as_bytes(), &Limits::DEFAULT);
    let mut classes = contents.documents.first().unwrap().to_value()["classes"].take();
    for class in classes.as_object_mut().unwrap().values_mut().filter(|it| it.is_object()) {
        for (_, default) in class["parameters"].as_object_mut().unwrap() {
            if default.as_str().is_none() && !default.is_object() && !default.is_array() {
                *default = default.to_string().into();
            }
            if default == "null" {
                *default = Value::Null;
            }
        }
        let types = class.get_mut("types").and_then(Value::as_object_mut);
        for data_type in types.into_iter().flat_map(|it| it.values_mut()) {
            let parsed: DataType = data_type.as_str().unwrap().parse().unwrap();
            let mut words: Vec<String> = parsed
                .to_string()
                .split([',', '[', ']'])
                .map(|it| it.trim().to_owned())
                .filter(|it| !it.is_empty() && it != "default" && it != "0")
                .collect();
            // Puppet removes the `Variant` around a single type.
            words.retain(|it| it != "Variant");
            words.sort();
            words.dedup();
            *data_type = words.into();
        }
    }
    classes
}

/// A host with a certificate that a server accepts.
pub(crate) struct KnownHost {
    pub(crate) verifier: Arc<dyn ClientCertVerifier>,
    pub(crate) certificate: String,
    pub(crate) key: String,
}

impl KnownHost {
    pub(crate) fn new() -> Self {
        let mut parameters = CertificateParams::new(Vec::new()).unwrap();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority =
            CertifiedIssuer::self_signed(parameters, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let host = CertificateParams::new(vec!["ci.example.com".to_owned()]).unwrap();
        let host = host.signed_by(&key, &authority).unwrap();
        let mut roots = rustls::RootCertStore::empty();
        roots.add(CertificateDer::from(authority.der().to_vec())).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
        Self { verifier, certificate: host.pem(), key: key.serialize_pem() }
    }
}

#[test]
fn a_puppet_server_is_shown_the_certificate_of_the_host() {
    let KnownHost { verifier, certificate, key } = KnownHost::new();
    let server = Server::https_for(verifier, puppet_server);

    let groups = Groups::new(&[("host.pem", &certificate), ("key.pem", &key)]);
    let url = format!("https://localhost:{}", server.port);
    let path = |name: &str| groups.0.path().join(name).to_str().unwrap().to_owned();
    let ca = tls("ca.pem").to_str().unwrap().to_owned();
    let (certificate, key) = (path("host.pem"), path("key.pem"));
    let base = ["classes", "pull", "--server", &url, "--tls-ca", &ca, groups.text()];
    let stranger = run(&base);
    assert_eq!(stranger.status, 2, "{}", stranger.stderr);
    assert!(!groups.0.path().join("environments").exists());
    let identity = ["--tls-cert", certificate.as_str(), "--tls-key", key.as_str()];
    let done = run(&[&base[..], &identity].concat());
    assert_eq!(done.status, 0, "{}", done.stderr);
}

#[test]
fn a_link_back_inside_of_manifests_is_not_followed() {
    let groups = Groups::new(&[
        ("real/site/init.pp", "class site($x = [1, 2].reduce |$a, $b| { $a + $b }) { }\n"),
        ("real/site/broken.pp", "class site::broken {\n"),
    ]);
    let control = groups.0.path();
    std::fs::create_dir_all(control.join("modules/site")).unwrap();
    // The directory that Puppet looks for may be a link.
    std::os::unix::fs::symlink("../../real/site", control.join("modules/site/manifests")).unwrap();
    std::os::unix::fs::symlink(".", control.join("real/site/manifests")).unwrap();
    let done = run(&["classes", "scan", groups.text(), groups.text()]);
    assert_eq!(done.stderr.matches("broken.pp").count(), 1, "{}", done.stderr);
    std::fs::remove_file(control.join("real/site/broken.pp")).unwrap();
    let done = run(&["classes", "scan", groups.text(), groups.text()]);
    assert_eq!(done.status, 0, "{}", done.stderr);
    assert!(groups.catalogue().contains("site:"), "{}", groups.catalogue());
}

#[test]
fn code_is_read_where_puppet_looks_for_it_or_a_note_says_that_it_is_not() {
    let groups = Groups::new(&[
        ("code/environments/production/shared/site.pp", "class shared { }\n"),
        ("code/environments/production/modules/foo/manifests/init.pp", "class foo { }\n"),
        ("code/real/x.pp", "class foo::sub::x { }\n"),
        ("code/modules/glob/manifests/init.pp", "class glob { }\n"),
        ("repo/groups/all.yaml", "name: All Nodes\n"),
    ]);
    let (code, repository) = (groups.0.path().join("code"), groups.0.path().join("repo"));
    let production = code.join("environments/production");
    let manifests = production.join("modules/foo/manifests");
    std::os::unix::fs::symlink(code.join("real"), manifests.join("sub")).unwrap();
    let scan = |settings: &str, more: &[&str]| {
        write(&production.join("environment.conf"), settings);
        let own = ["classes", "scan", code.to_str().unwrap(), repository.to_str().unwrap()];
        groups.said(&run(&[&own, more].concat()))
    };
    let written = || {
        let path = repository.join("environments/production.yaml");
        std::fs::read_to_string(path).unwrap_or_default()
    };
    // Absolute paths, and those with `..`, that lie in the directory.
    let absolute = production.to_str().unwrap();
    for settings in [
        format!("manifest = {absolute}/shared/site.pp\nmodulepath = {absolute}/modules\n"),
        "manifest = ../production/shared\nmodulepath = ../production/modules\n".to_owned(),
    ] {
        let (status, said) = scan(&settings, &[]);
        assert_eq!(status, 0, "{said}");
        assert!(!said.contains("is not read"), "{said}");
        for class in ["foo:", "foo::sub::x:", "shared:"] {
            assert!(written().contains(&format!("\n  {class}")), "{class}: {}", written());
        }
        std::fs::remove_file(repository.join("environments/production.yaml")).unwrap();
    }
    let (status, said) = scan("manifest = $environmentpath/x\nmodulepath = modules\n", &[]);
    assert_eq!(status, 0, "{said}");
    let note = "`$environmentpath/x`, the manifest of environment.conf, is not in the directory and is not read";
    assert!(said.contains(note), "{said}");
    // A mistyped environment is not the directory that has them all.
    let (status, said) = scan("", &["--environment", "prodution"]);
    assert_eq!(status, 2, "{said}");
    assert!(said.contains("there is no environment `prodution` in `"), "{said}");
    assert!(!repository.join("environments/prodution.yaml").exists());
}

#[test]
fn a_catalogue_goes_where_its_environment_is_described() {
    let scan = |files: &[(&str, &str)]| {
        let groups = Groups::new(&[&[("groups/all.yaml", "name: All Nodes\n")], files].concat());
        let done = run(&["classes", "scan", CONTROL, groups.text()]);
        assert_eq!(groups.said(&done).0, 0, "{}", done.stderr);
        let directory = groups.0.path().join("environments");
        let mut texts: Vec<(String, String)> = std::fs::read_dir(directory)
            .unwrap()
            .map(|it| it.unwrap().path())
            .map(|it| {
                let name = it.file_name().unwrap().to_str().unwrap().to_owned();
                (name, std::fs::read_to_string(it).unwrap())
            })
            .collect();
        texts.sort();
        let done = run(&["validate", groups.text()]);
        assert!(!done.stdout.contains("uniqueness-violation"), "{}", done.stdout);
        texts
    };
    // Another file describes the environment.
    let texts = scan(&[("environments/prod.yml", "name: production\n")]);
    let [(name, text)] = texts.as_slice() else { panic!("{texts:?}") };
    assert_eq!(name, "prod.yml");
    assert!(text.contains("\nname: production\n"), "{text}");
    // The file of this name describes another environment.
    let other = "name: staging\nclasses: {kept: {}}\n";
    let texts = scan(&[("environments/production.yaml", other)]);
    let [(made, text), (old, kept)] = texts.as_slice() else { panic!("{texts:?}") };
    assert_eq!(
        (made.as_str(), old.as_str(), kept.as_str()),
        ("production-2.yaml", "production.yaml", other)
    );
    assert!(text.contains("\nname: production\n"), "{text}");
    // What cannot be read is replaced as before.
    let texts = scan(&[("environments/production.yaml", "classes: [\n")]);
    assert_eq!(texts.len(), 1);
}

/// Where Debian's packages put modules.
const MODULES: &str = "/usr/share/puppet/modules.available";

#[test]
fn real_modules_are_read_as_puppet_reads_them() {
    let has_puppet = Command::new("ruby")
        .args(["-e", "require 'puppet'"])
        .output()
        .is_ok_and(|it| it.status.success());
    if !has_puppet || !Path::new(MODULES).exists() {
        eprintln!("skipped: needs puppet-agent and puppet-module-*");
        return;
    }
    let (code, by_puppet, by_scan) = (Groups::new(&[]), Groups::new(&[]), Groups::new(&[]));
    let modules = code.0.path().join("environments/production/modules");
    std::fs::create_dir_all(&modules).unwrap();
    for entry in std::fs::read_dir(MODULES).unwrap() {
        let path: PathBuf = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        let name = name.split_once('-').unwrap_or(("", name)).1.replace('-', "_");
        std::os::unix::fs::symlink(&path, modules.join(name)).unwrap();
    }
    // Ruby's glob does not follow links to directories.
    let real = code.0.path().join("copy");
    let copied = Command::new("cp").arg("-rL").arg(&modules).arg(&real).status().unwrap();
    assert!(copied.success());
    std::fs::remove_dir_all(&modules).unwrap();
    std::fs::rename(&real, &modules).unwrap();
    let script = root().join("tests/puppet/classes.rb");
    let found = Command::new("ruby").arg(script).arg(code.0.path()).output().unwrap();
    assert!(found.status.success(), "{}", String::from_utf8_lossy(&found.stderr));
    let published = String::from_utf8(found.stdout).unwrap();
    let server = Server::http(move |_| answer("200 OK", "", &published));
    let url = format!("http://127.0.0.1:{}", server.port);
    let pulled = run(&["classes", "pull", "--server", &url, "--skip-broken", by_puppet.text()]);
    assert_eq!(pulled.status, 0, "{}", pulled.stderr);
    let scanned = run(&["classes", "scan", code.text(), by_scan.text()]);
    assert_eq!(scanned.status, 0, "{}", scanned.stderr);
    let (theirs, ours) = (comparable(&by_puppet.catalogue()), comparable(&by_scan.catalogue()));
    let names = |all: &Value| all.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&ours), names(&theirs));
    assert!(names(&ours).len() > 50, "{:?}", names(&ours));
    let keys = |class: &Value| {
        class["parameters"].as_object().map(|it| it.keys().cloned().collect::<Vec<_>>())
    };
    for (name, class) in theirs.as_object().unwrap() {
        assert_eq!(keys(&ours[name]), keys(class), "{name}");
        assert_eq!(ours[name]["types"], class["types"], "{name}");
    }
}
