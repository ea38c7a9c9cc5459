//! The priority of background threads: those that follow the repository, those that write, and those that make pages for people.

use std::cell::Cell;

use rayon::{ThreadPool, ThreadPoolBuilder};

/// The stack of threads that validate: schemas that refer to schemas nest calls, and with the usual 2 MiB those that are
/// allowed would come close to its end. Only what is used takes memory.
pub(crate) const STACK: usize = 8 << 20;

/// How nice such a thread is: beside two busy cores it gets a tenth of one, which is enough for the check-ins of
/// 100,000 nodes, and a request that comes in runs at once.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 10;

/// Makes the calling thread, and those that it starts, yield to threads that answer requests.
#[cfg(target_os = "linux")]
pub(crate) fn yield_to_requests() {
    // Linux has a niceness for each thread. A thread without its own is slower to answer, and no worse.
    if rustix::process::getpriority_process(None).is_ok_and(|it| it < NICENESS) {
        rustix::process::setpriority_process(None, NICENESS).ok();
    }
}

/// Other systems have one niceness for the whole process.
#[cfg(not(target_os = "linux"))]
pub(crate) fn yield_to_requests() {}

/// Returns threads for computations that yield to requests, one for each processor; none if the system gives none.
pub(crate) fn yielding_threads(name: &'static str) -> Option<ThreadPool> {
    let pool = ThreadPoolBuilder::new().thread_name(move |number| format!("{name}-{number}"));
    pool.stack_size(STACK).start_handler(|_| yield_to_requests()).build().ok()
}

thread_local! {
    static SERVES_PEOPLE: Cell<bool> = const { Cell::new(false) };
}

/// Makes the calling thread one that makes pages: it yields, and reads the store beside those that agents wait for.
pub(crate) fn serve_people() {
    yield_to_requests();
    SERVES_PEOPLE.set(true);
}

/// Returns whether the calling thread makes pages.
pub(crate) fn serves_people() -> bool {
    SERVES_PEOPLE.get()
}
