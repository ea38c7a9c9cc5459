//! Puppet's status API.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// The state of a service.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Service {
    /// Its name.
    pub service_name: String,
    /// The version of the daemon.
    pub service_version: String,
    /// The version of this document.
    pub service_status_version: u32,
    /// How much is said; this daemon says as much at each level.
    pub detail_level: DetailLevel,
    /// Whether it runs.
    pub state: ServiceState,
    /// Empty.
    #[schema(value_type = Object)]
    pub status: BTreeMap<String, Value>,
    /// Empty.
    #[schema(value_type = Vec<Object>)]
    pub active_alerts: Vec<Value>,
}

/// How much is said of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum DetailLevel {
    /// Whether it runs.
    Critical,
    /// The default.
    Info,
    /// All.
    Debug,
}

impl DetailLevel {
    /// Returns the level of a word.
    pub(in crate::http) fn of(word: &str) -> Option<Self> {
        Some(match word {
            "critical" => Self::Critical,
            "info" => Self::Info,
            "debug" => Self::Debug,
            _ => return None,
        })
    }
}

/// Whether a service runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ServiceState {
    /// It does.
    Running,
    /// No commit answers.
    Error,
}
