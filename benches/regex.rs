//! Patterns: what a match, a validation and a compiled pattern cost. `cargo bench --bench regex` prints the table of
//! `docs/reference/regex.md`.
//!
//! Ratios are of one run, with the two sides in turn; the rest are milliseconds of this machine.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    clippy::indexing_slicing,
    reason = "a program that measures and prints"
)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use clade::internals::java_regex::Pattern;

/// Patterns as people write them, with a subject each.
const REALISTIC: &[(&str, &str)] = &[
    (r"^web\d+\.example\.com$", "web042.example.com"),
    (r"^web\d+\.example\.com$", "db042.example.com"),
    (r"\.example\.com$", "cache07.fra1.example.com"),
    ("^(web|db|cache)[0-9]{2,3}", "cache07.fra1.example.com"),
    (r"^[^.]+\.fra\d\.", "cache07.fra1.example.com"),
    (".*", "cache07.fra1.example.com"),
    (".+", "8.10.0"),
    (r"^8\.", "8.10.0"),
    ("^puppet/", "puppet/server"),
    ("(?i)^WEB", "web042.example.com"),
    (r"^\w+-\d{3}$", "runner-042"),
    ("loadbalancer", "role::loadbalancer::external"),
    ("^pe_compiler(?:_legacy)?$", "pe_compiler_legacy"),
    (r"^(?:1[0-9]|2[0-4])\.04$", "22.04"),
];

/// Patterns that make backtrackers run for ever.
const EVIL: &[&str] = &[
    "(a+)+$",
    "^(a+)+$",
    "^(a|a)*$",
    "^(a|aa)+$",
    "^([a-zA-Z]+)*$",
    "(.*a){12}$",
    "^(([a-z])+.)+[A-Z]([a-z])+$",
    "(x+x+)+y",
    "^(?=(a+)+$)",
    "(?!(a|aa)+$)^a+b",
    "^(?:(?!b)a|a(?!b))*$",
    "(?<=a{1,20})(a+)+$",
    "^(?>(a|aa)+)b",
    r"^(a+)+\1$",
    r"^(a|aa)+\1b",
    r"(a*)*\1b",
    "^(?:a?){25}a{25}(?!a)$",
    "(?:a?){1000}(?=b)",
    "(a|b|ab)*(?=c)",
    "(?=(a*)*b)a",
    r"(?:a*a*a*a*)*\Rb",
    "(?<!a{1,50})b",
    r"\X*b",
    "(a*?)*?(?=b)b",
];

/// Patterns that are large or odd to validate.
fn hostile() -> Vec<String> {
    vec![
        "(?:a{1000}){1000}".to_owned(),
        r"\p{L}{500}".to_owned(),
        r"(?iu)[\p{L}&&[^a]]{300}x".to_owned(),
        (0..1300).fold(String::new(), |all, number| all + &format!("w{number:04}|")),
        "(".repeat(300),
        "[".repeat(300),
        r"\p{IsAlphabetic}\p{L}\p{javaLetterOrDigit}".repeat(150),
        "(?iu)[a-z]".repeat(700),
        "a{2147483647}".to_owned(),
        "(a?){0,1000}".repeat(20),
    ]
}

fn main() {
    // `cargo bench` and `cargo test --benches` pass arguments of their own.
    println!("| what | measured |");
    println!("|---|---|");
    let (median, worst) = ratios();
    println!(
        "| match of realistic patterns ÷ `regex` on the translated one, median (worst) | {median:.2} ({worst:.2}) |"
    );
    let (slowest, pattern) = slowest_match();
    println!(
        "| slowest search in 10,000 characters, of {} evil patterns | {} (`{pattern}`) |",
        EVIL.len(),
        ms(slowest)
    );
    let (slowest, length) = slowest_validation();
    println!("| slowest validation of a hostile pattern | {} ({length} bytes) |", ms(slowest));
    println!("| memory of a pattern, evaluated | {:.1} kB |", memory(true));
    println!("| memory of a pattern, never evaluated | {:.1} kB |", memory(false));
}

fn ms(duration: Duration) -> String {
    format!("{:.1} ms", duration.as_secs_f64() * 1000.0)
}

fn time(mut work: impl FnMut()) -> Duration {
    const TIMES: u32 = 20_000;
    let start = Instant::now();
    for _ in 0..TIMES {
        work();
    }
    start.elapsed() / TIMES
}

fn ratios() -> (f64, f64) {
    let mut ratios: Vec<f64> = REALISTIC
        .iter()
        .map(|(pattern, subject)| {
            let ours = Pattern::parse(pattern).unwrap();
            let translated = pattern.replace(r"\d", "[0-9]").replace(r"\w", "[0-9A-Za-z_]");
            let theirs = regex::Regex::new(&translated).unwrap();
            let mut of_runs: Vec<f64> = (0..9)
                .map(|_| {
                    let ours = time(|| {
                        black_box(ours.is_found_in(black_box(subject))).unwrap();
                    });
                    let theirs = time(|| {
                        black_box(theirs.is_match(black_box(subject)));
                    });
                    ours.as_secs_f64() / theirs.as_secs_f64()
                })
                .collect();
            of_runs.sort_by(f64::total_cmp);
            of_runs[of_runs.len() / 2]
        })
        .collect();
    ratios.sort_by(f64::total_cmp);
    (ratios[ratios.len() / 2], *ratios.last().unwrap())
}

fn slowest_match() -> (Duration, &'static str) {
    let subjects = [
        format!("{}!", "a".repeat(9_999)),
        "a".repeat(10_000),
        "ab".repeat(5_000),
        format!("{}\n", "a".repeat(9_999)),
    ];
    let mut slowest = (Duration::ZERO, "");
    for pattern in EVIL {
        let compiled = Pattern::parse(pattern).unwrap();
        black_box(compiled.is_found_in("warm\n").ok());
        for subject in &subjects {
            let start = Instant::now();
            black_box(compiled.is_found_in(subject).ok());
            slowest = slowest.max((start.elapsed(), *pattern));
        }
    }
    slowest
}

fn slowest_validation() -> (Duration, usize) {
    let of = |pattern: &String| {
        let start = Instant::now();
        black_box(Pattern::parse(pattern).is_ok());
        (start.elapsed(), pattern.len())
    };
    hostile().iter().map(of).max().unwrap()
}

/// Returns the resident memory of this process, in kB.
fn resident() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|it| it.parse().ok()).unwrap_or(f64::NAN)
}

fn memory(evaluated: bool) -> f64 {
    const COUNT: usize = 5_000;
    let before = resident();
    let patterns: Vec<Pattern> = (0..COUNT)
        .map(|number| {
            let pattern =
                Pattern::parse(&format!(r"^host{number}-{evaluated}-\d+\.dc[0-9]\.example\.com$"))
                    .unwrap();
            if evaluated {
                black_box(pattern.is_found_in("host1-12.dc1.example.com").unwrap());
            }
            pattern
        })
        .collect();
    let used = resident() - before;
    black_box(&patterns);
    used / COUNT as f64
}
