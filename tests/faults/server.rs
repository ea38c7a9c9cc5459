//! Files of rights and certificates that change, slow clients, signals and logs.

mod certificates;
mod clients;
mod logs;
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
        promise: "a truncated or expired list leaves the former one in use, and a metric shows it",
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
        name: "server::revoked-during-handshake",
        promise: "a certificate that is revoked during a handshake gets no answer",
        injection: "twenty clients send their certificate and a request after a new list was loaded that revokes it",
        speed: Speed::Fast,
        run: reloads::revoked_during_handshake,
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
        promise: "a failed reload keeps the former content, shows in metrics, and is retried until it succeeds",
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
    Fault {
        name: "server::unread-log",
        promise: "a log that is not read delays no answer; dropped lines are counted",
        injection: "stderr is a pipe that is not read, with 3,000 requests logged",
        speed: Speed::Fast,
        run: logs::unread,
    },
    Fault {
        name: "server::log-level",
        promise: "SIGHUP reads the log filter again",
        injection: "`log: debug` in the settings file and SIGHUP",
        speed: Speed::Fast,
        run: logs::level,
    },
    Fault {
        name: "server::half-sent-bodies",
        promise: "any number of half-sent requests delays no other client",
        injection: "4,200 half-sent POSTs, of which one in ten trickles, at 4,096 connections",
        speed: Speed::Slow,
        run: clients::half_sent_bodies,
    },
    Fault {
        name: "server::slow-body",
        promise: "a slow body gets 408 with the JSON error, and the connection closes",
        injection: "a body of one byte a tenth of a second, with `--client-timeout 500ms`",
        speed: Speed::Fast,
        run: clients::slow_body,
    },
    Fault {
        name: "server::slow-reader",
        promise: "a client that does not read its answer loses its connection",
        injection: "pipelined requests for large answers that are never read",
        speed: Speed::Slow,
        run: clients::slow_reader,
    },
    Fault {
        name: "server::idle-connections",
        promise: "idle connections, unfinished heads and handshakes end after `--client-timeout`",
        injection: "connections that send nothing, half a head, or nothing after an answer",
        speed: Speed::Fast,
        run: clients::idle_connections,
    },
    Fault {
        name: "server::full-table",
        promise: "a full table of connections still admits new clients; the admin address has a limit of its own",
        injection: "300 connections that trickle heads, at `--max-connections 32`",
        speed: Speed::Fast,
        run: clients::full_table,
    },
    Fault {
        name: "server::held-bytes",
        promise: "bytes of half-read bodies have one bound for all",
        injection: "40 clients send 8 MB of a body each and stop, with 1 GiB of address space",
        speed: Speed::Slow,
        run: clients::held_bytes,
    },
    Fault {
        name: "server::bodies-that-expand",
        promise: "a body whose values take much more memory than its bytes gets 413, and nothing of it is kept",
        injection: "2 to 8 MB of short values to every route that takes JSON, with 1 GiB of address space",
        speed: Speed::Fast,
        run: clients::bodies_that_expand,
    },
    Fault {
        name: "server::heavy-requests",
        promise: "probes and small requests are answered while heavy ones are computed",
        injection: "eight explanations and translations at once, of as many values as a body may have",
        speed: Speed::Fast,
        run: clients::heavy_requests,
    },
];
