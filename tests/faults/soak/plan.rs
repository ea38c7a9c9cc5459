//! What happens when: a month of a site within the minutes of a run.

use std::time::Duration;

/// How many nodes the site has.
const NAMES: u32 = 100_000;

/// Check-ins a second: what a daemon on two cores stores beside other work, and enough to see each node again.
const PACE: (u32, u32) = (200, 400);

/// How the daemon ends before it is started again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    Sigterm,
    Kill,
}

/// How long the daemon runs without a restart after the warm-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lives {
    /// A third of the rest, three times.
    Several,
    /// The rest.
    OneLong,
}

impl Lives {
    /// Returns the name of the file in which a run is drawn.
    pub(super) fn picture(self) -> &'static str {
        match self {
            Self::Several => "soak.svg",
            Self::OneLong => "soak-long-life.svg",
        }
    }
}

/// What the conductor does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    Commit,
    /// The remote is out of reach until `Reconnect`.
    Disconnect,
    Reconnect,
    Restart(Ending),
}

#[derive(Debug)]
pub(super) struct Plan {
    pub(super) time: Duration,
    /// No slope is taken of what is measured before.
    pub(super) warm_up: Duration,
    /// How many nodes check in, in turn.
    pub(super) names: u32,
    /// Check-ins a second.
    pub(super) pace: u32,
    pub(super) sample_every: Duration,
    pub(super) write_every: Duration,
    pub(super) diff_every: Duration,
    pub(super) page_every: Duration,
    pub(super) lives: Lives,
    pub(super) events: Vec<(Duration, Event)>,
}

impl Plan {
    pub(super) fn of(minutes: u64, lives: Lives) -> Self {
        let time = Duration::from_mins(minutes.max(2));
        let warm_up = time / 4;
        // All nodes have checked in before the warm-up is over.
        let first_round = warm_up * 9 / 10;
        let seconds = u32::try_from(first_round.as_secs()).unwrap_or(u32::MAX).max(1);
        let pace = (NAMES / seconds).clamp(PACE.0, PACE.1);
        let commit_every = Duration::from_mins(1).min(time / 24);
        Self {
            time,
            warm_up,
            names: NAMES.min(pace.saturating_mul(seconds)),
            pace,
            sample_every: (time / 400).max(Duration::from_secs(1)),
            write_every: commit_every / 2,
            diff_every: commit_every,
            page_every: Duration::from_millis(1500),
            lives,
            events: events(time, lives, commit_every),
        }
    }
}

/// Returns the events in their order. Three lives of a quarter each come after the warm-up, or one; the remote is out of
/// reach four times, the second time across a restart if there is one then.
fn events(time: Duration, lives: Lives, commit_every: Duration) -> Vec<(Duration, Event)> {
    use Ending::{Kill, Sigterm};
    let at = |per_mille: u32| time * per_mille / 1000;
    let mut events = vec![
        (at(80), Event::Restart(Kill)),
        (at(160), Event::Restart(Sigterm)),
        (at(250), Event::Restart(Kill)),
    ];
    if lives == Lives::Several {
        events.extend([(at(500), Event::Restart(Sigterm)), (at(750), Event::Restart(Kill))]);
    }
    for (from, to) in [(115, 140), (490, 515), (640, 665), (890, 915)] {
        events.extend([(at(from), Event::Disconnect), (at(to), Event::Reconnect)]);
    }
    let mut next = commit_every / 2;
    while next < time {
        events.push((next, Event::Commit));
        next += commit_every;
    }
    events.sort_by_key(|it| it.0);
    events
}
