//! A repository of generated groups.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use git2::{Repository, Signature, Time};

/// A bare repository, and how to change it.
pub(crate) struct Estate {
    directory: tempfile::TempDir,
    repository: RefCell<Option<Repository>>,
}

impl Estate {
    pub(crate) fn new(groups: usize) -> Self {
        let estate = Self::empty();
        let mut files: Vec<(String, String)> =
            (0..groups).map(|number| (file(number), group(number, "first"))).collect();
        files.extend(pair(0));
        estate.commit("first", &files);
        estate
    }

    /// Makes a repository without commits.
    pub(crate) fn empty() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut options = git2::RepositoryInitOptions::new();
        options.bare(true).initial_head("main");
        let path = directory.path().join("estate.git");
        let repository = Repository::init_opts(&path, &options).unwrap();
        Self { directory, repository: RefCell::new(Some(repository)) }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.directory.path().join("estate.git")
    }

    /// Changes one group.
    pub(crate) fn change(&self, number: usize) -> String {
        let group = group(number, &format!("change {number}"));
        self.commit("change", &[(file(number), group)])
    }

    /// Adds a group of every second node.
    pub(crate) fn add_group_of_half(&self) -> String {
        let text = "name: Half\nrule: 'name ~ \"[02468]\\.example\\.com$\"'\nclasses: {half: {}}\n";
        self.commit("half", &[("groups/half.yaml".to_owned(), text.to_owned())])
    }

    /// Changes two groups that say the same.
    pub(crate) fn change_pair(&self, number: usize) -> String {
        self.commit("pair", &pair(number + 1))
    }

    /// Returns whether both groups of the pair answered from one commit.
    pub(crate) fn is_of_one_commit(answer: &str) -> bool {
        let value = |name: &str| {
            let rest = answer.split(&format!("\"{name}\":\"")).nth(1)?;
            rest.split('"').next()
        };
        value("left").is_some() && value("left") == value("right")
    }

    pub(crate) fn head(&self) -> String {
        self.with(|it| it.head().unwrap().target().unwrap().to_string())
    }

    /// Returns the number of commits of the branch, none of which has two parents.
    pub(crate) fn linear(&self) -> usize {
        self.with(|it| {
            let mut next = Some(it.head().unwrap().peel_to_commit().unwrap());
            let mut count = 0;
            while let Some(commit) = next {
                assert!(commit.parent_count() < 2, "the history is not linear");
                count += 1;
                next = commit.parents().next();
            }
            count
        })
    }

    /// Removes the repository, as if the host were down.
    pub(crate) fn take_away(&self) {
        self.repository.replace(None);
        std::fs::rename(self.path(), self.directory.path().join("gone")).unwrap();
    }

    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    fn with<T>(&self, use_it: impl FnOnce(&Repository) -> T) -> T {
        use_it(self.repository.borrow().as_ref().unwrap())
    }

    /// Commits files beside those that are there.
    pub(crate) fn commit(&self, message: &str, files: &[(String, String)]) -> String {
        self.with(|repository| {
            let parent = repository.head().ok().map(|it| it.peel_to_commit().unwrap());
            let mut update = git2::build::TreeUpdateBuilder::new();
            for (path, content) in files {
                let blob = repository.blob(content.as_bytes()).unwrap();
                update.upsert(path.as_str(), blob, git2::FileMode::Blob);
            }
            let empty = repository.treebuilder(None).unwrap().write().unwrap();
            let base = match &parent {
                Some(parent) => parent.tree().unwrap(),
                None => repository.find_tree(empty).unwrap(),
            };
            let tree = update.create_updated(repository, &base).unwrap();
            let tree = repository.find_tree(tree).unwrap();
            let author =
                Signature::new("Ada", "ada@example.com", &Time::new(1_760_000_000, 0)).unwrap();
            let parents: Vec<&git2::Commit<'_>> = parent.iter().collect();
            repository
                .commit(Some("HEAD"), &author, &author, message, &tree, &parents)
                .unwrap()
                .to_string()
        })
    }
}

fn file(number: usize) -> String {
    format!("groups/part{:03}/group{number:05}.yaml", number % 100)
}

fn group(number: usize, value: &str) -> String {
    let site = number % 40;
    let rule = match number % 10 {
        0..3 => format!("trusted.certname ~ \"^host{number}-[0-9]+\\\\.example\\\\.com$\""),
        3..6 => format!("trusted.extensions.pp_role = role{number} and site = s{site}"),
        _ => format!("os.family = Debian and app = a{number}"),
    };
    format!(
        "name: Group {number}\nrule: '{rule}'\nclasses:\n  profile::p{}: {{value: {value}, number: {number}}}\nvariables:\n  site_{site}: s{site}\n",
        number % 500
    )
}

fn pair(number: usize) -> Vec<(String, String)> {
    ["left", "right"]
        .into_iter()
        .map(|side| {
            let group =
                format!("name: {side}\nrule: name = pair\nvariables: {{{side}: v{number}}}\n");
            (format!("groups/pair/{side}.yaml"), group)
        })
        .collect()
}
