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

/// The least resident memory since freed memory was returned, in KiB.
#[derive(Debug)]
struct LowWater(u64);

impl LowWater {
    /// Returns whether freed memory is to be returned now.
    fn is_exceeded(&mut self, resident: u64) -> bool {
        self.0 = self.0.min(resident);
        resident > self.0 + GROWTH
    }
}

/// When freed memory is returned once more: at the peak it was still in use.
#[derive(Debug)]
struct Again {
    at: Instant,
    pause: Duration,
}

/// The pauses between the first trims after a peak and the last ones; each is twice as long as the one before.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_mins(30)];

impl Again {
    /// Begins to wait, after the memory has grown.
    fn after(grown: Instant) -> Self {
        let [pause, _] = PAUSES;
        Self { at: grown + pause, pause }
    }

    /// Waits for longer; none if what is in use by now is not only for a while.
    fn next(&self, now: Instant) -> Option<Self> {
        let [_, longest] = PAUSES;
        let pause = self.pause * 2;
        (pause <= longest).then(|| Self { at: now + pause, pause })
    }
}

/// Returns freed memory whenever the resident memory has grown, until the process ends.
pub(in crate::cli::serve) fn keep_trimming() -> std::io::Result<()> {
    let thread = std::thread::Builder::new().name("trim".to_owned());
    thread.spawn(|| {
        let mut low = LowWater(0);
        let mut again: Option<Again> = None;
        // Without /proc nothing is known of the memory.
        while let Some(resident) = resident() {
            let began = Instant::now();
            let has_grown = low.is_exceeded(resident);
            let is_due = again.as_ref().is_some_and(|it| it.at <= began);
            if has_grown || is_due {
                arenas::trim();
                low = LowWater(self::resident().unwrap_or(resident));
                again = match has_grown {
                    true => Some(Again::after(began)),
                    false => again.and_then(|it| it.next(began)),
                };
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

    #[test]
    fn memory_is_returned_when_it_grew_since_its_least() {
        let mut low = LowWater(100);
        assert!(!low.is_exceeded(100 + GROWTH));
        assert!(low.is_exceeded(101 + GROWTH));
        assert!(!low.is_exceeded(50), "it fell by itself");
        assert!(low.is_exceeded(51 + GROWTH));
    }

    #[test]
    fn memory_is_returned_later_as_well_and_not_forever() {
        let began = Instant::now();
        let mut again = Again::after(began);
        let mut trims = 1;
        while let Some(next) = again.next(again.at) {
            assert!(next.at - again.at == again.pause * 2);
            (again, trims) = (next, trims + 1);
        }
        assert!(again.at - began > Duration::from_mins(30) && trims < 15, "{trims}");
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
