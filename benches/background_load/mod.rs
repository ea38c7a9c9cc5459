//! Load from other processes, as users' machines have it: `--background-load=2` starts two.

use std::hint::black_box;
use std::io::Read as _;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How a worker is started: it is this program again.
const WORKER: &str = "--busy";

/// The memory that a worker reads and writes, in 8 bytes: more than the caches hold.
const WORDS: usize = 4 << 20;

/// Processes that keep processors and caches busy until this is dropped.
#[derive(Debug)]
pub struct BackgroundLoad {
    workers: Vec<(Child, Option<ChildStdin>)>,
}

impl BackgroundLoad {
    /// Starts as many workers as the arguments of this program ask for, none by default. In a worker it returns `None`
    /// once the program that started it has ended.
    pub fn start() -> Option<Self> {
        if std::env::args().any(|it| it == WORKER) {
            work();
            return None;
        }
        let count = std::env::args()
            .find_map(|it| it.strip_prefix("--background-load=")?.parse::<usize>().ok())
            .unwrap_or_default();
        let worker = |_| {
            let program = std::env::current_exe().unwrap();
            let mut child =
                Command::new(program).arg(WORKER).stdin(Stdio::piped()).spawn().unwrap();
            let input = child.stdin.take();
            (child, input)
        };
        if count > 0 {
            eprintln!("{count} other processes compute and use memory");
        }
        Some(Self { workers: (0..count).map(worker).collect() })
    }
}

impl Drop for BackgroundLoad {
    fn drop(&mut self) {
        for (child, input) in &mut self.workers {
            drop(input.take());
            child.wait().unwrap();
        }
    }
}

/// Computes and walks through memory by turns, until the other end of the input is gone.
fn work() {
    let is_over = Arc::new(AtomicBool::new(false));
    let over = Arc::clone(&is_over);
    std::thread::spawn(move || {
        let _closed = std::io::stdin().read_to_end(&mut Vec::new());
        over.store(true, Ordering::Relaxed);
    });
    let mut words = vec![1_u64; WORDS];
    let mut state = 1_u64;
    while !is_over.load(Ordering::Relaxed) {
        for _ in 0..1_000_000 {
            state = black_box(state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
        }
        for word in &mut words {
            *word = black_box(word.wrapping_add(state));
        }
    }
}
