//! What the README, the tour and the reference of commands show is what the program prints.

use std::process::Command;

use crate::program::{Daemon, GitRepository, clade, root};

pub(crate) fn updating() -> bool {
    std::env::var_os("UPDATE_DOCS").is_some()
}

/// Puts the example estate into a repository of its own.
pub(crate) fn fleet_repository() -> GitRepository {
    fn collect(directory: &std::path::Path, files: &mut Vec<(String, String)>) {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                collect(&path, files);
            } else {
                let name = path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
                files.push((name, std::fs::read_to_string(&path).unwrap()));
            }
        }
    }
    let mut files = Vec::new();
    collect(&root().join("examples/fleet"), &mut files);
    let repository = GitRepository::new();
    let borrowed: Vec<(&str, &str)> = files.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    repository.commit("the fleet", &borrowed);
    repository
}

/// Puts the example estate into a repository of its own and serves it.
pub(crate) fn serve_fleet() -> (GitRepository, Daemon) {
    let repository = fleet_repository();
    let daemon = Daemon::start(&["--repo", &repository.text_path(), "--path", "examples/fleet"]);
    (repository, daemon)
}

/// Splits a command line as a shell does, as far as these pages need it.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for character in line.chars() {
        match character {
            '"' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            _ => words.last_mut().unwrap().push(character),
        }
    }
    words
}

fn printed(line: &str, daemon: &Daemon, repository: &GitRepository) -> String {
    let line = line.replace("127.0.0.1:4433", &daemon.address);
    let words = words(&line);
    let arguments: Vec<&str> = words.iter().skip(1).map(String::as_str).collect();
    let output = match words[0].as_str() {
        "clade" => clade(&arguments).output().unwrap(),
        "curl" => Command::new("curl").args(&arguments).current_dir(root()).output().unwrap(),
        other => panic!("`{other}` is not a command of the README or the tour"),
    };
    let mut text =
        String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
    text = text
        .replace(repository.path().canonicalize().unwrap().to_str().unwrap(), "/home/ada/clade");
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

#[test]
fn every_block_of_the_readme_and_the_tour_is_what_the_program_prints() {
    if Command::new("curl").arg("--version").output().is_err() {
        eprintln!("skipped: needs curl");
        return;
    }
    let (repository, daemon) = serve_fleet();
    let blocks = ["README.md", "docs/tour.md"]
        .map(|page| blocks_that_print_what_they_show(page, &daemon, &repository));
    assert!(blocks[0] >= 1 && blocks[1] >= 5, "the blocks are there");
}

#[test]
fn commands_of_the_readme_and_the_tour_can_be_pasted() {
    for page in ["README.md", "docs/tour.md"] {
        let text = std::fs::read_to_string(root().join(page)).unwrap();
        for part in text.split("```sh\n").skip(1) {
            let block = part.split("```").next().unwrap();
            assert_eq!(crate::guides::can_be_pasted(block), Ok(()), "{page}");
        }
    }
}

/// Runs the blocks of a page and returns how many there are.
fn blocks_that_print_what_they_show(
    page: &str,
    daemon: &Daemon,
    repository: &GitRepository,
) -> usize {
    let path = root().join(page);
    let text = std::fs::read_to_string(&path).unwrap();
    let mut updated = String::new();
    let mut blocks = 0;
    for (index, part) in text.split("```console\n").enumerate() {
        if index == 0 {
            updated.push_str(part);
            continue;
        }
        let (block, rest) = part.split_once("```").unwrap();
        let commands = block.lines().filter_map(|line| line.strip_prefix("$ "));
        let expected = commands.fold(String::new(), |all, command| {
            all + "$ " + command + "\n" + &printed(command, daemon, repository)
        });
        if !updating() {
            assert_eq!(block, expected, "{page}: run with UPDATE_DOCS=1 and read the difference");
        }
        let shown = format!("```console\n{expected}```{rest}");
        updated += &shown;
        blocks += 1;
    }
    if updating() {
        std::fs::write(path, updated).unwrap();
    }
    blocks
}

#[test]
fn the_comment_of_the_tour_is_what_a_change_brings() {
    let (repository, _daemon) = serve_fleet();
    let file = "examples/fleet/groups/roles/web.yaml";
    let text = std::fs::read_to_string(root().join(file)).unwrap();
    let changed = text
        .replace("pp_role = web", "pp_role = web and not (name ~ \"[.]staging[.]\")")
        .replace("keepalive_timeout: 5", "keepalive_timeout: 15");
    assert_ne!(text, changed);
    repository.commit("Leave staging alone", &[(file, &changed)]);
    let directory = repository.path().join("examples/fleet");
    let output =
        clade(&["diff", "main~1", "main", "--facts", "examples/facts", "--format", "markdown"])
            .args(["--repo".as_ref(), directory.as_os_str()])
            .output()
            .unwrap();
    let comment = String::from_utf8(output.stdout).unwrap();
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
    let path = root().join("docs/tour.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once("```markdown\n").unwrap();
    let (shown, after) = rest.split_once("```").unwrap();
    if updating() {
        std::fs::write(path, format!("{before}```markdown\n{comment}```{after}")).unwrap();
    } else {
        assert_eq!(shown, comment, "run with UPDATE_DOCS=1 and read the difference");
    }
}

#[test]
fn the_reference_of_commands_is_what_help_prints() {
    let mut help = String::new();
    let names: Vec<String> = clade::internals::cli::command()
        .get_subcommands()
        .filter(|it| !it.is_hide_set())
        .map(|it| it.get_name().to_owned())
        .collect();
    for name in std::iter::once(None).chain(names.iter().map(Some)) {
        let arguments: Vec<&str> = name.map(String::as_str).into_iter().chain(["--help"]).collect();
        let output = clade(&arguments).env("COLUMNS", "120").output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let shown = format!("$ clade {}\n{text}\n", arguments.join(" "));
        help += &shown;
    }
    let help: String = help.lines().map(|line| line.trim_end().to_owned() + "\n").collect();
    let path = root().join("docs/reference/commands.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once("```text\n").unwrap();
    let (shown, after) = rest.split_once("```").unwrap();
    let help = help.trim_end().to_owned() + "\n";
    if updating() {
        std::fs::write(path, format!("{before}```text\n{help}```{after}")).unwrap();
    } else {
        assert_eq!(shown, help, "run with UPDATE_DOCS=1 and read the difference");
    }
}
