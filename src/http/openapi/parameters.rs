//! Parameters of queries and headers, in sets that handlers name.
//!
//! Handlers read them by [`crate::http::query::Parameters`]: its errors say what is wrong in the words of Puppet
//! Enterprise, which a derived reader does not.

use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, Schema, SchemaFormat, Type};
use utoipa::openapi::{Ref, RefOr, Required};
use utoipa::{IntoParams, ToSchema as _};

use crate::model::CommitId;

/// Declares sets of parameters.
macro_rules! parameters {
    ($($(#[$doc:meta])* $set:ident { $($place:ident $name:literal $schema:expr => $said:literal;)* })*) => {$(
        $(#[$doc])*
        pub(in crate::http) enum $set {}

        impl IntoParams for $set {
            fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
                vec![$(parameter(ParameterIn::$place, $name, $schema, $said)),*]
            }
        }
    )*};
}

parameters! {
    /// Which snapshot answers.
    SnapshotParameters {
        Query "commit" text() => "A revision: the snapshot of that commit answers. A full id that is not here yet is a 503 `commit-not-here-yet`";
        Query "at" time() => "A time: the snapshot that answered here then";
        Header "X-Clade-Commit" commit() => "The full id of a commit, as an earlier answer named it: it answers, or 503 `commit-not-here-yet`";
    }
    /// Which values are blamed.
    BlamedKey {
        Query "key" text() => "A class, parameter, variable or group, or `environment`; without it, all values";
    }
    /// A part of a list.
    Page {
        Query "limit" count() => "How many at most";
        Query "offset" count() => "How many to leave out first";
    }
    /// Which nodes are listed.
    NodeConditions {
        Query "q" text() => "A part of the certname, in any case";
        Query "group" text() => "The id or the name of a group that the node is in";
        Query "class" text() => "A class that the node gets";
        Query "environment" text() => "The environment that the node gets";
        Query "commit" text() => "A revision: the commit that answered the node last";
        Query "state" one_of(&["classified", "conflict", "error"]) => "What came of the last classification";
        Query "silent_for" text() => "How long the node was not seen, such as `2h`";
    }
    /// From when on nodes and changes are counted.
    CountedTimes {
        Query "silent_for" text() => "How long a silent node was not seen: `2h` by default";
        Query "moved_within" text() => "How far back changes are counted: `7d` by default";
    }
    /// Which groups are listed with their nodes.
    MatchedTime {
        Query "matched_within" text() => "Also the groups that no node has any more, but had so long ago at most: `90d`";
    }
    /// One group.
    OneGroup {
        Query "group" text() => "The id of the group";
    }
    /// A page of nodes.
    NodePageParameters {
        Query "sort" text() => "`certname` (the default), `last-seen`, `since`, `state` or `environment`; with `-` before it in the other direction. Nodes that are equal in it stand by name";
        Query "limit" count() => "How many at most: 100 by default, never more than 1,000";
        Query "offset" count() => "How many to leave out first";
        Query "after" text() => "The `next` of the page before, in place of `offset`: so no node that stays where it is is missed because others come, go or move; one that moves to before the place is";
    }
    /// A rule to search nodes by.
    RuleParameter {
        Query "rule" text() => "The rule, in either notation";
    }
    /// A page of the nodes that a rule matches.
    SearchPage {
        Query "limit" count() => "How many at most: 100 by default, never more than 10,000";
        Query "offset" count() => "How many to leave out first";
        Query "search" count() => "How many nodes to search at most, the first by name; default: all";
    }
    /// A page of the history of a node.
    HistoryPage {
        Query "limit" count() => "How many changes at most: 100 by default, never more than 1,000";
        Query "before" time() => "Only changes before this time: that of the last change of the page before";
    }
    /// Groups with what they inherit.
    Inherited {
        Query "inherited" switch() => "With what the ancestors give";
    }
    /// How much of a tree is shown.
    Depth {
        Query "depth" count() => "How many levels; default: all";
    }
    /// Which query is wanted.
    Format {
        Query "format" one_of(&["nodes", "inventory"]) => "Of the PuppetDB query";
    }
    /// How much is said of a service.
    Level {
        Query "level" one_of(&["critical", "info", "debug"]) => "How much to say";
    }
    /// One environment.
    OneEnvironment {
        Query "environment" text() => "The one environment that is meant; without it, all that are known";
    }
    /// Nodes with their facts.
    FactsSwitch {
        Query "facts" switch() => "With facts and trusted data";
    }
    /// Nodes that are pinned or unpinned.
    Nodes {
        Query "nodes" text() => "Certnames, with commas between, or several times; and `{\"nodes\": […]}` as the body";
    }
}

/// Declares a part of a path that is one of some words.
pub(in crate::http) fn path_word(name: &str, words: &[&'static str], said: &str) -> Parameter {
    let mut declared = parameter(ParameterIn::Path, name, one_of(words), said);
    declared.required = Required::True;
    declared
}

fn parameter(place: ParameterIn, name: &str, schema: RefOr<Schema>, said: &str) -> Parameter {
    ParameterBuilder::new()
        .name(name)
        .parameter_in(place)
        .required(Required::False)
        .description(Some(said))
        .schema(Some(schema))
        .build()
}

fn of(kind: Type) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(kind)
}

pub(super) fn text() -> RefOr<Schema> {
    of(Type::String).into()
}

fn time() -> RefOr<Schema> {
    of(Type::String).format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime))).into()
}

fn switch() -> RefOr<Schema> {
    of(Type::Boolean).into()
}

/// The schema of a count.
pub(super) fn count() -> RefOr<Schema> {
    of(Type::Integer).minimum(Some(0)).into()
}

fn one_of(words: &[&'static str]) -> RefOr<Schema> {
    of(Type::String).enum_values(Some(words.iter().copied())).into()
}

fn commit() -> RefOr<Schema> {
    Ref::from_schema_name(CommitId::name()).into()
}
