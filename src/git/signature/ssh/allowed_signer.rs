//! A line of OpenSSH's file of allowed signers: who may sign, for what, when, with which key.
//!
//! ssh-keygen defines what a line means (ALLOWED SIGNERS in `ssh-keygen(1)`). A line that it refuses is
//! a fault here too: another reading would allow a key for what it is not meant for.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use russh::keys::PublicKey;

use super::super::signed::Sightings;
use super::pattern_list::PatternList;

/// What git signs with.
pub(super) const NAMESPACE: &str = "git";

const BLANKS: [char; 2] = [' ', '\t'];

#[derive(Debug)]
pub(super) struct AllowedSigner {
    pub(super) principals: String,
    pub(super) key: PublicKey,
    options: SignerOptions,
}

impl AllowedSigner {
    pub(super) fn parse(line: &str) -> Result<Self, String> {
        let (principals, rest) = split_principals(line)?;
        let rest = rest.trim_start_matches(BLANKS);
        let (options, rest) = if is_key_type(rest) { ("", rest) } else { split_options(rest)? };
        let options = SignerOptions::parse(options)?;
        let mut words = rest.split(BLANKS).filter(|it| !it.is_empty());
        let kind = words.next().filter(|it| is_key_type(it)).ok_or("there is no key")?;
        let blob = words.next().ok_or("the key is missing after its type")?;
        let key = PublicKey::from_openssh(&format!("{kind} {blob}"))
            .map_err(|error| format!("the key cannot be read: {error}"))?;
        Ok(Self { principals: principals.to_owned(), key, options })
    }

    /// Returns why the key may not have signed a commit that was made and seen at these times.
    ///
    /// A committer chooses the time that a commit names, so the key must be valid then and at one of the times when the
    /// commit was here.
    pub(super) fn refuses<'s>(
        &self,
        made: Timestamp,
        seen: &dyn Fn() -> Sightings<'s>,
    ) -> Option<&'static str> {
        // As git does: each element of the list is tried as the name of the signer.
        let list = PatternList::new(&self.principals);
        let mut names = self.principals.split(',').filter(|it| !it.is_empty());
        if !names.any(|name| list.matches(name)) {
            return Some("its principals match no name");
        }
        self.options.refuses(made, seen)
    }
}

/// What a line says beside its principals and its key.
#[derive(Debug, Default)]
struct SignerOptions {
    namespaces: Option<String>,
    valid_after: Option<Timestamp>,
    valid_before: Option<Timestamp>,
}

impl SignerOptions {
    /// Reads options between commas.
    fn parse(text: &str) -> Result<Self, String> {
        let mut options = Self::default();
        let mut rest = text;
        while !rest.is_empty() {
            let (name, after) = rest.split_at(rest.find(['=', ',']).unwrap_or(rest.len()));
            let name = name.to_ascii_lowercase();
            // To ignore another option would allow a key for what it is not meant for.
            if !matches!(name.as_str(), "namespaces" | "valid-after" | "valid-before") {
                return Err(format!("the option `{name}` is not supported"));
            }
            let quoted = after.strip_prefix("=\"").and_then(unquote);
            let (value, after) =
                quoted.ok_or_else(|| format!("the value of `{name}` is not in quotes"))?;
            options.set(&name, value)?;
            rest = match after.strip_prefix(',') {
                Some("") => return Err("there is no option after the last comma".to_owned()),
                Some(next) => next,
                None if after.is_empty() => after,
                None => return Err(format!("text follows the quotes of `{name}`")),
            };
        }
        match (options.valid_after, options.valid_before) {
            (Some(after), Some(before)) if before <= after => {
                Err("`valid-before` is not after `valid-after`".to_owned())
            }
            _ => Ok(options),
        }
    }

    fn set(&mut self, name: &str, value: String) -> Result<(), String> {
        let is_set = match name {
            "namespaces" => self.namespaces.replace(value).is_some(),
            "valid-after" => self.valid_after.replace(time(&value, ValidityEnd::From)?).is_some(),
            _ => self.valid_before.replace(time(&value, ValidityEnd::Until)?).is_some(),
        };
        if is_set { Err(format!("the option `{name}` is there twice")) } else { Ok(()) }
    }

    fn refuses<'s>(
        &self,
        made: Timestamp,
        seen: &dyn Fn() -> Sightings<'s>,
    ) -> Option<&'static str> {
        let is_for_git = |list: &String| PatternList::new(list).matches(NAMESPACE);
        if !self.namespaces.as_ref().is_none_or(is_for_git) {
            return Some("it is not allowed for git");
        }
        if self.valid_after.is_none() && self.valid_before.is_none() {
            return None;
        }
        let too_early = |time| self.valid_after.is_some_and(|from| time < from);
        let too_late = |time| self.valid_before.is_some_and(|until| time > until);
        if too_early(made) {
            return Some("it was not valid yet when the commit was made");
        }
        if too_late(made) {
            return Some("it was not valid any more when the commit was made");
        }
        seen().fault(|time| {
            if too_early(time) {
                Some("it was not valid yet when the commit was first seen here")
            } else if too_late(time) {
                Some("it was not valid any more when the commit was first seen here")
            } else {
                None
            }
        })
    }
}

fn is_key_type(text: &str) -> bool {
    ["ssh-", "ecdsa-", "sk-ssh-", "sk-ecdsa-"].iter().any(|start| text.starts_with(start))
}

/// Splits off the principals, which may be in quotes as a whole.
fn split_principals(line: &str) -> Result<(&str, &str), String> {
    let broken = || "the quotes of the principals are broken".to_owned();
    let (principals, rest) = match line.strip_prefix('"') {
        Some(quoted) => quoted.split_once('"').ok_or_else(broken)?,
        None => line.split_at(line.find(BLANKS).unwrap_or(line.len())),
    };
    if principals.contains('"') || !(rest.is_empty() || rest.starts_with(BLANKS)) {
        return Err(broken());
    }
    if principals.is_empty() {
        Err("there are no principals".to_owned())
    } else {
        Ok((principals, rest))
    }
}

/// Splits off what comes before the first blank that is not within quotes.
fn split_options(text: &str) -> Result<(&str, &str), String> {
    let (mut quoted, mut escaped) = (false, false);
    let end = text.char_indices().find(|(_, char)| {
        quoted ^= *char == '"' && !escaped;
        escaped = *char == '\\';
        BLANKS.contains(char) && !quoted
    });
    if end.is_none() && quoted {
        return Err("a quote of the options is not closed".to_owned());
    }
    Ok(text.split_at(end.map_or(text.len(), |(index, _)| index)))
}

/// Reads a text up to its closing quote, and returns what follows. A backslash stands for itself unless
/// a quote follows it.
fn unquote(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut rest = text;
    loop {
        let (before, after) = rest.split_once('"')?;
        rest = after;
        match before.strip_suffix('\\') {
            Some(before) => value.extend([before, "\""]),
            None => {
                value.push_str(before);
                return Some((value, rest));
            }
        }
    }
}

/// Which end of the time in which a key is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ValidityEnd {
    From,
    Until,
}

/// Reads `YYYYMMDD[HHMM[SS]][Z]`; without `Z` it is the time of this machine. Where clocks are put back it is twice,
/// and where they are put forward never: then the key is valid for the shorter time.
fn time(text: &str, end: ValidityEnd) -> Result<Timestamp, String> {
    time_in(text, end, TimeZone::system())
}

fn time_in(text: &str, end: ValidityEnd, here: TimeZone) -> Result<Timestamp, String> {
    let wrong = || format!("`{text}` is not a time such as 20261003 or 202610030210Z");
    let upper = text.to_ascii_uppercase();
    let (digits, zone) = match upper.strip_suffix('Z').or_else(|| upper.strip_suffix("UTC")) {
        Some(digits) => (digits, TimeZone::UTC),
        None => (upper.as_str(), here),
    };
    let padded = match digits.len() {
        _ if !digits.bytes().all(|it| it.is_ascii_digit()) => return Err(wrong()),
        8 => format!("{digits}000000"),
        12 => format!("{digits}00"),
        14 => digits.to_owned(),
        _ => return Err(wrong()),
    };
    let civil = DateTime::strptime("%Y%m%d%H%M%S", &padded).map_err(|_| wrong())?;
    // The last days of 9999, which some write for ever, are beyond what a timestamp holds.
    let ambiguous = zone.to_ambiguous_zoned(civil);
    let zoned = match end {
        ValidityEnd::From => ambiguous.later(),
        ValidityEnd::Until => ambiguous.earlier(),
    };
    let time = zoned.map_or(Timestamp::MAX, |it| it.timestamp());
    if time > Timestamp::UNIX_EPOCH { Ok(time) } else { Err(wrong()) }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "ssh-keygen reads files")]
mod tests {
    use super::*;

    fn sightings(earlier: &[Timestamp], now: Timestamp) -> Sightings<'_> {
        Sightings::new(earlier.iter().copied(), now)
    }

    const KEY: &str =
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJdD7y3aLq454yWBdwLWbieU1ebz9/cu7/QEXn9OIeZJ";

    #[test]
    fn lines_of_allowed_signers_are_read() {
        for (line, principals, refused) in [
            (format!("ada@example.com {KEY} a comment"), "ada@example.com", None),
            (format!("\"ada@example.com,bob\" {KEY}"), "ada@example.com,bob", None),
            (format!("* namespaces=\"git,file\" {KEY}"), "*", None),
            (format!("* namespaces=\"file\" {KEY}"), "*", Some("it is not allowed for git")),
            (
                format!("* valid-before=\"20200101Z\",namespaces=\"git\" {KEY}"),
                "*",
                Some("it was not valid any more when the commit was made"),
            ),
            (
                format!("* valid-after=\"203001010000Z\" {KEY}"),
                "*",
                Some("it was not valid yet when the commit was made"),
            ),
        ] {
            let entry =
                AllowedSigner::parse(&line).unwrap_or_else(|fault| panic!("{line}: {fault}"));
            assert_eq!(entry.principals, principals, "{line}");
            let time = "2026-01-01T00:00:00Z".parse().unwrap();
            assert_eq!(entry.refuses(time, &|| sightings(&[], time)), refused, "{line}");
        }
    }

    #[test]
    fn a_time_that_is_twice_or_never_makes_a_key_valid_for_the_shorter_time() {
        let read = |text, end| {
            let here = TimeZone::get("Europe/Berlin").unwrap();
            time_in(text, end, here).unwrap().to_string()
        };
        for (text, from, until) in [
            ("20261025023000", "2026-10-25T01:30:00Z", "2026-10-25T00:30:00Z"),
            ("20260329023000", "2026-03-29T01:30:00Z", "2026-03-29T00:30:00Z"),
            ("202610250330", "2026-10-25T02:30:00Z", "2026-10-25T02:30:00Z"),
            ("20261025023000Z", "2026-10-25T02:30:00Z", "2026-10-25T02:30:00Z"),
        ] {
            let both = (read(text, ValidityEnd::From), read(text, ValidityEnd::Until));
            assert_eq!(both, (from.to_owned(), until.to_owned()), "{text}");
        }
    }

    #[test]
    fn a_time_that_the_committer_chose_makes_no_key_valid() {
        let line = format!("* valid-after=\"20250101Z\",valid-before=\"20260101Z\" {KEY}");
        let entry = AllowedSigner::parse(&line).unwrap();
        let at = |date: &str| format!("{date}T00:00:00Z").parse::<Timestamp>().unwrap();
        for (made, seen, refused) in [
            ("2025-05-01", "2025-05-02", None),
            (
                "2025-05-01",
                "2026-05-01",
                Some("it was not valid any more when the commit was first seen here"),
            ),
            (
                "2025-05-01",
                "2024-05-01",
                Some("it was not valid yet when the commit was first seen here"),
            ),
            (
                "2026-05-01",
                "2025-05-01",
                Some("it was not valid any more when the commit was made"),
            ),
        ] {
            let (earlier, now) = ([at(seen)], at(seen));
            let found = entry.refuses(at(made), &|| sightings(&earlier, now));
            assert_eq!(found, refused, "{made} {seen}");
        }
    }

    #[test]
    fn a_key_must_be_valid_at_one_of_the_times_when_the_commit_was_here() {
        let early = Some("it was not valid yet when the commit was first seen here");
        let late = Some("it was not valid any more when the commit was first seen here");
        let (start, end) = ("valid-after=\"20250101Z\"", "valid-before=\"20260101Z\"");
        let both = &format!("{start},{end}");
        for (options, seen, now, refused) in [
            // It has ended since, the clock was ahead, the commit is a late one, the key lasts.
            (end, "2025-06-01", "2027-06-01", None),
            (end, "2027-06-01", "2025-06-01", None),
            (end, "2026-06-01", "2027-06-01", late),
            (end, "2025-06-01", "2025-07-01", None),
            // It has begun since, the clock is behind, the key has not begun, and is valid.
            (start, "2024-06-01", "2025-06-01", None),
            (start, "2025-06-01", "2024-06-01", None),
            (start, "2024-06-01", "2024-07-01", early),
            (start, "2025-06-01", "2025-07-01", None),
            // A clock that was behind makes no time at which the key was valid, nor does one that was ahead.
            (both, "2024-06-01", "2026-06-01", early),
            (both, "2026-06-01", "2024-06-01", late),
            (both, "2024-06-01", "2025-06-01", None),
            (both, "2026-06-01", "2025-06-01", None),
        ] {
            let entry = AllowedSigner::parse(&format!("* {options} {KEY}")).unwrap();
            let at = |date: &str| format!("{date}T00:00:00Z").parse::<Timestamp>().unwrap();
            let (made, earlier) = (at("2025-05-01"), [at(seen)]);
            let found = entry.refuses(made, &|| sightings(&earlier, at(now)));
            assert_eq!(found, refused, "{options} {seen} {now}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_line_is_too_odd_to_be_judged(line in "([ -~é]{0,12}[ ,=]){0,8}") {
            // Text that is not a key is a fault, and never an allowed key.
            proptest::prop_assert!(AllowedSigner::parse(&line).is_err());
        }
    }

    #[test]
    fn lines_that_cannot_be_read_are_faults() {
        for (line, fault) in [
            ("ada", "there is no key"),
            ("ada ssh-ed25519", "the key is missing after its type"),
            ("ada cert-authority ssh-ed25519 AAAA", "the option `cert-authority` is not supported"),
            (
                "ada valid-after=\"tomorrow\" ssh-ed25519 AAAA",
                "`tomorrow` is not a time such as 20261003 or 202610030210Z",
            ),
        ] {
            assert_eq!(AllowedSigner::parse(line).unwrap_err(), fault, "{line}");
        }
        assert!(
            AllowedSigner::parse("ada ssh-ed25519 AAAA").unwrap_err().starts_with("the key cannot")
        );
    }

    /// What a line with an option or a list does to a key that it names. `KEY` stands for the key.
    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Verdict {
        Allowed,
        Refused,
        /// ssh-keygen allows it: the line can be misread, or its date is not in the calendar.
        RefusedHereOnly,
    }
    use Verdict::{Allowed, Refused, RefusedHereOnly};

    const LINES: &[(&str, Verdict)] = &[
        ("ada@x KEY", Allowed),
        ("ada@x namespaces=\"!git,*\" KEY", Refused),
        ("ada@x namespaces=\"*,!git\" KEY", Refused),
        ("ada@x namespaces=\"!g*,git\" KEY", Refused),
        ("ada@x namespaces=\"!file,*\" KEY", Allowed),
        ("ada@x namespaces=\"!file\" KEY", Refused),
        ("ada@x namespaces=\"g*\" KEY", Allowed),
        ("ada@x namespaces=\"gi?\" KEY", Allowed),
        ("ada@x namespaces=\"git, file\" KEY", Allowed),
        ("ada@x namespaces=\" git\" KEY", Refused),
        ("ada@x namespaces=\"GIT\" KEY", Refused),
        ("ada@x namespaces=\"\" KEY", Refused),
        ("ada@x NameSpaces=\"git\" KEY", Allowed),
        ("ada@x namespaces=\"file\",namespaces=\"git\" KEY", Refused),
        ("ada@x namespaces=\"git\",NAMESPACES=\"git\" KEY", Refused),
        ("ada@x namespaces=git KEY", Refused),
        ("ada@x namespaces KEY", Refused),
        ("ada@x namespaces=\"git\"x KEY", Refused),
        ("ada@x namespaces=\"\"git\"\" KEY", Refused),
        ("ada@x namespaces=\"git KEY", Refused),
        ("ada@x namespaces=\"git\\\"\" KEY", Refused),
        ("ada@x namespaces=\"a\\\",git\" KEY", Allowed),
        ("ada@x namespaces=\"a\\\\,git\" KEY", Allowed),
        ("ada@x namespaces=\"git\" valid-after=\"20200101\" KEY", Refused),
        ("ada@x namespaces=\"git\"KEY", Refused),
        ("ada@x namespaces=\"git\", KEY", Refused),
        ("ada@x ,namespaces=\"git\" KEY", RefusedHereOnly),
        ("ada@x namespaces=\"git\",,valid-after=\"20200101\" KEY", RefusedHereOnly),
        ("ada@x valid-after=\"20200101\",valid-after=\"20200102\" KEY", Refused),
        ("ada@x valid-before=\"20400101\",valid-before=\"20400102\" KEY", Refused),
        ("ada@x valid-after=\"20200101\",valid-before=\"20190101\" KEY", Refused),
        ("ada@x valid-after=\"20200101\",valid-before=\"20200101\" KEY", Refused),
        ("ada@x VALID-after=\"20200101Z\",valid-BEFORE=\"20990101z\" KEY", Allowed),
        ("ada@x valid-after=\"202001010203\",valid-before=\"20990101020304utc\" KEY", Allowed),
        ("ada@x valid-before=\"99991231Z\" KEY", Allowed),
        ("ada@x valid-before=\"20990230\" KEY", RefusedHereOnly),
        ("ada@x valid-before=\"20991301\" KEY", Refused),
        ("ada@x valid-before=\"\" KEY", Refused),
        ("ada@x valid-after=\"19700101Z\" KEY", Refused),
        ("ada@x valid-after=\"19690101Z\" KEY", Refused),
        ("ada@x valid-after=\"-2020101\" KEY", Refused),
        ("ada@x valid-after=\"2020 1 1\" KEY", RefusedHereOnly),
        ("ada@x valid-after=20200101 KEY", Refused),
        ("ada@x verify-required KEY", Refused),
        ("ada@x no-touch-required KEY", Refused),
        ("ada@x cert-authority KEY", Refused),
        ("ada@x CERT-Authority,namespaces=\"git\" KEY", Refused),
        ("ada@x unknown=\"x\" KEY", Refused),
        ("\"ada@x,bob@x\" KEY", Allowed),
        ("ada@x,bob@x KEY", Allowed),
        ("* KEY", Allowed),
        ("!bob@x,*@x KEY", Allowed),
        ("!ada@x KEY", Refused),
        ("ada@x,!ada@x KEY", Refused),
        ("ada@x,!*@x KEY", Refused),
        ("\"\" KEY", Refused),
        ("ada@x\"y KEY", Refused),
        ("\"ada@x\"y KEY", Refused),
        ("\"ada@x\"KEY", RefusedHereOnly),
        ("\"ada@x KEY", Refused),
        ("ada@x\t namespaces=\"git\" \tKEY\tcomment here", Allowed),
        ("ada@x\u{a0}KEY", Refused),
        ("ada@x ssh-ed25519", Refused),
    ];

    #[test]
    fn options_and_lists_mean_what_they_mean_to_openssh() {
        let now = Timestamp::from_second(1_790_000_000).unwrap();
        for (line, verdict) in LINES {
            let line = line.replace("KEY", KEY);
            let allowed =
                AllowedSigner::parse(&line).map(|it| it.refuses(now, &|| sightings(&[], now)));
            assert_eq!(allowed == Ok(None), *verdict == Allowed, "{line}: {allowed:?}");
        }
    }

    fn ssh_keygen(directory: &std::path::Path, arguments: &[&str]) -> Option<String> {
        let mut command = std::process::Command::new("ssh-keygen");
        let done = command.args(arguments).current_dir(directory);
        let done =
            done.stdin(std::fs::File::open(directory.join("data")).unwrap()).output().unwrap();
        done.status.success().then(|| String::from_utf8(done.stdout).unwrap())
    }

    /// Checks the table itself, as git checks a commit: it asks for the names of the key, and then
    /// for each name whether it may sign.
    #[test]
    fn ssh_keygen_comes_to_the_same_verdicts() {
        if std::process::Command::new("ssh-keygen").arg("-?").output().is_err() {
            eprintln!("skipped: needs ssh-keygen");
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        std::fs::write(path.join("data"), "data").unwrap();
        ssh_keygen(path, &["-q", "-t", "ed25519", "-N", "", "-f", "key"]).unwrap();
        ssh_keygen(path, &["-Y", "sign", "-q", "-f", "key", "-n", "git", "data"]).unwrap();
        let public = std::fs::read_to_string(path.join("key.pub")).unwrap();
        let (key, _) = public.rsplit_once(' ').unwrap();
        for (line, verdict) in LINES {
            std::fs::write(path.join("allowed"), line.replace("KEY", key) + "\n").unwrap();
            let names =
                ssh_keygen(path, &["-Y", "find-principals", "-f", "allowed", "-s", "data.sig"]);
            let names = names.unwrap_or_default();
            let is_allowed = names.lines().any(|name| {
                let how = ["-Y", "verify", "-f", "allowed", "-n", "git", "-s", "data.sig", "-I"];
                ssh_keygen(path, &[&how[..], &[name]].concat()).is_some()
            });
            assert_eq!(is_allowed, *verdict != Refused, "{line}");
        }
    }
}
