//! Styles, scripts and the icon: part of the program, under names that change with their content.

use sha2::{Digest as _, Sha256};

use super::base_path::BasePath;
use super::page::compressed;
use crate::model::hex;

/// The file of styles.
const STYLE: (&str, &str, &str) = ("console", "css", include_str!("assets/console.css"));

/// The script: what pages cannot do alone.
const SCRIPT: (&str, &str, &str) = ("console", "js", include_str!("assets/console.js"));

/// The icon of the pages.
const ICON: (&str, &str, &str) = ("icon", "svg", include_str!("assets/icon.svg"));

/// The files.
#[derive(Debug)]
pub(super) struct Assets {
    pub(super) style: Asset,
    pub(super) script: Asset,
    pub(super) icon: Asset,
}

/// A file with the name that its content gives it.
#[derive(Debug)]
pub(super) struct Asset {
    /// Its name below `/assets/`.
    name: String,
    /// Its address.
    pub(super) address: String,
    pub(super) kind: &'static str,
    pub(super) content: &'static str,
    pub(super) compressed: Vec<u8>,
}

impl Assets {
    pub(super) fn new(base: &BasePath) -> Self {
        let [style, script, icon] = [
            (STYLE, "text/css; charset=utf-8"),
            (SCRIPT, "text/javascript; charset=utf-8"),
            (ICON, "image/svg+xml"),
        ]
        .map(|((stem, extension, content), kind)| {
            let digest = Sha256::digest(content);
            let digest = hex(digest.get(..6).unwrap_or_default());
            let name = format!("{stem}.{digest}.{extension}");
            let address = format!("{}/assets/{name}", base.as_str());
            Asset { name, address, kind, content, compressed: compressed(content.as_bytes()) }
        });
        Self { style, script, icon }
    }

    pub(super) fn find(&self, name: &str) -> Option<&Asset> {
        [&self.style, &self.script, &self.icon].into_iter().find(|it| it.name == name)
    }
}
