use std::net::IpAddr;

use super::*;
use crate::http::server::memory_budget::MemoryReservation;

fn limit(most: usize) -> Arc<ConnectionLimit> {
    Arc::new(ConnectionLimit::new("listen", most, Arc::default()))
}

fn address(last: u8) -> ClientKey {
    IpAddr::from([10, 0, 0, last]).into()
}

fn is_evicted(guard: &ConnectionGuard) -> bool {
    guard.slot.evicted.is_cancelled()
}

/// Acquires a slot that has been in a phase since then.
fn acquire(
    limit: &Arc<ConnectionLimit>,
    client: u8,
    phase: Phase,
    since: u64,
) -> Arc<ConnectionGuard> {
    let guard = Arc::new(limit.try_acquire(&address(client)).unwrap());
    guard.slot.enter(phase, since);
    guard
}

#[test]
fn the_longest_wait_of_the_client_with_the_most_connections_is_evicted() {
    let limit = limit(4);
    let old = acquire(&limit, 1, Phase::Head, 1);
    let (idle, older, works) = (
        acquire(&limit, 2, Phase::Head, 7),
        acquire(&limit, 2, Phase::Body, 5),
        acquire(&limit, 2, Phase::Handling, 2),
    );
    let next = acquire(&limit, 3, Phase::Head, 9);
    assert_eq!([&old, &idle, &older, &works].map(|it| is_evicted(it)), [false, false, true, false]);
    // Its slot is free at once, not when its task ends.
    drop(next);
    let next = acquire(&limit, 3, Phase::Head, 9);
    assert!(!is_evicted(&idle));
    drop((old, idle, older, works, next));
    assert!(limit.open.lock().slots.is_empty() && limit.open.lock().by_client.is_empty());
}

#[test]
fn a_connection_being_handled_is_never_evicted_and_probes_are_accepted_beyond_the_limit() {
    let limit = limit(2);
    let working: Vec<_> = (0..2).map(|_| acquire(&limit, 1, Phase::Handling, 0)).collect();
    let spare: Vec<_> =
        (0..PROBE_CONNECTIONS).map(|_| acquire(&limit, 2, Phase::Handling, 0)).collect();
    assert!(spare.iter().all(|it| it.is_over_limit()));
    assert!(limit.try_acquire(&address(3)).is_none());
    assert!(!working.iter().any(|it| is_evicted(it)));
    // As many as the limit allows are answered when others have ended.
    let mut spare = spare;
    drop(working);
    spare.truncate(3);
    assert!(spare.iter().all(|it| it.is_over_limit()));
    spare.truncate(2);
    assert!(!spare.iter().any(|it| it.is_over_limit()));
}

#[test]
fn incomplete_requests_are_limited_by_client_and_in_total() {
    let limit = limit(16);
    let mut all = Vec::new();
    let mut begin = |client: u8, since: u64| {
        let guard = acquire(&limit, client, Phase::Head, since);
        let waiting = guard.await_body();
        guard.slot.enter(Phase::Body, since);
        all.push((Arc::clone(&guard), waiting));
        guard
    };
    let first = begin(1, 0);
    for since in 1..4 {
        begin(1, since);
    }
    assert!(!is_evicted(&first));
    begin(1, 4);
    assert!(is_evicted(&first), "a fifth of one client");
    let second = begin(2, 0);
    begin(2, 5);
    begin(3, 6);
    assert!(!is_evicted(&second));
    begin(4, 7);
    assert!(is_evicted(&second), "a ninth of all");
    drop(all);
    let open = limit.open.lock();
    assert_eq!((open.pending_bodies, open.pending_bodies_by_client.len()), (0, 0));
}

#[test]
fn bytes_of_incomplete_requests_are_limited() {
    let limit = limit(16);
    let large = acquire(&limit, 1, Phase::Body, 1);
    large.add_buffered(BUFFERED_BYTES - 10);
    let small = acquire(&limit, 2, Phase::Head, 2);
    small.add_buffered(10);
    assert!(!is_evicted(&large));
    small.add_buffered(1);
    assert!(is_evicted(&large) && !is_evicted(&small));
    assert_eq!(limit.buffered.load(Ordering::Relaxed), 11);
    // What comes before its task ends is not forgotten.
    large.add_buffered(5);
    drop((large, small));
    assert_eq!(limit.buffered.load(Ordering::Relaxed), 0);
}

#[test]
fn the_start_of_a_request_counts_for_the_buffer_too() {
    let limit = limit(16);
    let connection = acquire(&limit, 1, Phase::Body, 1);
    connection.add_received(10_000);
    assert_eq!(connection.slot.buffered(), 20_000);
    connection.add_received(READ_BUFFER);
    connection.add_received(1_000_000);
    assert_eq!(connection.slot.buffered(), 10_000 + READ_BUFFER + 1_000_000 + READ_BUFFER);
}

#[test]
fn addresses_of_one_site_are_one_client() {
    let of = |text: &str| ClientKey::from(text.parse::<IpAddr>().unwrap());
    assert_eq!(of("2001:db8::1"), of("2001:db8::2:3"));
    assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
    assert_eq!(of("::ffff:10.0.0.1"), of("10.0.0.1"));
    assert_ne!(of("10.0.0.1"), of("10.0.0.2"));
}

#[test]
fn work_that_outlives_its_connection_keeps_no_slot() {
    let limit = limit(1);
    let guard = acquire(&limit, 1, Phase::Handling, 1);
    let reservation = MemoryReservation::of_connection(&guard);
    drop(guard);
    assert!(limit.open.lock().slots.is_empty());
    drop(reservation);
}
