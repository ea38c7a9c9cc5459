//! What settings demand of each other, by the definitions of the command line alone.
//!
//! clap checks `requires` and `conflicts_with` on flags and variables, and does not say which flag
//! demands a missing one. So the relations of each setting are tried alone.

use std::collections::BTreeSet;
use std::ffi::OsString;

use clap::builder::Resettable;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command, Id};

/// A setting that has a value, with the place of the value.
#[derive(Clone, Debug)]
pub(in crate::cli) struct Present {
    id: Id,
    flag: String,
    place: String,
}

/// Returns a command that takes its settings in any combination.
pub(in crate::cli) fn without_relations(command: Command) -> Command {
    command.mut_args(unrelated)
}

fn unrelated(arg: Arg) -> Arg {
    arg.requires(Resettable::<Id>::Reset).conflicts_with(Resettable::<Id>::Reset)
}

/// Returns the settings of the command line and the environment. `in_file` returns the place of a
/// setting that neither of them has.
pub(in crate::cli) fn present(
    command: &Command,
    given: &ArgMatches,
    in_file: &dyn Fn(&str) -> Option<String>,
) -> Vec<Present> {
    let settings = command.get_arguments().filter_map(|arg| {
        let (id, name) = (arg.get_id(), arg.get_long()?);
        let known = given.try_contains_id(id.as_str()).unwrap_or(false);
        let place = match given.value_source(id.as_str()).filter(|_| known) {
            Some(ValueSource::CommandLine) => "on the command line".to_owned(),
            Some(ValueSource::EnvVariable) => {
                format!("in the variable `{}`", arg.get_env()?.to_string_lossy())
            }
            _ => format!("at {}", in_file(name)?),
        };
        Some(Present { id: id.clone(), flag: format!("--{name}"), place })
    });
    settings.collect()
}

/// Returns what the settings that are present demand of each other and do not get.
pub(in crate::cli) fn faults(
    command: &Command,
    name: &str,
    arguments: &[OsString],
    present: &[Present],
) -> Vec<String> {
    let (mut faults, mut pairs) = (Vec::new(), BTreeSet::new());
    for setting in present {
        // A missing one demands others in its turn.
        let is_other = |id: &Id| *id != setting.id && present.iter().any(|it| it.id == *id);
        let only = |arg: Arg| if is_other(arg.get_id()) { unrelated(arg) } else { arg };
        let probe = command.clone().mut_subcommand(name, |it| it.mut_args(only));
        let Err(error) = probe.try_get_matches_from(arguments) else { continue };
        let fault = match error.kind() {
            ErrorKind::MissingRequiredArgument => missing(setting, &error),
            ErrorKind::ArgumentConflict => conflict(present, &error, &mut pairs),
            _ => None,
        };
        faults.extend(fault);
    }
    faults
}

fn missing(setting: &Present, error: &clap::Error) -> Option<String> {
    let flags = flags(error, ContextKind::InvalidArg);
    let (last, others) = flags.split_last()?;
    let (rest, all) = match others {
        [] => ("it", format!("`{last}`")),
        _ => ("them", format!("`{}` and `{last}`", others.join("`, `"))),
    };
    let Present { flag, place, .. } = setting;
    Some(format!("`{flag}` is set without {all}: set {rest} too, or remove `{flag}` {place}"))
}

/// Describes a conflict of two settings, once for each pair.
fn conflict(
    present: &[Present],
    error: &clap::Error,
    pairs: &mut BTreeSet<[String; 2]>,
) -> Option<String> {
    let mut both = flags(error, ContextKind::InvalidArg);
    both.extend(flags(error, ContextKind::PriorArg));
    let [one, other] = both.try_into().ok()?;
    let place = |flag: &String| present.iter().find(|it| it.flag == *flag);
    let (first, second) = (place(&one)?, place(&other)?);
    let mut pair = [one, other];
    pair.sort();
    pairs.insert(pair).then(|| {
        let said = |it: &Present| format!("`{}` {}", it.flag, it.place);
        format!(
            "`{}` and `{}` exclude each other: remove {}, or {}",
            first.flag,
            second.flag,
            said(first),
            said(second)
        )
    })
}

/// Returns the flags that an error is about, without their values.
fn flags(error: &clap::Error, kind: ContextKind) -> Vec<String> {
    let texts = match error.get(kind) {
        Some(ContextValue::String(text)) => std::slice::from_ref(text),
        Some(ContextValue::Strings(texts)) => texts,
        _ => &[],
    };
    texts.iter().map(|it| it.split([' ', '=']).next().unwrap_or_default().to_owned()).collect()
}
