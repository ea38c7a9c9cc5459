//! Keywords that are none: a validator takes them for notes and checks nothing.

use serde_json::{Map, Value};

use crate::diagnostic::closest_within;

/// The keywords of all drafts.
const KEYWORDS: &[&str] = &[
    "$schema",
    "$id",
    "id",
    "$ref",
    "$anchor",
    "$dynamicRef",
    "$dynamicAnchor",
    "$recursiveRef",
    "$recursiveAnchor",
    "$vocabulary",
    "$comment",
    "$defs",
    "definitions",
    "type",
    "enum",
    "const",
    "default",
    "title",
    "description",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
    "format",
    "pattern",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "items",
    "prefixItems",
    "additionalItems",
    "unevaluatedItems",
    "contains",
    "minContains",
    "maxContains",
    "minItems",
    "maxItems",
    "uniqueItems",
    "properties",
    "patternProperties",
    "additionalProperties",
    "unevaluatedProperties",
    "propertyNames",
    "required",
    "minProperties",
    "maxProperties",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
];

/// Words of other programs and of people that are like a keyword.
const OTHERS: &[&str] = &["comment", "cost", "example", "href", "note", "when"];

/// The keyword of Clade.
const MESSAGE: &str = "x-clade-message";

/// What begins the keywords of Clade.
const OURS: &str = "x-clade-";

/// How many letters a keyword has at least that is compared with others.
const SHORTEST: usize = 3;

/// A key of a schema that is not a keyword, but was most likely meant as one.
pub(super) struct MisspeltKeyword<'v> {
    pub(super) key: &'v str,
    /// The keyword that was meant; none if it only begins as one of Clade.
    pub(super) meant: Option<&'static str>,
}

impl MisspeltKeyword<'_> {
    /// Says what is wrong.
    pub(super) fn message(&self) -> String {
        format!("`{}` is not a keyword of schemas, so nothing is checked by it", self.key)
    }

    /// Says what helps.
    pub(super) fn help(&self) -> String {
        match self.meant {
            Some(MESSAGE) => format!("did you mean `{MESSAGE}`?"),
            Some(meant) => {
                format!("did you mean `{meant}`? a word of your own begins with `x-`")
            }
            None => format!("the keyword of Clade is `{MESSAGE}`"),
        }
    }
}

/// Returns the keys of a schema that were most likely meant as keywords.
pub(super) fn misspelt(schema: &Map<String, Value>) -> impl Iterator<Item = MisspeltKeyword<'_>> {
    schema.keys().filter_map(|key| {
        if key.starts_with("x-") {
            let meant = closest_within(key, 2, std::iter::once(MESSAGE));
            let is_ours = key.starts_with(OURS) || meant.is_some();
            return (is_ours && key != MESSAGE).then_some(MisspeltKeyword { key, meant });
        }
        let letters = key.chars().count();
        if letters < SHORTEST || [KEYWORDS, OTHERS].iter().any(|it| it.contains(&key.as_str())) {
            return None;
        }
        // Of a short word one wrong letter is much.
        let most = if letters > 5 { 2 } else { 1 };
        let meant = closest_within(key, most, KEYWORDS.iter().copied())?;
        Some(MisspeltKeyword { key, meant: Some(meant) })
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn keywords_are_told_from_words_of_others() {
        for (key, meant) in [
            ("properites", Some("properties")),
            ("requred", Some("required")),
            ("typ", Some("type")),
            ("Required", Some("required")),
            ("minlength", Some("minLength")),
            ("additionalPropertys", Some("additionalProperties")),
            ("ref", Some("$ref")),
            ("x-clade-mesage", Some("x-clade-message")),
            ("x-clad-message", Some("x-clade-message")),
            ("x-clade-owner", None),
        ] {
            let schema = json!({key: {}});
            let found = misspelt(schema.as_object().unwrap()).next();
            assert_eq!(found.map(|it| it.meant), Some(meant), "{key}");
        }
        for key in [
            "$comment",
            "title",
            "examples",
            "x-clade-message",
            "x-owner",
            "x-type",
            "unit",
            "owner",
            "order",
            "name",
            "ui",
            "label",
            "tags",
            "example",
            "nullable",
            "markdownDescription",
            "errorMessage",
            "enumNames",
            "note",
            "form",
        ] {
            let schema = json!({key: {}});
            let found = misspelt(schema.as_object().unwrap()).next();
            assert!(found.is_none(), "{key}");
        }
    }
}
