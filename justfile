# Every step of `.ci/run` by name; `just check` before a commit.

check: fmt clippy doc test

# Installs what the tests need, on Debian or Ubuntu; the tests of what is missing say so and pass
setup:
    .ci/setup

fmt:
    cargo fmt --check

clippy:
    cargo clippy --all-targets -- -D warnings

doc:
    RUSTDOCFLAGS="-D warnings" cargo doc --no-deps

test:
    cargo test

# Check, test, page and kind of a new diagnostic about groups: `just new-diagnostic unused-variable`
new-diagnostic NAME:
    tests/scaffold/new-diagnostic {{NAME}}

# What the pages about diagnostics show, from the program itself
update-docs:
    UPDATE_DOCS=1 cargo test --test integration diagnostics readme

# Licences, sources and bans of everything that is depended on
deny:
    cargo deny check bans licenses sources

# What the controller must reach: docs/controller-load.md
bench-controller:
    cargo bench --bench controller

# Differences and conflicts over a fleet: docs/reference/fleet.md
bench-fleet:
    cargo bench --bench fleet

bench-regex:
    cargo bench --bench regex

# The table of docs/performance.md
bench:
    cargo bench --bench table
    cargo bench --bench http

# The same five times, while two other processes compute and use memory
bench-under-load:
    for run in 1 2 3 4 5; do \
        cargo bench --bench table -- --background-load=2; \
        cargo bench --bench http -- --background-load=2; \
    done

# Count instructions, exactly, and compare them with benches/instructions/counts.toml: `just instructions update 'why they grew'`
instructions *ARGUMENTS:
    cargo run -q --profile instructions -p clade-instructions -- {{ARGUMENTS}}

# The fault campaign, all of it: docs/reference/faults.md
faults:
    UPDATE_DOCS=1 cargo test --test faults -- --all

# Replay a world of the simulation (tests/simulation): what happened in it, and the promise that was broken
simulate SEED:
    CLADE_SIMULATION_SEED={{SEED}} cargo test --lib simulation -- --nocapture

# Every fuzz target for MINUTES, one after the other
fuzz MINUTES:
    fuzz/run {{MINUTES}}

# Load, commits, writes and kills for MINUTES, with every answer recomputed from its commit
load MINUTES:
    cargo test --release --test faults -- --load {{MINUTES}}

# A month of a site in MINUTES, at least 20; fails when memory, files, disk or times rise, and draws docs/images/soak.svg. With `--long-life`, three quarters of it without a restart, drawn as soak-long-life.svg
soak MINUTES *ARGUMENTS:
    UPDATE_DOCS=1 cargo test --release --test faults -- --soak {{MINUTES}} {{ARGUMENTS}}

# Clade beside scripts, Hiera and Rego on the same estate: `just side-by-side --facts DIR` for real facts, VERSION/*.facts
side-by-side *ARGUMENTS:
    cargo build --release
    cargo build --release --manifest-path benches/side_by_side/rego/Cargo.toml
    PYTHONDONTWRITEBYTECODE=1 benches/side_by_side/run.py --rego benches/side_by_side/rego/target/release/clade-rego {{ARGUMENTS}}
