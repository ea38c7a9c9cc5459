//! The examples of the help: each is run as a person pastes it.

use std::process::Command;

use crate::ci::Site;
use crate::git::server::has_git;
use crate::program::{Daemon, Done, clade, root, run};

/// The commands of the help that are run, with their examples.
///
/// `clade serve` does not end; `crate::cli::examples` parses its examples, as it does all.
fn examples() -> Vec<String> {
    let help = run(&["--help"]).stdout;
    let (_, commands) = help.split_once("Commands:\n").unwrap();
    let names = commands.lines().take_while(|it| !it.is_empty());
    let names = names.filter_map(|it| it.strip_prefix("  ")?.split(' ').next());
    let names: Vec<&str> = names.filter(|it| !["", "help", "serve"].contains(it)).collect();
    assert!(names.len() > 20, "{names:?}");
    let of = |name: &&str| {
        let help = run(&["help", name]).stdout;
        let (_, examples) =
            help.split_once("\nExample").unwrap_or_else(|| panic!("{name}: {help}"));
        let lines = examples.lines().skip(1).filter_map(|it| it.strip_prefix("  clade "));
        lines.map(|it| format!("clade {it}")).collect::<Vec<String>>()
    };
    names.iter().flat_map(of).collect()
}

/// A group repository with all that the examples name.
fn fleet(site: &Site) {
    let copy = |from: &str| {
        let from = root().join(from);
        assert!(Command::new("cp").arg("-r").args([from, site.work()]).status().unwrap().success());
    };
    for part in ["clade.yaml", "groups", "nodes", "environments", "schemas", "tests"] {
        copy(&format!("examples/fleet/{part}"));
    }
    copy("examples/facts");
    std::fs::remove_file(site.work().join("facts/README.md")).unwrap();
    for test in std::fs::read_dir(site.work().join("tests")).unwrap().map(Result::unwrap) {
        let text = std::fs::read_to_string(test.path()).unwrap();
        std::fs::write(test.path(), text.replace("../../facts/", "../facts/")).unwrap();
    }
    site.commit(&[]);
    site.git(&site.work(), &["tag", "v1.4"]);
    site.commit(&[("groups/new.yaml", "name: New\ndescription: New\nrule: name = new\n")]);
    assert_eq!(site.push("main").status, 0);
    site.git(&site.work(), &["fetch", "-q"]);
}

#[test]
fn every_example_of_the_help_runs() {
    if !has_git() {
        return;
    }
    let site = Site::new();
    fleet(&site);
    let bare = site.directory().join("groups.git");
    let daemon = Daemon::start(&["--repo", bare.to_str().unwrap()]);
    let facts = std::fs::read_to_string(site.work().join("facts/web1.example.com.json")).unwrap();
    let asked = daemon.request("POST", "/v1/classified/nodes/web1.example.com", &facts);
    assert_eq!(asked.status, 200, "{}", asked.body);
    daemon.wait_until("the check-in is there", |it| {
        it.get("/controller/nodes/web1.example.com").status == 200
    });
    let url = format!("http://{}", daemon.address());
    let here = site.directory().to_str().unwrap().to_owned();
    std::fs::write(format!("{here}/.clade-token"), "hello\n").unwrap();
    let module = site.directory().join("control-repo/modules/hello/manifests");
    std::fs::create_dir_all(&module).unwrap();
    std::fs::write(module.join("init.pp"), "class hello { }\n").unwrap();
    let export = clade(&["export"]).current_dir(site.work()).output().unwrap().stdout;
    let empty = site.directory().join("empty");
    std::fs::create_dir(&empty).unwrap();
    std::fs::write(empty.join("groups.json"), export).unwrap();
    for example in examples() {
        // What makes a repository is run where none is.
        let makes = example.contains(" init ") || example.contains(" import ");
        let line = example
            .replace("https://clade.example.com:4433", &url)
            .replace("/etc/bash_completion.d", &here)
            .replace("/usr/local/share/man/man1", &format!("{here}/man"));
        let directory = if makes { empty.clone() } else { site.work() };
        let mut shell = site.command("sh", &directory);
        let done: Done =
            shell.args(["-c", &line]).env("CLADE_SERVER", &url).output().unwrap().into();
        // 1 is a finding: that the files differ from their canonical form, or that a query finds nothing.
        assert!(done.status < 2, "{example}: {}{}", done.stdout, done.stderr);
        if makes {
            std::fs::remove_dir_all(empty.join("groups")).unwrap();
        }
    }
}
