//! `clade translate`

use std::fmt::Write as _;

use anyhow::{Result, anyhow};
use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use super::Exit;
use super::output::{DataFormat, Output};
use crate::diagnostic::visible;
use crate::rule::{self, QueryFormat, RuleFault, to_console, to_whole_query};

/// Print a rule in the array form, the console's notation, and as PuppetDB queries
#[derive(Debug, Args)]
pub(super) struct TranslateCommand {
    /// The rule, in either notation
    #[arg(value_name = "RULE")]
    rule: String,
    /// The output format
    #[arg(long, value_enum, default_value = "human")]
    format: TranslateFormat,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum TranslateFormat {
    /// A line each
    Human,
    /// One JSON object
    Json,
}

impl TranslateCommand {
    pub(super) fn run(self, output: &mut Output) -> Result<Exit> {
        let text = self.rule.trim();
        let value = if text.starts_with('[') {
            serde_json::from_str(text)
                .map_err(|error| anyhow!("the rule is not valid JSON: {error}"))?
        } else {
            Value::from(text)
        };
        let condition = match rule::read(&value) {
            Ok(condition) => condition,
            Err(faults) => {
                for fault in &faults {
                    output.note(&format!("error: {}", describe(text, fault)));
                }
                return Ok(Exit::Findings);
            }
        };
        let query = |format| to_whole_query(&condition, format).map_err(|it| it.to_string());
        let console = to_console(&condition).map(Value::from).map_err(|error| error.to_string());
        let (nodes, inventory) = (query(QueryFormat::Nodes), query(QueryFormat::Inventory));
        let text = match self.format {
            TranslateFormat::Json => DataFormat::Json.write(&json!({
                "rule": rule::to_value(&condition),
                "console": console.ok(),
                "nodes": nodes.ok(),
                "inventory": inventory.ok(),
            })),
            TranslateFormat::Human => {
                let mut text = String::new();
                let mut line = |name: &str, value: &str| {
                    let _infallible = writeln!(text, "{name:<10} {}", visible(value));
                };
                let show = |written: Result<Value, String>| match written {
                    Ok(Value::String(text)) => text,
                    Ok(query) => query.to_string(),
                    Err(reason) => format!("none: {reason}"),
                };
                line("array", &rule::to_value(&condition).to_string());
                line("console", &show(console));
                line("nodes", &show(nodes));
                line("inventory", &show(inventory));
                text
            }
        };
        output.data(&text)?;
        Ok(Exit::Fine)
    }
}

fn describe(text: &str, fault: &RuleFault) -> String {
    let at = match &fault.characters {
        Some(characters) if fault.element.is_empty() => {
            let piece: String =
                text.chars().skip(characters.start).take(characters.len()).collect();
            let piece = if piece.is_empty() { "the end".to_owned() } else { format!("`{piece}`") };
            format!(" (at character {}, {piece})", characters.start + 1)
        }
        _ => String::new(),
    };
    let help = fault.help.as_ref().map_or(String::new(), |help| format!("; {help}"));
    format!("{}{at}{help}", fault.message)
}
