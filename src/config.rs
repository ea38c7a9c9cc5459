//! Settings: those of the daemon and of `clade enc`, and what those of Puppet say.

mod address;
mod bounded_file;
mod credentials;
mod duration;
mod file;
mod file_lock;
mod pem;
mod proxy;
mod puppet;
mod secret_mask;
pub mod watched;

pub use address::{has_misplaced_at, without_secrets};
pub use bounded_file::{
    Durability, create_private_file, is_sync_unsupported, read_at_most, read_bounded,
    read_bounded_text, replace_file, replace_with, sync_directory,
};
pub use credentials::{CredentialError, read_authorities, read_secret};
pub use duration::{parse_duration, parse_duration_or_zero};
pub use file::{FileSetting, KnownSetting, Takes, read_settings};
pub use file_lock::FileLock;
pub use pem::{read_certificate, read_certificates, read_private_key, read_revocation_lists};
pub use proxy::{is_this_machine, parse_proxy, proxy_of_environment};
pub use puppet::PuppetSettings;
pub use secret_mask::SecretMask;
