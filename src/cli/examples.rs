//! An example in the help of each command.

use clap::Command;

/// Command, and what people type.
const EXAMPLES: &[(&str, &[&str])] = &[
    ("init", &["clade init groups --ci gitlab"]),
    (
        "serve",
        &[
            "clade serve --repo https://git.example.com/puppet/groups.git --data-dir /var/lib/clade",
            "clade serve --config /etc/clade/clade.yaml",
        ],
    ),
    ("validate", &["clade validate", "clade validate --rev origin/main --format github"]),
    ("test", &["clade test"]),
    ("classify", &["clade classify web1.example.com --facts facts/web1.example.com.json"]),
    (
        "explain",
        &[
            "clade explain web1.example.com --facts facts/web1.example.com.json",
            "clade explain web1.example.com --group Webservers --server https://clade.example.com:4433",
        ],
    ),
    ("blame", &["clade blame web1.example.com classes.ntp.servers"]),
    (
        "history",
        &[
            "clade history web1.example.com --limit 10",
            "clade history web1.example.com --facts facts/web1.example.com.json --rev main",
        ],
    ),
    (
        "nodes",
        &[
            "clade nodes --state conflict",
            "clade nodes --group Webservers --silent-for 2h",
            "clade nodes --facts facts --class apache",
        ],
    ),
    (
        "query",
        &[
            "clade query 'os.family = Debian and trusted.extensions.pp_role = web'",
            "clade query 'name ~ \"^db\"' --facts facts --format names",
        ],
    ),
    (
        "diff",
        &[
            "clade diff origin/main...HEAD --facts facts",
            "clade diff HEAD~1 HEAD --server https://clade.example.com:4433 --format markdown",
        ],
    ),
    ("enc", &["clade enc web1.example.com --server https://clade.example.com:4433"]),
    ("import", &["clade import groups.json groups"]),
    ("export", &["clade export > groups.json"]),
    ("fmt", &["clade fmt --check"]),
    ("lint", &["clade lint", "clade lint --explain missing-class"]),
    ("classes", &["clade classes scan ../control-repo"]),
    ("translate", &["clade translate 'os.family = Debian and not name ~ \"^web\"'"]),
    (
        "status",
        &["clade status --server https://clade.example.com:4433 --token-file ~/.clade-token"],
    ),
    ("why", &["clade why HEAD"]),
    ("wait", &["clade wait HEAD --timeout 5m"]),
    ("reconcile", &["clade reconcile --reason 'a webhook was lost'"]),
    ("pin", &["clade pin v1.4 --reason 'freeze before the audit'"]),
    ("resume", &["clade resume --reason 'the audit is over'"]),
    ("schema", &["clade schema group"]),
    ("completions", &["clade completions bash > /etc/bash_completion.d/clade"]),
    ("man", &["clade man /usr/local/share/man/man1"]),
];

/// Returns the commands with an example in the help of each.
pub(super) fn with_examples(command: Command) -> Command {
    EXAMPLES.iter().fold(command, |command, (name, examples)| {
        if command.find_subcommand(name).is_none() {
            return command;
        }
        let title = if examples.len() == 1 { "Example" } else { "Examples" };
        let help = format!("{title}:\n  {}", examples.join("\n  "));
        command.mut_subcommand(name, |it| it.after_help(help))
    })
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use clap::error::{ContextKind, ContextValue, ErrorKind};

    use super::EXAMPLES;
    use crate::cli::command;

    /// Parts a line as a shell does, as far as the examples need it.
    fn words(line: &str) -> Vec<String> {
        let line = line.split(" > ").next().unwrap();
        let mut words = vec![String::new()];
        for (at, part) in line.split('\'').enumerate() {
            let quoted = at % 2 == 1;
            for (at, piece) in part.split(' ').enumerate() {
                let continues = quoted || at == 0;
                match words.last_mut() {
                    Some(word) if continues && !quoted => word.push_str(piece),
                    Some(word) if quoted => {
                        word.push_str(if at == 0 { "" } else { " " });
                        word.push_str(piece);
                    }
                    _ => words.push(piece.to_owned()),
                }
            }
        }
        words.retain(|it| !it.is_empty());
        words
    }

    /// Returns the files of a directory.
    fn files(directory: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(directory).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if path.is_dir() {
                files(&path, found);
            } else {
                found.push(path);
            }
        }
    }

    /// Returns whether a command that a text names could be typed, apart from what it leaves out.
    fn is_there(named: &str) -> Result<(), String> {
        let line = named.split(" && ").next().unwrap().replace(" … ", " ");
        let line = line.split(['{', '…', '[', '(']).next().unwrap();
        let Err(error) = command().try_get_matches_from(words(line)) else { return Ok(()) };
        let value = match error.get(ContextKind::InvalidValue) {
            Some(ContextValue::String(value)) => value.as_str(),
            _ => "",
        };
        // `clade schema KIND` names no kind.
        let is_placeholder = value.chars().all(|it| !it.is_ascii_lowercase());
        match error.kind() {
            ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand => Err(error.to_string()),
            ErrorKind::InvalidValue | ErrorKind::ValueValidation if !is_placeholder => {
                Err(error.to_string())
            }
            _ => Ok(()),
        }
    }

    #[test]
    fn every_command_that_a_text_names_is_there() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut texts = vec![root.join("README.md")];
        for directory in ["src", "docs", "charts", "examples", "packaging", "schemas"] {
            files(&root.join(directory), &mut texts);
        }
        let mut named = 0;
        for path in texts {
            // Pictures have no text.
            let Ok(text) = std::fs::read_to_string(&path) else { continue };
            for line in text.lines() {
                let quoted = line.split('`').skip(1).step_by(2);
                for command in quoted.filter(|it| it.starts_with("clade ") && it.len() > 6) {
                    named += 1;
                    is_there(command)
                        .unwrap_or_else(|it| panic!("{}: `{command}`: {it}", path.display()));
                }
            }
        }
        assert!(named > 100, "{named}");
    }

    #[test]
    fn every_command_has_an_example_that_parses() {
        for shown in command().get_subcommands().filter(|it| !it.is_hide_set()) {
            let name = shown.get_name();
            let found = EXAMPLES.iter().find(|(of, _)| *of == name);
            let (_, examples) = found.unwrap_or_else(|| panic!("`clade {name}` has no example"));
            for example in *examples {
                let words = words(example);
                assert_eq!(words[1], name, "{example}");
                command()
                    .try_get_matches_from(&words)
                    .unwrap_or_else(|it| panic!("{example}: {it}"));
            }
        }
    }
}
