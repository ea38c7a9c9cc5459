//! The last good answer of a node, for when no daemon answers.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::cache::Cache;

/// How far a clock may be set back, such as by NTP, while the ages of answers stay known.
const CLOCK_STEP: SignedDuration = SignedDuration::from_mins(1);

/// Where the last good answer of a node is kept.
pub(super) struct LastGood {
    answers: Cache,
    name: String,
}

/// An answer that was good when it was given.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Kept {
    answered_at: Timestamp,
    commit: Option<String>,
    pub(super) document: String,
    #[serde(skip)]
    age: Duration,
}

impl LastGood {
    pub(super) fn new(cache: &Path, node: &str) -> Self {
        Self { answers: Cache::new(&cache.join("answers")), name: format!("{node}.json") }
    }

    /// Keeps an answer.
    pub(super) fn keep(&self, document: &str, commit: Option<String>) -> Result<()> {
        let kept = Kept {
            answered_at: Timestamp::now(),
            commit,
            document: document.to_owned(),
            age: Duration::ZERO,
        };
        let text = serde_json::to_string(&kept)?;
        let path = self.answers.path().join(&self.name);
        self.answers
            .replace(&self.name, &text)
            .with_context(|| format!("cannot keep this answer in `{}`", path.display()))
    }

    /// Returns the stored answer, if it is at most `max_stale` old, and its age is known.
    pub(super) fn take(&self, max_stale: Duration) -> Result<Kept> {
        if max_stale.is_zero() {
            bail!("`--max-stale 0` allows no last good answer");
        }
        let path = self.answers.path().join(&self.name);
        let unreadable = |error: &dyn std::fmt::Display| {
            anyhow!("the last good answer in `{}` cannot be read: {error}", path.display())
        };
        let bytes = self.answers.read(&self.name).map_err(|error| match error.is_absent() {
            true => anyhow!("there is no last good answer"),
            false => unreadable(&error),
        })?;
        let mut kept: Kept = serde_json::from_slice(&bytes).map_err(|error| unreadable(&error))?;
        let age = Timestamp::now().duration_since(kept.answered_at);
        if age < -CLOCK_STEP {
            // It may be of any age, and would be used for ever.
            bail!(
                "the last good answer is of a time to come: the clock was set back, so its age is not known"
            );
        }
        kept.age = age.max(SignedDuration::ZERO).unsigned_abs();
        if kept.age > max_stale {
            let (age, most) = (rounded(kept.age), rounded(max_stale));
            bail!("the last good answer is {age} old, and `--max-stale` allows {most}");
        }
        Ok(kept)
    }
}

impl Kept {
    /// Says what it is that stands in.
    pub(super) fn described(&self) -> String {
        let commit = self.commit.as_deref().unwrap_or("an unknown commit");
        format!("using the last good answer: {} old, from {commit}", rounded(self.age))
    }
}

/// Writes a duration for people: its largest unit.
fn rounded(duration: Duration) -> String {
    match duration.as_secs() {
        seconds @ 0..120 => format!("{seconds}s"),
        seconds @ 120..7200 => format!("{}m", seconds / 60),
        seconds => format!("{}h", seconds / 3600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_kept_for_its_owner_and_for_a_time() {
        let directory = tempfile::tempdir().unwrap();
        let kept = LastGood::new(&directory.path().join("new"), "web1");
        let file = directory.path().join("new/answers/web1.json");
        let day = Duration::from_hours(24);
        assert_eq!(kept.take(day).unwrap_err().to_string(), "there is no last good answer");
        kept.keep("{}\n", Some("abc".to_owned())).unwrap();
        let taken = kept.take(day).unwrap();
        assert_eq!(taken.document, "{}\n");
        assert!(taken.described().ends_with("s old, from abc"), "{}", taken.described());
        assert_eq!(
            kept.take(Duration::ZERO).unwrap_err().to_string(),
            "`--max-stale 0` allows no last good answer"
        );
        let mode = std::os::unix::fs::PermissionsExt::mode(
            &std::fs::metadata(&file).unwrap().permissions(),
        );
        assert_eq!(mode & 0o777, 0o600);
        let old = std::fs::read_to_string(&file).unwrap();
        let (_, rest) = old.split_once("\",").unwrap();
        std::fs::write(&file, format!("{{\"answered_at\":\"2020-01-01T00:00:00Z\",{rest}"))
            .unwrap();
        let error = kept.take(day).unwrap_err().to_string();
        assert!(error.ends_with("h old, and `--max-stale` allows 24h"), "{error}");
        let minutes = |it: i64| Timestamp::now() + SignedDuration::from_mins(it);
        for (ahead, is_usable) in [(0, true), (2, false), (60, false), (-23 * 60, true)] {
            let time = minutes(ahead);
            std::fs::write(&file, format!("{{\"answered_at\":\"{time}\",{rest}")).unwrap();
            assert_eq!(kept.take(day).is_ok(), is_usable, "{ahead}");
        }
        std::fs::write(&file, "{\"answered").unwrap();
        let error = kept.take(day).unwrap_err().to_string();
        assert!(error.contains("cannot be read"), "{error}");
        let files = std::fs::read_dir(directory.path().join("new/answers")).unwrap().count();
        assert_eq!(files, 1, "nothing else is left");
    }

    #[test]
    fn durations_are_rounded() {
        for (seconds, text) in [(5, "5s"), (119, "119s"), (600, "10m"), (86_400, "24h")] {
            assert_eq!(rounded(Duration::from_secs(seconds)), text);
        }
    }
}
