//! `clade check-head`: the daemon starts it for the head of a pull request.

use std::io::Read as _;
use std::path::Path;

use anyhow::{Context as _, Result};
use clap::Args;
use rustix::process::{Resource, Rlimit, Signal, getrlimit, setrlimit};

use super::Exit;
use super::output::Output;
use crate::reconcile::{HeadCheck, check_head};

/// The name of the command.
pub(super) const NAME: &str = "check-head";

/// The most bytes of the document on the standard input.
const INPUT: u64 = 64 << 10;

/// How much less of the processor it gets than the daemon, which answers meanwhile.
const NICE: i32 = 10;

/// Check a commit of the repository in the working directory, as the document on the standard input says
#[derive(Debug, Args)]
#[command(hide = true)]
pub(super) struct CheckHeadCommand {}

impl CheckHeadCommand {
    #[expect(clippy::unused_self, reason = "everything comes on the standard input")]
    pub(super) fn run(self, output: &mut Output) -> Result<Exit> {
        let mut input = Vec::new();
        std::io::stdin().lock().take(INPUT).read_to_end(&mut input)?;
        let check: HeadCheck =
            serde_json::from_slice(&input).context("the standard input is not a check")?;
        confine(&check)?;
        let verdict = check_head(Path::new("."), &check);
        output.data(&serde_json::to_string(&verdict)?)?;
        Ok(Exit::Fine)
    }
}

/// Limits this process before it reads anything of the commit.
fn confine(check: &HeadCheck) -> Result<()> {
    // What is allocated, rather than RLIMIT_AS: packs are mapped, may be larger than the limit, and cost
    // no memory that the system cannot take back.
    limit(Resource::Data, check.memory, check.memory).context("cannot limit memory")?;
    limit(Resource::Cpu, check.cpu_seconds, check.cpu_seconds.saturating_add(5))
        .context("cannot limit processor time")?;
    limit(Resource::Core, 0, 0).context("cannot forbid core dumps")?;
    // A daemon that is killed takes the check along.
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .context("cannot follow the daemon")?;
    // The rest helps, and a system that refuses it still has the limits above.
    // Where memory runs out all the same, the kernel ends this process and not the daemon.
    std::fs::write("/proc/self/oom_score_adj", "1000").ok();
    rustix::process::nice(NICE).ok();
    // One thread: a second arena of the allocator and a second stack would count.
    rayon::ThreadPoolBuilder::new()
        .num_threads(1)
        .use_current_thread()
        .build_global()
        .context("cannot prepare the threads")
}

/// Sets a limit, but none beyond those that hold already.
fn limit(resource: Resource, soft: u64, hard: u64) -> rustix::io::Result<()> {
    let lower = |limit: u64, most: Option<u64>| most.map_or(limit, |most| most.min(limit));
    let now = getrlimit(resource);
    let new =
        Rlimit { current: Some(lower(soft, now.current)), maximum: Some(lower(hard, now.maximum)) };
    setrlimit(resource, new)
}
