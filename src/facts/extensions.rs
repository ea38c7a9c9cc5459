//! Puppet's certificate extensions: their short names, and their values as text.
//!
//! The numbers are those that Puppet documents for `csr_attributes.yaml`. Names of one's own come
//! from the file that Puppet's setting `trusted_oid_mapping_file` names.

use std::collections::BTreeMap;

use super::read::{FactsError, parse};
use crate::model::Value;

/// The arcs of Puppet's registered, private and authorisation extensions.
const REGISTERED: &str = "1.3.6.1.4.1.34380.1.1.";
const PRIVATE: &str = "1.3.6.1.4.1.34380.1.2.";
const AUTHORISATION: &str = "1.3.6.1.4.1.34380.1.3.";

/// The registered extensions, from 1 on.
const NAMES: [&str; 26] = [
    "pp_uuid",
    "pp_instance_id",
    "pp_image_name",
    "pp_preshared_key",
    "pp_cost_center",
    "pp_product",
    "pp_project",
    "pp_application",
    "pp_service",
    "pp_employee",
    "pp_created_by",
    "pp_environment",
    "pp_role",
    "pp_software_version",
    "pp_department",
    "pp_cluster",
    "pp_provisioner",
    "pp_region",
    "pp_datacenter",
    "pp_zone",
    "pp_network",
    "pp_securitypolicy",
    "pp_cloudplatform",
    "pp_apptier",
    "pp_hostname",
    "pp_owner",
];

/// The extensions of the authorisation arc that have a name.
const AUTHORISATIONS: [(&str, &str); 4] = [
    ("1", "pp_authorization"),
    ("2", "pp_auth_auto_renew"),
    ("13", "pp_auth_role"),
    ("39", "pp_cli_auth"),
];

/// Returns the name that trusted data have for an extension of Puppet's: the short one, or the
/// number itself for a private one.
pub(super) fn extension_name(oid: &str) -> Option<String> {
    if let Some(number) = oid.strip_prefix(REGISTERED) {
        let index = number.parse::<usize>().ok().and_then(|it| it.checked_sub(1));
        let name = index.and_then(|index| NAMES.get(index));
        return Some(name.map_or_else(|| oid.to_owned(), |it| (*it).to_owned()));
    }
    if let Some(number) = oid.strip_prefix(AUTHORISATION) {
        let named = AUTHORISATIONS.iter().find(|(it, _)| *it == number);
        return Some(named.map_or(oid, |(_, name)| name).to_owned());
    }
    oid.starts_with(PRIVATE).then(|| oid.to_owned())
}

/// Returns the name of an extension as [`ExtensionNames::default`] gives it, for that name or the number; `None` if no
/// certificate has one so named.
pub fn usual_extension_name(text: &str) -> Option<String> {
    let is_short = NAMES.contains(&text) || AUTHORISATIONS.iter().any(|(_, name)| *name == text);
    if is_short { Some(text.to_owned()) } else { extension_name(text) }
}

/// Returns whether an extension is of the authorisation arc, by its usual name: Puppet's authority signs it only if it
/// is configured to.
pub fn is_authorisation(name: &str) -> bool {
    name.starts_with(AUTHORISATION) || AUTHORISATIONS.iter().any(|(_, it)| *it == name)
}

/// The names that an organisation gave to extensions of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExtensionNames(BTreeMap<String, String>);

impl ExtensionNames {
    /// Reads Puppet's mapping file: `oid_mapping`, numbers to `shortname` and `longname`.
    ///
    /// # Errors
    ///
    /// Returns an error if it is not YAML, or has another form.
    pub fn read(bytes: &[u8]) -> Result<Self, FactsError> {
        let document = parse(bytes)?;
        let entries = match document.get("oid_mapping") {
            None | Some(Value::Null) => return Ok(Self::default()),
            Some(Value::Object(entries)) => entries,
            Some(_) => return Err(FactsError::PartNotAnObject("oid_mapping")),
        };
        let name = |entry: &Value| Some(entry.get("shortname")?.as_str()?.to_owned());
        let named = entries.iter().filter_map(|(oid, entry)| Some((oid.clone(), name(entry)?)));
        Ok(Self(named.collect()))
    }

    /// Returns the name that trusted data have for an extension of Puppet's.
    pub fn of(&self, oid: &str) -> Option<String> {
        let usual = extension_name(oid)?;
        Some(self.0.get(oid).cloned().unwrap_or(usual))
    }
}

/// Returns the value of an extension as text: Puppet wraps it in a DER string, old versions do not.
pub(super) fn extension_text(value: &[u8]) -> String {
    String::from_utf8_lossy(string_content(value).unwrap_or(value)).into_owned()
}

/// Returns the content of a DER string, if the bytes are exactly one.
fn string_content(bytes: &[u8]) -> Option<&[u8]> {
    /// `UTF8String`, `PrintableString` and `IA5String`.
    const STRINGS: [u8; 3] = [0x0c, 0x13, 0x16];
    /// Set in the first byte of a length that says in how many bytes the length follows.
    const LONG: u8 = 0x80;
    let [tag, first, rest @ ..] = bytes else { return None };
    if !STRINGS.contains(tag) {
        return None;
    }
    let (length, content) = match first.checked_sub(LONG) {
        None => (usize::from(*first), rest),
        // The length is not said.
        Some(0) => return None,
        Some(count) => {
            let (length, content) = rest.split_at_checked(usize::from(count))?;
            let add = |sum: usize, byte: &u8| Some(sum.checked_mul(256)? + usize::from(*byte));
            (length.iter().try_fold(0, add)?, content)
        }
    };
    (length == content.len()).then_some(content)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::each_row;
    use indoc::indoc;

    #[test]
    fn extensions_have_puppets_names() {
        for (oid, name) in [
            ("1.3.6.1.4.1.34380.1.1.1", Some("pp_uuid")),
            ("1.3.6.1.4.1.34380.1.1.13", Some("pp_role")),
            ("1.3.6.1.4.1.34380.1.1.26", Some("pp_owner")),
            ("1.3.6.1.4.1.34380.1.1.99", Some("1.3.6.1.4.1.34380.1.1.99")),
            ("1.3.6.1.4.1.34380.1.2.1.1", Some("1.3.6.1.4.1.34380.1.2.1.1")),
            ("1.3.6.1.4.1.34380.1.3.1", Some("pp_authorization")),
            ("1.3.6.1.4.1.34380.1.3.13", Some("pp_auth_role")),
            ("1.3.6.1.4.1.34380.1.3.2", Some("pp_auth_auto_renew")),
            ("2.5.29.15", None),
        ] {
            assert_eq!(extension_name(oid).as_deref(), name, "{oid}");
            assert_eq!(usual_extension_name(oid).as_deref(), name, "{oid}");
            assert_eq!(name.and_then(usual_extension_name).as_deref(), name, "{oid}");
            let is_authorisation = name.is_some_and(is_authorisation);
            assert_eq!(is_authorisation, oid.starts_with(AUTHORISATION), "{oid}");
        }
        assert_eq!(usual_extension_name("pp_auth_rol"), None);
    }

    #[test]
    fn extensions_of_ones_own_have_names_of_ones_own() {
        let names = ExtensionNames::read(indoc! {b"
            oid_mapping:
              1.3.6.1.4.1.34380.1.2.1.1:
                shortname: rack
                longname: Rack
              2.5.29.15:
                shortname: usage
        "})
        .unwrap();
        for (oid, name) in [
            ("1.3.6.1.4.1.34380.1.2.1.1", Some("rack")),
            ("1.3.6.1.4.1.34380.1.2.1.2", Some("1.3.6.1.4.1.34380.1.2.1.2")),
            ("1.3.6.1.4.1.34380.1.1.13", Some("pp_role")),
            ("2.5.29.15", None),
        ] {
            assert_eq!(names.of(oid).as_deref(), name, "{oid}");
        }
        assert_eq!(ExtensionNames::read(b"# nothing\n").unwrap(), ExtensionNames::default());
        assert!(ExtensionNames::read(b"oid_mapping: [1]\n").is_err());
        assert!(ExtensionNames::read(b"oid_mapping: [\n").is_err());
    }

    #[test]
    fn values_are_unwrapped() {
        let rows = [
            (b"\x0c\x03web".as_slice(), "web"),
            (b"\x13\x03web", "web"),
            (b"web", "web"),
            (b"\x0c\x09web", "\u{c}\twe\u{62}"),
            (b"", ""),
            (b"\x0c", "\u{c}"),
            (b"\x0c\x80", "\u{c}\u{fffd}"),
            (b"\x0c\x81", "\u{c}\u{fffd}"),
            (b"\x0c\x82\x00", "\u{c}\u{fffd}\0"),
            (b"\x0c\x89\x01\0\0\0\0\0\0\0\0", "\u{c}\u{fffd}\u{1}\0\0\0\0\0\0\0\0"),
        ];
        each_row(rows, |(value, text)| {
            assert_eq!(extension_text(value), text);
        });
    }

    /// From 128 bytes on, DER writes how many bytes the length has, and then the length.
    #[test]
    fn values_of_any_length_are_unwrapped() {
        for length in [0, 1, 127, 128, 129, 130, 131, 255, 256, 257, 65_535, 65_536, 16_777_216] {
            let text = "x".repeat(length);
            let bytes = u32::try_from(length).unwrap().to_be_bytes();
            let significant = bytes.iter().skip_while(|it| **it == 0).copied();
            let mut value = vec![0x0c];
            if length >= 128 {
                value.push(0x80 + u8::try_from(significant.clone().count()).unwrap());
            }
            value.extend(if length == 0 { vec![0] } else { significant.collect() });
            value.extend(text.as_bytes());
            assert!(extension_text(&value) == text, "{length}");
            value.push(b'x');
            assert!(extension_text(&value).starts_with('\u{c}'), "{length}: not all is the string");
        }
    }
}
