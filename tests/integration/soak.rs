//! How `just soak` tells a leak from noise.

#[path = "../faults/soak/trend.rs"]
mod trend;

use fastrand::Rng;
use trend::{Point, Tolerance, Trend, median};

const TOLERANCE: Tolerance = Tolerance { share: 0.1, absolute: 2.0 };

/// Measurements every five seconds for ten minutes, around 100 and with some noise, that rise by so much an hour.
fn life(begin: f64, level: f64, per_hour: f64, seed: u64) -> Vec<Point> {
    let mut rng = Rng::with_seed(seed);
    let point = |number: u32| {
        let at = begin + f64::from(number) * 5.0;
        (at, level + per_hour * (at - begin) / 3600.0 + rng.f64() * 8.0 - 4.0)
    };
    (0..120).map(point).collect()
}

#[test]
fn the_median_of_an_even_number_is_between_the_middle_two() {
    assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
    assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), Some(2.5));
    assert_eq!(median(Vec::new()), None);
}

#[test]
fn a_slope_is_that_of_the_line() {
    let line: Vec<Point> = (0..20).map(|it| (f64::from(it), 7.0 + f64::from(it) * 0.5)).collect();
    let trend = Trend::of(&line).unwrap();
    assert_eq!(trend, Trend { level: 11.75, rise: 9.5, per_hour: 1800.0 });
    assert_eq!(Trend::of(&line[..7]), None);
}

#[test]
fn noise_is_level_and_a_leak_within_it_is_not() {
    for seed in 0..50 {
        assert!(Trend::of(&life(0.0, 100.0, 0.0, seed)).unwrap().is_level(TOLERANCE), "{seed}");
        let leak = Trend::of(&life(0.0, 100.0, 90.0, seed)).unwrap();
        assert!(!leak.is_level(TOLERANCE), "{seed}: {leak:?}");
        assert!((leak.per_hour - 90.0).abs() < 12.0, "{seed}: {leak:?}");
        assert!(Trend::of(&life(0.0, 100.0, -90.0, seed)).unwrap().is_level(TOLERANCE), "{seed}");
    }
}

#[test]
fn a_minute_of_spikes_at_the_end_is_not_a_leak() {
    let mut points = life(0.0, 100.0, 0.0, 1);
    for point in &mut points[100..] {
        point.1 *= 30.0;
    }
    assert!(Trend::of(&points).unwrap().is_level(TOLERANCE));
}

#[test]
fn a_restart_hides_no_leak() {
    let lives = |per_hour: f64, step: f64| -> Vec<Vec<Point>> {
        let one = |it: u32| {
            life(f64::from(it) * 700.0, 100.0 + step * f64::from(it), per_hour, it.into())
        };
        (0..3).map(one).collect()
    };
    let is_level = |lives: &[Vec<Point>]| {
        [Trend::within(lives), Trend::between(lives)].map(|it| it.unwrap().is_level(TOLERANCE))
    };
    assert_eq!(is_level(&lives(0.0, 0.0)), [true, true]);
    assert_eq!(is_level(&lives(90.0, 0.0)), [false, true], "each life begins where the first did");
    assert_eq!(is_level(&lives(0.0, 10.0)), [true, false], "each life stands higher");
    let joined = lives(90.0, 0.0).concat();
    assert!(
        Trend::of(&joined).unwrap().is_level(TOLERANCE),
        "which is why lives are judged one by one"
    );
    // One life that rises is noise, as where another program began beside it.
    let mut mixed = lives(0.0, 0.0);
    mixed[1] = life(700.0, 100.0, 90.0, 9);
    assert_eq!(is_level(&mixed), [true, true]);
}

#[test]
fn small_series_have_an_absolute_tolerance() {
    let files: Vec<Point> = (0..20).map(|it| (f64::from(it), f64::from(5 + it / 10))).collect();
    assert!(Trend::of(&files).unwrap().is_level(TOLERANCE));
    let none: Vec<Vec<Point>> = Vec::new();
    assert_eq!((Trend::within(&none), Trend::between(&none)), (None, None));
}
