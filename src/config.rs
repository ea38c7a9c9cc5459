//! Settings of the daemon.

mod file;

pub use file::{ServeFile, SettingsError};
