//! The masks that a daemon has without being told.

/// Where installations of Puppet and Facter are known to have secrets. Facter asks the metadata services of
/// clouds, whose answers have credentials of the machine and the scripts that set it up; other facts are
/// custom ones, and the names of their keys tell.
pub const USUAL: &[&str] = &[
    // metadata of clouds
    "**.*user-data*",
    "**.*user_data*",
    "**.*userdata*",
    "**.*custom-data*",
    "**.*custom_data*",
    "**.*customdata*",
    "**.*startup-script*",
    "**.*startup_script*",
    "**.kube-env",
    "**.security-credentials",
    "**.service-accounts",
    "**.serviceaccounts",
    // what keys are called
    "**.*password*",
    "**.*passwd*",
    "**.*passphrase*",
    "**.*secret*",
    "**.*token*",
    "**.*private_key*",
    "**.*private-key*",
    "**.*privatekey*",
    "**.*access_key*",
    "**.*access-key*",
    "**.*accesskey*",
    "**.*api_key*",
    "**.*api-key*",
    "**.*apikey*",
    "**.*credentials",
    // extensions of certificates: the pre-shared key that signs them
    "**.pp_preshared_key",
    "trusted.extensions.\"1.3.6.1.4.1.34380.1.1.4\"",
];
