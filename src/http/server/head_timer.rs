//! The timer of the heads of a connection's requests.
//!
//! hyper waits for each head with a timer that it drops once the head is there. To set one and to drop it takes the lock
//! of the runtime's timers, which all threads share. A connection has one alarm here that stays set: it is moved where
//! it rings before the deadline of the head that is waited for, once in the time that a head may take.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use hyper::rt::{Sleep, Timer};
use parking_lot::Mutex;

/// The one alarm of a connection, once it has waited.
type HeadAlarm = Arc<Mutex<Option<Pin<Box<tokio::time::Sleep>>>>>;

/// Makes the deadlines of one connection, of which one is waited for at a time.
#[derive(Default)]
pub(super) struct HeadTimer(HeadAlarm);

impl Timer for HeadTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        self.sleep_until(self.now() + duration)
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn Sleep>> {
        Box::pin(HeadDeadline { alarm: Arc::clone(&self.0), deadline: deadline.into() })
    }

    fn now(&self) -> Instant {
        tokio::time::Instant::now().into()
    }
}

/// Completes at a deadline.
struct HeadDeadline {
    alarm: HeadAlarm,
    deadline: tokio::time::Instant,
}

impl Sleep for HeadDeadline {}

impl Future for HeadDeadline {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let deadline = self.deadline;
        let mut alarm = self.alarm.lock();
        let alarm = alarm.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline)));
        if alarm.deadline() > deadline {
            alarm.as_mut().reset(deadline);
        }
        while alarm.as_mut().poll(context).is_ready() {
            if alarm.deadline() == deadline {
                return Poll::Ready(());
            }
            alarm.as_mut().reset(deadline);
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    #[expect(clippy::disallowed_methods, reason = "the test waits for deadlines")]
    async fn each_deadline_is_kept_whatever_was_waited_for_before() {
        let (milliseconds, hour) = (Duration::from_millis, Duration::from_hours(1));
        let timer = HeadTimer::default();
        let wait_once = |time| assert!(timer.sleep(time).now_or_never().is_none());
        let waited = async |time| {
            let began = Instant::now();
            timer.sleep(time).await;
            began.elapsed()
        };
        // The alarm of a head that came rings before the deadline of the next one.
        wait_once(milliseconds(200));
        assert!(waited(milliseconds(300)).await >= milliseconds(300));
        // It rings while none is waited for.
        wait_once(milliseconds(200));
        tokio::time::sleep(milliseconds(300)).await;
        assert!(waited(milliseconds(100)).await >= milliseconds(100));
        // It is set for a later time.
        wait_once(hour);
        assert!(waited(milliseconds(10)).await < hour);
        assert!(waited(Duration::ZERO).await < hour);
    }

    #[tokio::test]
    async fn a_later_deadline_leaves_the_alarm_as_it_is_set() {
        let timer = HeadTimer::default();
        let alarm = || timer.0.lock().as_ref().map(|it| it.deadline());
        let mut set = Vec::new();
        for minutes in [1, 2, 3] {
            assert!(timer.sleep(Duration::from_mins(minutes)).now_or_never().is_none());
            set.push(alarm());
        }
        assert!(set[0].is_some() && set.iter().all(|it| *it == set[0]), "{set:?}");
    }
}
