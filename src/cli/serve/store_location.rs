//! Where the store is, as a setting.

use std::ffi::OsStr;

use clap::builder::TypedValueParser;
use clap::error::ErrorKind;
use clap::{Arg, Command, Error};

use crate::store::{InvalidStoreLocation, StoreLocation};

/// Reads the location of a store. A URL with a mistake may hold a password, so the error does not repeat it,
/// as those of other settings do.
#[derive(Clone, Copy, Debug)]
pub(super) struct StoreLocationParser;

impl TypedValueParser for StoreLocationParser {
    type Value = StoreLocation;

    fn parse_ref(
        &self,
        command: &Command,
        _: Option<&Arg>,
        value: &OsStr,
    ) -> Result<StoreLocation, Error> {
        let location = value.to_str().ok_or(InvalidStoreLocation::Form).and_then(str::parse);
        location.map_err(|error| {
            let message = format!("invalid value for '--store <LOCATION>': {error}\n");
            Error::raw(ErrorKind::ValueValidation, message).with_cmd(command)
        })
    }
}
