//! Settings of the daemon.

mod file;

pub use file::{Known, Setting, SettingsError, Takes, read_settings};
