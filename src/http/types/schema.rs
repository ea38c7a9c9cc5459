//! The schemas of names, ids and values: what `model` parses, as OpenAPI says it.

use indexmap::IndexMap;
use serde_json::{Map, Value};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{
    AdditionalProperties, ArrayBuilder, ArrayItems, ObjectBuilder, Schema, SchemaFormat,
    SchemaType, Type,
};
use utoipa::{PartialSchema, ToSchema};

use crate::model::{ClassName, CommitId, Condition, EnvironmentName, GroupId, GroupName};

fn text() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String)
}

impl PartialSchema for CommitId {
    fn schema() -> RefOr<Schema> {
        text().description(Some("The full id of a commit")).pattern(Some("^[0-9a-f]{40}$")).into()
    }
}

impl PartialSchema for GroupId {
    fn schema() -> RefOr<Schema> {
        text().format(Some(SchemaFormat::Custom("uuid".to_owned()))).into()
    }
}

impl ToSchema for CommitId {}
impl ToSchema for GroupId {}

/// Names whose grammar Puppet's documentation has.
macro_rules! names {
    ($($name:ident: $description:literal),*) => {$(
        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                text().description(Some($description)).into()
            }
        }
        impl ToSchema for $name {}
    )*};
}

names! {
    GroupName: "The name of a group, unique within its environment",
    EnvironmentName: "The name of an environment, or `agent-specified`",
    ClassName: "The name of a Puppet class, such as `profile::base`"
}

/// Class -> parameter -> value.
pub type Values = IndexMap<String, Map<String, Value>>;

/// The schema of [`Values`].
pub(super) struct ClassValues;

impl PartialSchema for ClassValues {
    fn schema() -> RefOr<Schema> {
        let parameters = ObjectBuilder::new().schema_type(Type::Object);
        let classes = ObjectBuilder::new().schema_type(Type::Object);
        let classes =
            classes.additional_properties(Some(AdditionalProperties::RefOr(parameters.into())));
        classes.description(Some("Class, parameter, value")).into()
    }
}

impl ToSchema for ClassValues {}

impl PartialSchema for Condition {
    fn schema() -> RefOr<Schema> {
        let array = ArrayBuilder::new().items(ArrayItems::RefOrSchema(Box::new(anything())));
        let text = "`[operator, path, value]`, or `and`, `or`, `not` with conditions";
        array.min_items(Some(2)).description(Some(text)).into()
    }
}

impl ToSchema for Condition {}

/// The schema of any value.
fn anything() -> RefOr<Schema> {
    ObjectBuilder::new().schema_type(SchemaType::AnyValue).into()
}
