use super::*;

fn seats(connections: usize) -> Arc<Seats> {
    Arc::new(Seats::new("listen", connections, Arc::default()))
}

fn address(last: u8) -> Caller {
    IpAddr::from([10, 0, 0, last]).into()
}

fn is_evicted(taking: &Taking) -> bool {
    taking.seat.evicted.is_cancelled()
}

/// Takes a seat and puts it into a phase since then.
fn sit(seats: &Arc<Seats>, caller: u8, phase: Phase, since: u64) -> Arc<Taking> {
    let taking = Arc::new(seats.try_take(&address(caller)).unwrap());
    taking.seat.enter(phase, since);
    taking
}

#[test]
fn the_longest_of_the_caller_with_the_most_connections_gives_way() {
    let seats = seats(4);
    let old = sit(&seats, 1, Phase::Head, 1);
    let (idle, older, works) = (
        sit(&seats, 2, Phase::Head, 7),
        sit(&seats, 2, Phase::Body, 5),
        sit(&seats, 2, Phase::Work, 2),
    );
    let next = sit(&seats, 3, Phase::Head, 9);
    assert_eq!([&old, &idle, &older, &works].map(|it| is_evicted(it)), [false, false, true, false]);
    // Its seat is free at once, not when its task ends.
    drop(next);
    let next = sit(&seats, 3, Phase::Head, 9);
    assert!(!is_evicted(&idle));
    drop((old, idle, older, works, next));
    assert!(seats.lock().seats.is_empty() && seats.lock().by_caller.is_empty());
}

#[test]
fn what_the_daemon_works_on_never_gives_way_and_probes_get_in_nevertheless() {
    let seats = seats(2);
    let working: Vec<_> = (0..2).map(|_| sit(&seats, 1, Phase::Work, 0)).collect();
    let spare: Vec<_> = (0..SPARE).map(|_| sit(&seats, 2, Phase::Work, 0)).collect();
    assert!(spare.iter().all(|it| it.seat.is_spare));
    assert!(seats.try_take(&address(3)).is_none());
    assert!(!working.iter().any(|it| is_evicted(it)));
}

#[test]
fn half_read_requests_are_limited_by_caller_and_altogether() {
    let seats = seats(16);
    let mut all = Vec::new();
    let mut begin = |caller: u8, since: u64| {
        let taking = sit(&seats, caller, Phase::Head, since);
        let waiting = taking.waits_for_body();
        taking.seat.enter(Phase::Body, since);
        all.push((Arc::clone(&taking), waiting));
        taking
    };
    let first = begin(1, 0);
    for since in 1..4 {
        begin(1, since);
    }
    assert!(!is_evicted(&first));
    begin(1, 4);
    assert!(is_evicted(&first), "a fifth of one caller");
    let second = begin(2, 0);
    begin(2, 5);
    begin(3, 6);
    assert!(!is_evicted(&second));
    begin(4, 7);
    assert!(is_evicted(&second), "a ninth of all");
    drop(all);
    let taken = seats.lock();
    assert_eq!((taken.unfinished, taken.unfinished_by_caller.len()), (0, 0));
}

#[test]
fn bytes_of_half_read_requests_are_limited() {
    let seats = seats(16);
    let large = sit(&seats, 1, Phase::Body, 1);
    large.holds(HELD - 10);
    let small = sit(&seats, 2, Phase::Head, 2);
    small.holds(10);
    assert!(!is_evicted(&large));
    small.holds(1);
    assert!(is_evicted(&large) && !is_evicted(&small));
    assert_eq!(seats.held.load(Ordering::Relaxed), 11);
    // What comes before its task ends is not forgotten.
    large.holds(5);
    drop((large, small));
    assert_eq!(seats.held.load(Ordering::Relaxed), 0);
}

#[test]
fn the_start_of_a_request_counts_for_the_buffer_too() {
    let seats = seats(16);
    let connection = sit(&seats, 1, Phase::Body, 1);
    connection.receives(10_000);
    assert_eq!(connection.seat.held(), 20_000);
    connection.receives(BUFFER);
    connection.receives(1_000_000);
    assert_eq!(connection.seat.held(), 10_000 + BUFFER + 1_000_000 + BUFFER);
}

#[test]
fn addresses_of_one_site_are_one_caller() {
    let of = |text: &str| Caller::from(text.parse::<IpAddr>().unwrap());
    assert_eq!(of("2001:db8::1"), of("2001:db8::2:3"));
    assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
    assert_eq!(of("::ffff:10.0.0.1"), of("10.0.0.1"));
    assert_ne!(of("10.0.0.1"), of("10.0.0.2"));
}
