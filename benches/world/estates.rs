//! Estates as files of a group repository.

use std::fmt::Write as _;

use fastrand::Rng;

use super::Scale;
use super::nodes::certname;

/// A file: path and text.
pub type File = (String, String);

/// Makes the files of an estate, one group a file.
///
/// 15 % of the groups are environment groups, 37 % ask for equality, 24 % search the certname, 9 %
/// compare numbers and 15 % pin nodes; three in ten stand directly below the root, six deep at the
/// most.
pub fn files(scale: Scale, seed: u64) -> Vec<File> {
    let mut rng = Rng::with_seed(seed);
    let mut depths: Vec<u8> = Vec::new();
    (1..scale.groups)
        .map(|number| {
            let parent = (rng.f64() > 0.3 && !depths.is_empty())
                .then(|| rng.usize(..depths.len()))
                .filter(|it| depths[*it] < 6);
            depths.push(parent.map_or(1, |it| depths[it] + 1));
            (path(number), group(number, parent.map(|it| it + 1), scale, &mut rng))
        })
        .collect()
}

/// Makes the files of the same estate with facts in one value of ten.
pub fn files_with_facts(scale: Scale, seed: u64) -> Vec<File> {
    const VALUES: [&str; 4] = [
        "${trusted[certname]}",
        "on $kernel ${os[release][major]}",
        "$role in $datacenter",
        r"\$6\$salt\$a.b/c",
    ];
    let mut values = 0;
    let mut with_facts = |line: &str| {
        let is_value = ["    parameter_", "  variable_"].iter().any(|it| line.starts_with(it));
        values += usize::from(is_value);
        match line.split_once(": ") {
            Some((key, _)) if is_value && values % 10 == 0 => {
                format!("{key}: '{}'\n", VALUES[values / 10 % VALUES.len()])
            }
            _ => format!("{line}\n"),
        }
    };
    let mut files = files(scale, seed);
    for (_, text) in &mut files {
        *text = text.lines().map(&mut with_facts).collect();
    }
    files.push(("clade.yaml".to_owned(), "interpolate: true\n".to_owned()));
    files
}

/// Returns the path of a group's file.
pub fn path(number: usize) -> String {
    format!("groups/{:02}/group-{number}.yaml", number % 64)
}

fn group(number: usize, parent: Option<usize>, scale: Scale, rng: &mut Rng) -> String {
    let mut text = format!("name: Group {number}\n");
    if let Some(parent) = parent {
        let _ = writeln!(text, "parent: Group {parent}");
    }
    let kind = rng.f64();
    let rule = match kind {
        _ if kind < 0.15 => {
            let environment = rng.usize(..scale.environments);
            let _ = writeln!(text, "environment: env_{environment}\nenvironment_trumps: true");
            Some(format!(
                r#"["=", ["trusted", "extensions", "pp_environment"], "env_{environment}"]"#
            ))
        }
        _ if kind < 0.52 => Some(equality(scale, rng)),
        _ if kind < 0.76 => Some(search(scale, rng)),
        _ if kind < 0.85 => Some(number_rule(scale, rng)),
        _ => {
            text.push_str("pinned:\n");
            for _ in 0..200_f64.powf(rng.f64()) as usize {
                let _ = writeln!(text, "  - {}", certname(rng.usize(..scale.nodes), scale));
            }
            None
        }
    };
    if let Some(rule) = rule {
        let _ = writeln!(text, "rule: {rule}");
    }
    values(number, &mut text, rng);
    text
}

fn equality(scale: Scale, rng: &mut Rng) -> String {
    let role = format!(r#"["=", ["fact", "role"], "role-{}"]"#, rng.usize(..scale.roles));
    let cluster =
        format!(r#"["=", ["fact", "cluster", "name"], "cluster{}"]"#, rng.usize(..scale.clusters));
    let datacenter =
        format!(r#"["=", ["fact", "datacenter"], "dc{}"]"#, rng.usize(..scale.datacenters));
    let family = rng.choice(["RedHat", "Debian", "windows"]).unwrap_or_default();
    let family = format!(r#"["=", ["fact", "os", "family"], "{family}"]"#);
    match rng.u8(..6) {
        0 => role,
        1 => format!(r#"["and", {role}, {datacenter}]"#),
        2 => format!(r#"["and", {cluster}, ["not", {family}]]"#),
        3 => format!(
            r#"["or", {role}, ["=", ["fact", "role"], "role-{}"]]"#,
            rng.usize(..scale.roles)
        ),
        4 => format!(r#"["and", {family}, ["or", {cluster}, {role}]]"#),
        _ => cluster,
    }
}

fn search(scale: Scale, rng: &mut Rng) -> String {
    let (role, dc) = (rng.usize(..scale.roles), rng.usize(..scale.datacenters));
    let node = rng.usize(..scale.nodes);
    let pattern = match rng.u8(..100) {
        0..50 => format!(r"^role-{role}-\\d+\\.dc{dc}\\."),
        50..65 => format!(r"-{node}\\.dc{dc}\\.example\\.com$"),
        65..80 => format!("role-{role}-"),
        80..98 => format!(r"^role-({role}|{})-", rng.usize(..scale.roles)),
        _ => format!("^(?!role-{role}-).*-{node}"),
    };
    let path = if rng.bool() { r#""name""# } else { r#"["trusted", "certname"]"# };
    format!(r#"["~", {path}, "{pattern}"]"#)
}

fn number_rule(scale: Scale, rng: &mut Rng) -> String {
    let number = match rng.u8(..3) {
        0 => format!(
            r#"[">=", ["fact", "processors", "count"], "{}"]"#,
            rng.choice([4, 8, 16, 32, 64]).unwrap_or(4)
        ),
        1 => format!(
            r#"["<", ["fact", "memory", "system", "total_bytes"], "{}"]"#,
            rng.u64(1..64) << 30
        ),
        _ => {
            format!(r#"[">", ["fact", "os", "release", "major"], "{}"]"#, rng.u8(7..12))
        }
    };
    // People join numbers with something that says which nodes they mean.
    let role = rng.usize(..scale.roles);
    format!(r#"["and", ["=", ["fact", "role"], "role-{role}"], {number}]"#)
}

/// Classes of a group's own, so that leaves do not differ.
fn values(number: usize, text: &mut String, rng: &mut Rng) {
    text.push_str("classes:\n");
    for class in 0..rng.usize(1..4) {
        let _ = writeln!(text, "  profile::group_{number}::class_{class}:");
        for parameter in 0..rng.usize(0..4) {
            let _ = match rng.u8(..4) {
                0 => writeln!(text, "    parameter_{parameter}: {}", rng.u16(..)),
                1 => writeln!(text, "    parameter_{parameter}: true"),
                2 => writeln!(text, "    parameter_{parameter}: [\"a\", \"b{number}\"]"),
                _ => writeln!(text, "    parameter_{parameter}: \"value {number}\""),
            };
        }
    }
    if number.is_multiple_of(3) {
        let _ = writeln!(text, "variables:\n  variable_{number}: \"of {number}\"");
    }
    if number.is_multiple_of(11) {
        let _ = writeln!(text, "config_data:\n  module_{number}:\n    key: {number}");
    }
}

/// Makes the files of an estate whose rules have nothing to index: siblings of one shape.
pub fn defiant(shape: &str, groups: usize) -> Vec<File> {
    (1..groups)
        .map(|number| {
            let rule = match shape {
                "patterns without a literal" => {
                    format!(r#"["~", "name", "^[a-z]{{1,{number}}}\\d[0-9]{{{number}}}$"]"#)
                }
                "negations" => {
                    format!(r#"["not", ["=", ["fact", "role"], "no-role-{number}"]]"#)
                }
                "numbers" => {
                    format!(r#"[">=", ["fact", "uptime_seconds"], "{}"]"#, number * 1_000_000)
                }
                _ => format!(
                    r#"["and", ["=", ["fact", "kernel"], "Linux"], ["<", ["fact", "uptime_seconds"], "{number}"]]"#
                ),
            };
            (path(number), format!("name: Group {number}\nrule: {rule}\nclasses:\n  c{number}:\n"))
        })
        .collect()
}
