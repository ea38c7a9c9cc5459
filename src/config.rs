//! Settings: those of the daemon and of `clade enc`, and what those of Puppet say.

mod credentials;
mod duration;
mod file;
mod puppet;
pub mod watched;

pub use credentials::{CredentialError, read_authorities, read_secret};
pub use duration::{parse_duration, parse_duration_or_zero};
pub use file::{FileSetting, KnownSetting, Takes, read_settings};
pub use puppet::PuppetSettings;
