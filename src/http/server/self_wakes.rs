//! Polls a connection again when it has woken itself.
//!
//! The HTTP library passes the body of a request to its handler through a channel with both ends in one task, so that
//! the task wakes itself while it runs. The runtime takes this for work that another thread could do and wakes one,
//! which then waits for events in place of this one: with one connection each request would be answered by another core
//! than the one before. Polled again at once, the task has nothing left to do and sleeps, and no thread is woken.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use futures_util::task::AtomicWaker;

/// How often a connection is polled in turn; then the others have theirs.
const MOST: usize = 4;

/// It is not polled, and nothing has happened since it was.
const IDLE: u8 = 0;

/// It is polled, and nothing has happened since that began.
const POLLED: u8 = 1;

/// Something has happened, and it will be polled once more.
const WOKEN: u8 = 2;

/// Runs a future that is polled again at once when it has woken itself.
pub(super) async fn absorb_self_wakes<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let wakes = Arc::new(Wakes { state: AtomicU8::new(IDLE), task: AtomicWaker::new() });
    let waker = Waker::from(Arc::clone(&wakes));
    poll_fn(|task| wakes.poll(task, || future.as_mut().poll(&mut Context::from_waker(&waker))))
        .await
}

/// Passes those wakes on to the task that come while it sleeps.
#[derive(Debug)]
struct Wakes {
    state: AtomicU8,
    task: AtomicWaker,
}

impl Wakes {
    fn poll<T>(&self, task: &mut Context<'_>, mut poll: impl FnMut() -> Poll<T>) -> Poll<T> {
        self.task.register(task.waker());
        for _ in 0..MOST {
            // What was done before a wake is seen by the poll after it: both exchange the state.
            self.state.swap(POLLED, Ordering::AcqRel);
            if let Poll::Ready(done) = poll() {
                return Poll::Ready(done);
            }
            let sleeps =
                self.state.compare_exchange(POLLED, IDLE, Ordering::AcqRel, Ordering::Acquire);
            if sleeps.is_ok() {
                return Poll::Pending;
            }
        }
        task.waker().wake_by_ref();
        Poll::Pending
    }
}

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.state.swap(WOKEN, Ordering::AcqRel) == IDLE {
            self.task.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::time::Duration;

    use super::*;

    #[derive(Default)]
    struct Counted(AtomicUsize);

    impl Wake for Counted {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    impl Counted {
        fn count(&self) -> usize {
            self.0.load(Ordering::Relaxed)
        }
    }

    /// Wakes itself in some of its first polls, and is never done; says how often it was polled.
    fn restless<'a>(
        wakes: usize,
        polls: &'a AtomicUsize,
        kept: &'a AtomicWaker,
    ) -> impl Future<Output = ()> + 'a {
        poll_fn(move |cx| {
            if polls.fetch_add(1, Ordering::Relaxed) < wakes {
                cx.waker().wake_by_ref();
            }
            kept.register(cx.waker());
            Poll::Pending
        })
    }

    /// Returns how often it was polled and its task woken after so many polls of the task.
    fn observed(wakes: usize, polls_of_the_task: usize) -> (usize, usize) {
        let (polls, kept) = (AtomicUsize::new(0), AtomicWaker::new());
        let task = Arc::new(Counted::default());
        let waker = Waker::from(Arc::clone(&task));
        let mut future = pin!(absorb_self_wakes(restless(wakes, &polls, &kept)));
        for _ in 0..polls_of_the_task {
            assert!(future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        }
        (polls.load(Ordering::Relaxed), task.count())
    }

    #[test]
    fn a_future_that_wakes_itself_is_polled_again_and_its_task_is_not_woken() {
        assert_eq!(observed(0, 1), (1, 0));
        assert_eq!(observed(1, 1), (2, 0));
        assert_eq!(observed(MOST - 1, 1), (MOST, 0));
        assert_eq!(observed(MOST, 1), (MOST, 1), "the others have their turn");
        assert_eq!(observed(MOST, 2), (MOST + 1, 1));
        assert_eq!(observed(usize::MAX, 3), (3 * MOST, 3));
    }

    #[test]
    fn a_task_that_sleeps_is_woken_once_until_it_is_polled() {
        let (polls, kept) = (AtomicUsize::new(0), AtomicWaker::new());
        let task = Arc::new(Counted::default());
        let waker = Waker::from(Arc::clone(&task));
        let mut future = pin!(absorb_self_wakes(restless(0, &polls, &kept)));
        for round in 1..=3 {
            assert!(future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
            let kept = kept.take().unwrap();
            kept.wake_by_ref();
            kept.wake();
            assert_eq!(task.count(), round);
        }
    }

    /// A wake that came between a poll and its end and was lost would stop this for ever: the channel has room for one.
    #[tokio::test]
    async fn no_wake_of_another_thread_is_lost() {
        let (sender, mut receiver) = tokio::sync::mpsc::channel(1);
        let sending = std::thread::spawn(move || {
            for number in 0..300_000_u32 {
                // Asleep, it would be woken long after the receiver sleeps.
                while sender.try_send(number).is_err() {
                    std::hint::spin_loop();
                }
            }
        });
        let receive = absorb_self_wakes(async move {
            let mut next = 0;
            while let Some(number) = receiver.recv().await {
                assert_eq!(number, next);
                next += 1;
            }
            next
        });
        let received = tokio::time::timeout(Duration::from_mins(1), receive).await.unwrap();
        assert_eq!(received, 300_000);
        sending.join().unwrap();
    }
}
