//! Files of rights and certificates that change, slow clients, signals and logs.

mod certificates;
mod reloads;

use crate::{Fault, Speed};

pub(crate) const FAULTS: &[Fault] = &[
    Fault {
        name: "server::crl-empty-at-start",
        promise: "an empty list of revoked certificates is an error at the start",
        injection: "`--tls-client-crl` names an empty file",
        speed: Speed::Fast,
        run: reloads::crl_empty_at_start,
    },
    Fault {
        name: "server::crl-truncated",
        promise: "a truncated or expired list leaves the known one in use, which a metric shows",
        injection: "the list is emptied, cut in half and replaced by an expired one while the daemon runs",
        speed: Speed::Slow,
        run: reloads::crl_truncated,
    },
    Fault {
        name: "server::revoked-on-open-connection",
        promise: "a certificate that is revoked loses its open connections; others keep theirs",
        injection: "a new list replaces the old one while two clients keep connections open",
        speed: Speed::Fast,
        run: reloads::revoked_on_open_connection,
    },
    Fault {
        name: "server::half-written-tokens",
        promise: "an entry whose `groups` is not written yet grants nothing",
        injection: "the file of tokens is rewritten in place, one half now, the other half later",
        speed: Speed::Slow,
        run: reloads::half_written_tokens,
    },
    Fault {
        name: "server::failed-reload",
        promise: "a failed reload keeps what is known, shows in metrics, and is retried until it succeeds",
        injection: "the file of tokens is replaced by a malformed one, removed, and repaired",
        speed: Speed::Slow,
        run: reloads::failed_reload,
    },
    Fault {
        name: "server::sighup",
        promise: "SIGHUP reloads and drops no connection",
        injection: "SIGHUP with a connection open, after the file of tokens was rewritten in place",
        speed: Speed::Fast,
        run: reloads::sighup,
    },
];
