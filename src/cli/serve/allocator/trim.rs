//! Returns freed memory to the system.
//!
//! glibc returns the end of an arena by itself, and nothing that lies before memory in use: after a burst
//! of large requests 300 MiB of 415 were free and still resident (`memory::whole-campaign`).
#![expect(clippy::disallowed_methods, reason = "the process reads its own memory, and time passes")]

use std::time::{Duration, Instant};

/// How often the resident memory is read.
const INTERVAL: Duration = Duration::from_millis(100);

/// How many times as long as freed memory took to return nothing is returned: an arena that is being
/// returned keeps its threads waiting.
const PAUSE: u32 = 9;

/// By how many KiB the resident memory grows before freed memory is returned: a daemon whose memory is
/// steady never pays for it.
const GROWTH: u64 = 16 << 10;

/// How long nothing is returned after memory was, and how long at most: it doubles each time.
///
/// A first return comes at the peak, when most is still in use, so more of them follow. Where nodes check in all the
/// time, memory grows at once by what was returned, and each page is got from the system once more.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_mins(30)];

/// The longest pause while the memory has grown.
const LONGEST_WHILE_GROWN: Duration = Duration::from_secs(32);

/// Decides when freed memory is returned.
#[derive(Debug)]
struct Schedule {
    /// The least resident memory since memory was returned, in KiB.
    low: u64,
    /// The most resident memory at which memory was returned, in KiB.
    peak: u64,
    last: Instant,
    pause: Duration,
}

impl Schedule {
    /// Begins with a process that has little memory yet.
    fn new(now: Instant) -> Self {
        let [_, longest] = PAUSES;
        Self { low: 0, peak: 0, last: now, pause: longest * 2 }
    }

    /// Returns whether freed memory is to be returned now, and counts on it.
    fn is_due(&mut self, resident: u64, now: Instant) -> bool {
        let [first, longest] = PAUSES;
        self.low = self.low.min(resident);
        let since = now.duration_since(self.last);
        let has_grown = resident > self.low + GROWTH;
        // The process may never have had so much: what is free limits how much it takes.
        let is_peak = resident > self.peak + GROWTH;
        if is_peak || (has_grown && since > LONGEST_WHILE_GROWN * 2) {
            self.pause = first;
        } else if has_grown && since >= self.pause.min(LONGEST_WHILE_GROWN) {
            self.pause = (self.pause * 2).min(LONGEST_WHILE_GROWN);
        } else if self.pause <= longest && since >= self.pause {
            self.pause *= 2;
        } else {
            return false;
        }
        self.peak = self.peak.max(resident);
        self.last = now;
        true
    }

    /// Notes how much is resident after memory was returned.
    fn trimmed(&mut self, resident: u64) {
        self.low = resident;
    }
}

/// Returns freed memory when the resident memory has grown, until the process ends.
pub(in crate::cli::serve) fn keep_trimming() -> std::io::Result<()> {
    let thread = std::thread::Builder::new().name("trim".to_owned());
    thread.spawn(|| {
        let mut schedule = Schedule::new(Instant::now());
        // Without /proc nothing is known of the memory.
        while let Some(resident) = resident() {
            let began = Instant::now();
            if schedule.is_due(resident, began) {
                arenas::trim();
                schedule.trimmed(self::resident().unwrap_or(resident));
            }
            std::thread::sleep(INTERVAL.max(began.elapsed() * PAUSE));
        }
    })?;
    Ok(())
}

/// Returns the anonymous resident memory of the process in KiB.
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    line.trim().strip_suffix(" kB")?.parse().ok()
}

#[cfg(target_env = "gnu")]
mod arenas {
    #![expect(unsafe_code, reason = "the C library is declared, and no pointer is passed")]

    use std::ffi::c_int;

    // SAFETY: `int malloc_trim(size_t pad)` of glibc's malloc.h; any thread may call it at any time.
    unsafe extern "C" {
        safe fn malloc_trim(pad: usize) -> c_int;
    }

    pub(super) fn trim() {
        // It says whether anything was returned.
        let _is_less = malloc_trim(0);
    }
}

/// Other C libraries return freed memory by themselves.
#[cfg(not(target_env = "gnu"))]
mod arenas {
    pub(super) fn trim() {}
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asks at each tenth of a second whether memory is returned; returns when it was, in milliseconds.
    fn returns(schedule: &mut Schedule, from: Instant, resident: &[u64]) -> Vec<u128> {
        let times = (0_u32..).map(|it| INTERVAL * it);
        let due = times.zip(resident).filter(|(time, it)| {
            let is_due = schedule.is_due(**it, from + *time);
            if is_due {
                schedule.trimmed(100);
            }
            is_due
        });
        due.map(|(time, _)| time.as_millis()).collect()
    }

    #[test]
    fn memory_is_returned_at_each_new_peak() {
        let now = Instant::now();
        let mut schedule = Schedule::new(now);
        let growing: Vec<u64> = (0..5).map(|it| 100 + it * (GROWTH + 1)).collect();
        assert_eq!(returns(&mut schedule, now, &growing), [100, 200, 300, 400]);
    }

    #[test]
    fn memory_that_grows_again_each_time_is_returned_more_and_more_seldom() {
        let now = Instant::now();
        let mut schedule = Schedule::new(now);
        let busy = vec![101 + GROWTH; 1200];
        let returned = returns(&mut schedule, now, &busy);
        assert_eq!(returned, [0, 1000, 3000, 7000, 15_000, 31_000, 63_000, 95_000]);
        // After a calm of some minutes the first growth is returned at once, and the pauses are short again.
        let later = now + Duration::from_mins(10);
        let again = returns(&mut schedule, later, &busy[..100]);
        assert_eq!(again, [0, 1000, 3000, 7000]);
    }

    #[test]
    fn memory_is_returned_later_as_well_and_not_forever() {
        let now = Instant::now();
        let mut schedule = Schedule::new(now);
        assert!(schedule.is_due(101 + GROWTH, now));
        let steady = vec![100; 100_000];
        let returned = returns(&mut schedule, now + INTERVAL, &steady);
        assert_eq!(returned.len(), 11, "{returned:?}");
        assert!(returned.last().is_some_and(|it| *it > 30 * 60 * 1000), "{returned:?}");
    }

    #[test]
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    fn freed_memory_between_used_memory_is_returned() {
        // Blocks small enough to come from an arena; every eighth stays.
        let mut blocks: Vec<Option<Vec<u8>>> = (0..4096).map(|_| Some(vec![1; 32 << 10])).collect();
        let full = resident().unwrap();
        for (number, block) in blocks.iter_mut().enumerate() {
            if number % 8 != 0 {
                *block = None;
            }
        }
        arenas::trim();
        let left = resident().unwrap();
        assert!(left + (64 << 10) < full, "{full} KiB before, {left} KiB after");
        drop(blocks);
    }
}
