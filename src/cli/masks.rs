//! Which facts a command does not show.

use clap::Args;

use crate::masking::{MaskSetting, Masks};

/// Which facts and trusted data are not shown.
#[derive(Clone, Debug, Args)]
pub(super) struct MaskArgs {
    /// A path of facts or trusted data whose values are not shown, such as `app.dsn` or `**.*pin*`; repeatable, added to the built-in list of `clade serve`, or `none` to turn that list off. A daemon masks by its own settings
    #[arg(long, value_name = "PATH", value_delimiter = ',')]
    mask: Vec<MaskSetting>,
}

impl MaskArgs {
    /// Returns the masks.
    pub(super) fn masks(&self) -> Masks {
        Masks::of_settings(&self.mask)
    }
}
