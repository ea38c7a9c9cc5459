//! The settings of the controller, the writer and the store, from those of the daemon.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow};

use super::arguments::ServeSettings;
use super::directories;
use super::prepare::{Prepared, schemes};
use crate::git::{
    Credentials, HttpOptions, Interrupt, Mirror, MirrorOptions, ObjectLimits, OpenError, Person,
    Proxy, Remote, Repository, SshOptions, Verification, VerifyMode,
};
use crate::model::{Budget, CommitId};
use crate::reconcile::{
    CheckInsTrouble, Controller, OnRewrite, Policy, Reason, Settings, Target, WriteMode,
    WriteSettings,
};
use crate::store::{StoreFault, StoreHealth, StoreLimits, StoreLocation, StoreSettings};

/// Returns the settings of the controller; opens the mirror.
pub(super) fn settings(serve: &ServeSettings, prepared: &Prepared) -> Result<Settings> {
    let transport = mirror_options(serve);
    Ok(Settings {
        target: target(serve, &prepared.remote, &transport)?,
        transport: Box::new(transport),
        address: address(&prepared.remote),
        branch: serve.branch.clone(),
        path: serve.path.clone(),
        interval: serve.interval,
        data: serve.data_dir.clone(),
        policy: policy(serve),
        budget: Budget::DEFAULT.with(&serve.commit_budget),
        snapshot_cache: serve.snapshot_cache,
        verification: Verification {
            mode: serve.verify,
            allowed_signers: serve.allowed_signers_file.clone(),
            openpgp_keys: serve.openpgp_keys_file.clone(),
        },
        reporting: prepared.reporting.clone(),
    })
}

fn mirror_options(serve: &ServeSettings) -> MirrorOptions {
    let credentials = match (&serve.git_username, &serve.git_password_file, &serve.git_token_file) {
        (Some(username), Some(password_file), _) => {
            Credentials::Basic { username: username.clone(), password_file: password_file.clone() }
        }
        (_, _, Some(token_file)) => Credentials::Bearer { token_file: token_file.clone() },
        _ => Credentials::FromUrl,
    };
    let proxy = match serve.git_proxy.as_deref() {
        None => Proxy::Environment,
        Some("none") => Proxy::Direct,
        Some(url) => Proxy::Url(url.to_owned()),
    };
    MirrorOptions {
        schemes: schemes(serve),
        refspecs: serve.fetch_refspec.clone(),
        timeout: serve.fetch_timeout,
        max_bytes: serve.fetch_limit,
        objects: ObjectLimits { bytes: serve.fetch_object_limit, count: serve.fetch_objects },
        interrupt: Interrupt::default(),
        http: HttpOptions { credentials, ca_file: serve.git_ca_file.clone(), proxy },
        ssh: SshOptions {
            key_file: serve.ssh_key_file.clone(),
            known_hosts_file: serve.ssh_known_hosts_file.clone(),
        },
    }
}

/// Returns the repository of the branch: a path without a data directory is read in place.
fn target(serve: &ServeSettings, remote: &Remote, options: &MirrorOptions) -> Result<Target> {
    match (&serve.data_dir, remote.as_path()) {
        (None, Some(path)) => {
            open_local(path)?;
            Ok(Target::Local(path.to_owned()))
        }
        (Some(data), path) => {
            let mirror = Mirror::open(data, remote.clone(), options.clone())?;
            // A path that a daemon has followed before and that is gone is a remote that is down.
            let was_followed = mirror.live().is_some() || was_used(data);
            if let Some(path) = path.filter(|_| !was_followed) {
                open_local(path)?;
            }
            directories::keep_out_of_commits(data)?;
            Ok(Target::Remote(Box::new(mirror)))
        }
        (None, None) => Err(anyhow!("`--data-dir DIR` is missing")),
    }
}

/// Returns whether a daemon has used a data directory.
fn was_used(data: &Path) -> bool {
    data.join("journal").exists()
}

/// Checks that a repository of this machine is there, and has the branch and the directory of the groups if it has
/// commits.
pub(super) fn check_repository(serve: &ServeSettings, remote: &Remote) -> Result<()> {
    let Some(path) = remote.as_path() else { return Ok(()) };
    let repository = match Repository::at(path) {
        // The settings may be made before the repository.
        Err(OpenError::NotARepository(_)) if path.is_dir() => return Ok(()),
        // A path that a daemon has followed before and that is gone is a remote that is down.
        Err(_) if serve.data_dir.as_deref().is_some_and(was_used) => return Ok(()),
        _ => open_local(path)?,
    };
    let branch = serve.branch.as_deref();
    let Ok(head) = repository.branch_head(branch) else {
        // The first commit may be still to come.
        return match branch {
            Some(_) => Err(anyhow!("{}", repository.why_missing(branch))),
            None => Ok(()),
        };
    };
    let budget = Budget::DEFAULT.with(&serve.commit_budget);
    // What cannot be read for another reason is not a fault of the settings.
    if matches!(repository.has_directory(head, &serve.path, &budget), Ok(false)) {
        return Err(lacks_path(&serve.path, head));
    }
    Ok(())
}

/// Opens a repository of this machine.
fn open_local(path: &Path) -> Result<Repository> {
    match Repository::at(path) {
        Ok(repository) => Ok(repository),
        Err(error @ OpenError::NotARepository(_)) => Err(error).context(
            "`--repo` must be a git repository: correct the path, or run `git init` there",
        ),
        Err(error @ OpenError::Missing(_)) => {
            Err(error).context("`--repo` must be a git repository: correct the path")
        }
        Err(error) => Err(error.into()),
    }
}

/// Fails if the branch lacks the directory of the groups and no other commit answers.
pub(super) fn check_path(controller: &Controller) -> Result<()> {
    if let Some(head) = controller.lacks_path() {
        return Err(lacks_path(controller.path(), head));
    }
    Ok(())
}

fn lacks_path(path: &str, head: CommitId) -> anyhow::Error {
    anyhow!(
        "`--path {path}`: the commit {head} of the branch has no such directory: correct `--path`, or push a commit that has it"
    )
}

/// Returns the address for messages; a path is absolute, since their reader may be elsewhere.
fn address(remote: &Remote) -> String {
    let whole = remote.as_path().and_then(|path| path.canonicalize().ok());
    whole.map_or_else(|| remote.to_string(), |path| path.display().to_string())
}

/// Returns the policy for rewritten, rewound and stale branches.
fn policy(serve: &ServeSettings) -> Policy {
    // A daemon that does not trust pushes does not trust one that drops history either.
    let on_rewrite = match serve.verify {
        VerifyMode::Off => OnRewrite::Follow,
        VerifyMode::Head | VerifyMode::Range => OnRewrite::Hold,
    };
    Policy {
        on_rewrite: serve.on_rewrite.unwrap_or(on_rewrite),
        rewind_grace: serve.rewind_grace,
        max_staleness: serve.max_staleness,
        on_stale: serve.on_stale,
    }
}

/// Returns the file of check-ins in the data directory, which is used where `--store` is not set.
pub(super) fn file_of_data_directory(serve: &ServeSettings) -> Option<PathBuf> {
    serve.data_dir.as_deref().map(|it| it.join("nodes.sqlite"))
}

/// Returns where check-ins are stored, and how many.
pub(super) fn store_settings(serve: &ServeSettings) -> StoreSettings {
    let in_data_directory =
        || file_of_data_directory(serve).map_or(StoreLocation::Memory, StoreLocation::Sqlite);
    StoreSettings {
        location: serve.store.clone().unwrap_or_else(in_data_directory),
        is_own_place: serve.store.is_none(),
        former: serve.data_dir.as_deref().map(|it| it.join("check-ins.redb")),
        cache: usize::try_from(serve.store_cache).unwrap_or(usize::MAX),
        limits: StoreLimits {
            nodes: serve.store_max_nodes,
            bytes: serve.store_max_bytes,
            forget_after: serve.forget_after,
            history: serve.history,
        },
    }
}

/// Describes the faults of the store of check-ins for conditions.
pub(super) fn trouble(health: &StoreHealth) -> CheckInsTrouble {
    let failing = health.failing.as_ref().map(|error| {
        let reason = match error.fault {
            StoreFault::DiskFull => Reason::DiskFull,
            StoreFault::Locked => Reason::LockHeld,
            _ => Reason::WriteFailed,
        };
        (reason, format!("{error}; what needs them is answered 503"))
    });
    let put_aside = health.put_aside.as_ref().map(|path| {
        format!(
            "`{}` could not be read and was put aside; nodes that have not checked in with facts and trusted data since then get 503 where stored data are needed; to end this, remove that file; if there is a backup, stop the daemon and put it in the place of `nodes.sqlite` before",
            path.display()
        )
    });
    CheckInsTrouble { failing, put_aside }
}

/// Returns the settings of writes, if writes are on.
pub(super) fn writer_settings(serve: &ServeSettings, prepared: &Prepared) -> Option<WriteSettings> {
    let committer = serve.write_committer.strip_suffix('>')?.split_once(" <");
    let (name, email) = committer?;
    Some(WriteSettings {
        mode: serve.writes,
        committer: Person { name: name.trim().to_owned(), email: email.to_owned() },
        trailers: serve.write_trailer.clone(),
        retries: serve.write_retries,
        forge: prepared.reporting.as_ref().map(|it| it.forge.clone()),
    })
    .filter(|it| it.mode != WriteMode::Off)
}
