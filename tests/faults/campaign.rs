//! Running faults: each in a thread of its own, within a time, and with its output when it fails.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;
use std::sync::mpsc::channel;
use std::sync::{Mutex, PoisonError};
use std::thread::Builder;
use std::time::{Duration, Instant};

use crate::{Fault, Seen, Speed};

/// The arguments of the command line.
#[derive(Debug, Default)]
pub(crate) struct Arguments {
    /// Only names are shown.
    pub(crate) lists: bool,
    /// For how many minutes the load runs, in place of faults.
    pub(crate) load: Option<u64>,
    /// For how many minutes the soak runs, in place of faults.
    pub(crate) soak: Option<u64>,
    /// Whether the last life of the soak takes three quarters of it.
    pub(crate) has_long_life: bool,
    all: bool,
    names: Vec<String>,
}

impl Arguments {
    /// Reads them; flags of the usual test harness are ignored, `cargo test` gives them to all.
    pub(crate) fn parse(mut arguments: impl Iterator<Item = String>) -> Self {
        let mut parsed = Self::default();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--all" => parsed.all = true,
                "--load" | "--soak" => {
                    let minutes = arguments.next().and_then(|it| it.parse().ok());
                    let minutes = minutes.unwrap_or_else(|| panic!("{argument} MINUTES"));
                    let chosen =
                        if argument == "--load" { &mut parsed.load } else { &mut parsed.soak };
                    *chosen = Some(minutes);
                }
                "--long-life" => parsed.has_long_life = true,
                "--list" => (parsed.lists, parsed.all) = (true, true),
                flag if flag.starts_with('-') => {}
                _ => parsed.names.push(argument),
            }
        }
        parsed
    }

    /// Returns the faults that are to be injected.
    pub(crate) fn choose(&self, areas: &[&'static [Fault]]) -> Vec<&'static Fault> {
        let is_chosen = |fault: &&'static Fault| match self.names.as_slice() {
            [] => self.all || fault.speed == Speed::Fast,
            names => names.iter().any(|it| fault.name.contains(it.as_str())),
        };
        areas.iter().copied().flatten().filter(is_chosen).collect()
    }
}

/// What became of a fault.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// The promise held, with the observation.
    Held(String),
    /// The promise was broken, or time was up, with what is said of it.
    Failed(String),
    /// The machine lacks what the injection needs.
    Skipped,
}

/// What the threads of faults panicked with, by the name of the thread.
static PANICS: Mutex<BTreeMap<String, String>> = Mutex::new(BTreeMap::new());

/// Returns how long a fault may take before it counts as failed; machines under load are slow.
fn limit(speed: Speed) -> Duration {
    match speed {
        Speed::Fast => Duration::from_mins(2),
        Speed::Slow => Duration::from_mins(15),
    }
}

/// Injects all that were chosen, fast ones beside each other, and prints each as it ends.
pub(crate) fn run(chosen: &[&'static Fault]) -> Vec<(&'static Fault, Outcome)> {
    // A panic is shown with its fault, not when another one is being printed.
    let default = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        match std::thread::current().name().filter(|it| it.contains("::")) {
            Some(name) => {
                let mut panics = PANICS.lock().unwrap_or_else(PoisonError::into_inner);
                panics.insert(name.to_owned(), panic.to_string());
            }
            None => default(panic),
        }
    }));
    let (fast, slow): (Vec<_>, Vec<_>) =
        chosen.iter().copied().partition(|it| it.speed == Speed::Fast);
    let queue = Mutex::new(fast.iter().copied());
    let results = Mutex::new(Vec::new());
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(4);
    let work = || {
        loop {
            let next = queue.lock().unwrap().next();
            let Some(fault) = next else { break };
            let outcome = inject(fault);
            results.lock().unwrap().push((fault, outcome));
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(work);
        }
    });
    let mut results = results.into_inner().unwrap();
    results.extend(slow.iter().map(|fault| (*fault, inject(fault))));
    end_children();
    results
}

/// Injects one, and prints the observation.
fn inject(fault: &'static Fault) -> Outcome {
    let (sender, receiver) = channel();
    let began = Instant::now();
    let thread = Builder::new().name(fault.name.to_owned()).spawn(move || {
        let outcome = catch_unwind(AssertUnwindSafe(fault.run));
        // The receiver may have timed out.
        sender.send(outcome.ok()).ok();
    });
    // A thread that is late is left alone; the end of the process ends it.
    drop(thread.unwrap());
    let seen = receiver.recv_timeout(limit(fault.speed));
    let took = began.elapsed().as_secs_f32();
    let name = fault.name;
    match seen {
        Ok(Some(Seen::Held(seen))) => {
            println!("fault {name} ... held ({took:.1} s): {seen}");
            Outcome::Held(seen)
        }
        Ok(Some(Seen::Skipped(peer))) => {
            println!("fault {name} ... skipped: needs {peer}");
            Outcome::Skipped
        }
        failed => {
            let said = match failed {
                Ok(_) => {
                    let mut panics = PANICS.lock().unwrap_or_else(PoisonError::into_inner);
                    panics.remove(name).unwrap_or_default()
                }
                Err(_) => format!("it takes longer than {:?}", limit(fault.speed)),
            };
            let (promise, injection) = (fault.promise, fault.injection);
            let report = format!(
                "fault {name} ... FAILED ({took:.1} s)\n  promised: {promise}\n  injected: {injection}\n  {}",
                said.replace('\n', "\n  ")
            );
            println!("{report}");
            Outcome::Failed(report)
        }
    }
}

/// Kills the processes that faults which ran out of time have left.
fn end_children() {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    for task in tasks {
        let children = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
        for child in children.split_whitespace() {
            // It may have ended by itself.
            Command::new("kill").args(["-KILL", child]).status().ok();
        }
    }
}
