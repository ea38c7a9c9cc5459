//! Copying objects between repositories of this machine, under limits.

use std::collections::HashSet;
use std::io::Write as _;

use git2::{ObjectType, Odb, Oid};

use super::commit_links::CommitLinks;
use super::failure::{FetchError, FetchFailure};
use super::object_guard::header;
use super::options::ObjectLimits;
use super::transport::{Attempt, STRUCTURE};

/// Blobs above this size are copied one by one; those below are compared with each other, several
/// at a time.
const LARGE: u64 = 1 << 20;

/// A repository that objects are copied from.
pub(super) struct ObjectSource<'r> {
    pub(super) repository: &'r git2::Repository,
    pub(super) limits: ObjectLimits,
}

/// What is to be copied.
#[derive(Default)]
struct Closure {
    seen: HashSet<Oid>,
    objects: Vec<Oid>,
    large: Vec<Oid>,
}

impl ObjectSource<'_> {
    /// Copies what some objects lead to and another repository does not have.
    ///
    /// # Errors
    ///
    /// Returns an error if an object cannot be read or written, or is over the limits.
    pub(super) fn copy(
        &self,
        attempt: &Attempt,
        other: &git2::Repository,
        tips: &[Oid],
    ) -> Result<(), FetchError> {
        let fail = |error: git2::Error| attempt.explain(&error);
        let (from, to) = (self.repository.odb().map_err(fail)?, other.odb().map_err(fail)?);
        let mut closure = Closure::default();
        for tip in tips {
            self.collect(attempt, &from, &to, *tip, &mut closure)?;
        }
        // No blob leads to anything, so one without its commit does no harm.
        for id in &closure.large {
            attempt.remaining()?;
            let object = from.read(*id).map_err(fail)?;
            to.write(object.kind(), object.data()).map_err(fail)?;
        }
        if closure.objects.is_empty() {
            return Ok(());
        }
        let mut builder = self.repository.packbuilder().map_err(fail)?;
        // One core stays for those who ask.
        builder.set_threads(1);
        builder.set_progress_callback(|_, _, _| attempt.remaining().is_ok()).map_err(fail)?;
        for id in &closure.objects {
            builder.insert_object(*id, None).map_err(fail)?;
        }
        let mut writer = to.packwriter().map_err(fail)?;
        let mut problem = None;
        let built = builder.foreach(|bytes| {
            let taken = attempt.count(bytes.len()).and_then(|()| {
                // libgit2 says more than its wrapper.
                let say = |_| attempt.explain(&git2::Error::last_error(-1));
                writer.write_all(bytes).map_err(say)
            });
            problem = taken.and_then(|()| attempt.remaining()).err();
            problem.is_none()
        });
        if let Some(problem) = problem {
            return Err(problem);
        }
        if let Err(error) = built {
            attempt.remaining()?;
            return Err(fail(error));
        }
        writer.commit().map(drop).map_err(fail)
    }

    /// Collects what an object leads to. What the other repository has, it has with everything below.
    fn collect(
        &self,
        attempt: &Attempt,
        from: &Odb<'_>,
        to: &Odb<'_>,
        tip: Oid,
        closure: &mut Closure,
    ) -> Result<(), FetchError> {
        let fail = |error: git2::Error| attempt.explain(&error);
        let limits = self.limits;
        let over = |detail: String| attempt.error(FetchFailure::LimitExceeded, detail);
        let mut waiting = vec![tip];
        while let Some(id) = waiting.pop() {
            if closure.seen.contains(&id) || to.exists(id) {
                continue;
            }
            if closure.seen.len().is_multiple_of(256) {
                attempt.remaining()?;
            }
            closure.seen.insert(id);
            let (size, kind) = header(from, id).map_err(fail)?;
            let size = size as u64;
            let most =
                if kind == ObjectType::Blob { limits.bytes } else { STRUCTURE.min(limits.bytes) };
            if size > most {
                return Err(over(format!(
                    "it has an object of {size} bytes, and {most} are taken ({id})"
                )));
            }
            let count = closure.objects.len() + closure.large.len();
            if count as u64 >= limits.count {
                return Err(over(format!("it has more than {} new objects", limits.count)));
            }
            if kind == ObjectType::Blob && size > LARGE {
                closure.large.push(id);
                continue;
            }
            closure.objects.push(id);
            match kind {
                ObjectType::Commit => {
                    let links = CommitLinks::find(self.repository, from, id).map_err(fail)?;
                    waiting.extend(links.parents);
                    waiting.push(links.tree);
                }
                ObjectType::Tree => {
                    let tree = self.repository.find_tree(id).map_err(fail)?;
                    let inside = tree.iter().filter(|it| it.kind() != Some(ObjectType::Commit));
                    waiting.extend(inside.map(|it| it.id()));
                }
                ObjectType::Tag => {
                    waiting.push(self.repository.find_tag(id).map_err(fail)?.target_id());
                }
                _ => {}
            }
        }
        Ok(())
    }
}
