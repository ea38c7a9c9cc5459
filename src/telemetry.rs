//! Placeholder text of the module `telemetry` until its first commit.
