//! Times counted in buckets, so that a month of them takes as much memory as a minute.

/// Buckets for each doubling: a quantile is at most 1/16 too high.
const STEPS: u32 = 16;

/// 2^27 µs are two minutes; what takes longer counts as that.
const DOUBLINGS: u32 = 28;

#[derive(Clone, Debug)]
pub(super) struct Histogram {
    buckets: Vec<u32>,
    count: u32,
}

impl Histogram {
    pub(super) fn new() -> Self {
        Self { buckets: vec![0; (DOUBLINGS * STEPS) as usize], count: 0 }
    }

    pub(super) fn note(&mut self, micros: u32) {
        let last = self.buckets.len() - 1;
        self.buckets[bucket(micros).min(last)] += 1;
        self.count += 1;
    }

    pub(super) fn count(&self) -> u32 {
        self.count
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.count += other.count;
        for (bucket, more) in self.buckets.iter_mut().zip(&other.buckets) {
            *bucket += more;
        }
    }

    /// Returns the time in ms that so many of a thousand do not exceed.
    pub(super) fn millis(&self, per_mille: u32) -> f64 {
        let rank = u64::from(self.count) * u64::from(per_mille) / 1000;
        let mut below = 0;
        let at = self.buckets.iter().position(|it| {
            below += u64::from(*it);
            below > rank
        });
        let at = at.unwrap_or(self.buckets.len() - 1);
        upper(u32::try_from(at).unwrap_or_default()) / 1000.0
    }
}

/// Times below `STEPS` have a bucket each; above, each doubling has `STEPS`.
fn bucket(micros: u32) -> usize {
    let at = match micros.checked_ilog2().unwrap_or_default() {
        doubling if micros >= STEPS => {
            let step = (micros >> (doubling - STEPS.ilog2())) - STEPS;
            (doubling - STEPS.ilog2() + 1) * STEPS + step
        }
        _ => micros,
    };
    at as usize
}

/// The upper end of a bucket, in µs.
fn upper(at: u32) -> f64 {
    match (at / STEPS, at % STEPS) {
        (0, step) => f64::from(step),
        (doubling, step) => f64::from(STEPS + step + 1) * f64::from(doubling - 1).exp2(),
    }
}
