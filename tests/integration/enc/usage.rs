//! What `clade enc` says of a command line that it cannot read.

use crate::program::{Done, clade, run};
use crate::table::each_row;

/// Arguments, variables, and how the reason begins.
type Row<'r> = (&'r [&'r str], &'r [(&'r str, &'r str)], &'r str);

#[test]
fn a_wrong_flag_or_variable_is_a_reason_on_both_streams() {
    let rows: [Row<'_>; 7] = [
        (&["n", "--bogus"], &[], "unexpected argument '--bogus' found; "),
        (
            &["n", "--enc-facts", "maybe"],
            &[],
            "invalid value 'maybe' for '--enc-facts <ENC_FACTS>'",
        ),
        (&[], &[], "the following required arguments were not provided: <NODE>; "),
        (&["n"], &[("CLADE_TIMEOUT", "abc")], "invalid value 'abc' for '--timeout <DURATION>'"),
        (&["n"], &[("CLADE_ENC_FACTS", "maybe")], "invalid value 'maybe' for '--enc-facts"),
        (&["n", "--commit-budget", "groups=5"], &[], "`--commit-budget` needs `--repo`: "),
        (
            &["n", "--repo", "."],
            &[("CLADE_SERVER", "http://127.0.0.1:1")],
            "`--repo` and `--server` exclude each other",
        ),
    ];
    each_row(rows, |(arguments, variables, reason)| {
        let mut command = clade(&[&["enc"], arguments].concat());
        let done = command.envs(variables.iter().copied()).output().unwrap();
        let done = Done::from(done);
        assert_eq!((done.status, &done.stdout), (1, &done.stderr));
        assert!(done.stdout.starts_with(&format!("clade enc: {reason}")), "{}", done.stdout);
        assert_eq!(done.stdout.lines().count(), 1, "{}", done.stdout);
        let notes = variables
            .iter()
            .map(|(name, _)| format!("the value is that of the variable `{name}`\n"));
        let is_at_fault = reason.starts_with("invalid value");
        assert!(
            !is_at_fault || notes.clone().all(|it| done.stdout.ends_with(&it)),
            "{}",
            done.stdout
        );
    });
}

#[test]
fn a_wrong_variable_is_named() {
    let asking = |arguments: &[&str]| {
        let mut command = clade(arguments);
        Done::from(command.env("CLADE_TLS_CA", "").output().unwrap())
    };
    let note = "note: the value is that of the variable `CLADE_TLS_CA`\n";
    let done = asking(&["status"]);
    assert!(done.status == 2 && done.stderr.ends_with(note), "{}", done.stderr);
    let own = asking(&["status", "--tls-ca", ""]);
    assert!(own.status == 2 && !own.stderr.contains("variable"), "{}", own.stderr);
}

#[test]
fn help_ends_with_0() {
    for arguments in [&["enc", "--help"][..], &["enc", "-h"], &["help", "enc"]] {
        let done = run(arguments);
        assert_eq!((done.status, done.stderr.as_str()), (0, ""), "{arguments:?}");
        assert!(done.stdout.contains("--commit-budget"), "{}", done.stdout);
    }
}
