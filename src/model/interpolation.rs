//! Whether facts are put into values.

/// Whether facts are put into the strings of class parameters and variables, as `interpolate` in
/// `clade.yaml` says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Interpolation {
    /// Values are passed through as they are written.
    #[default]
    Off,
    /// Nodes get values with their facts in them.
    On,
}
