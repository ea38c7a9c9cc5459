//! How often each group was edited and when last, and when class catalogues were, as the commits of a
//! branch tell.
//!
//! A group is its id, whatever file it stands in. It is edited by a commit after which its document
//! reads otherwise than before: comments, quotes, order and the file do not count. That a commit removes it
//! is an edit, and so is that it comes back, whatever it says then; one whose file cannot be read for a while is as it was.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::hierarchy::group_to_value;
use crate::model::GroupId;
use crate::validation::{GroupFile, ParentName};

/// What is known of the edits of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edit {
    /// How many commits made or edited it; none where its first ones are not known.
    pub serial: Option<u64>,
    /// When the last of them was made, by its committer's clock.
    pub time: Option<Timestamp>,
}

/// The edits of all groups and of the class catalogues, up to a commit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct History {
    groups: BTreeMap<GroupId, KnownEdit>,
    catalogues: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct KnownEdit {
    digest: Digest,
    edit: Edit,
}

/// What a document says, in short; equal for documents that read the same.
type Digest = [u64; 2];

/// The digest of a document that is gone.
const GONE: Digest = [0, 0];

/// A document as far as edits of its group are told by it; nothing if it cannot be read.
#[derive(Clone, Copy, Debug)]
pub struct Digested(Option<(GroupId, Digest)>);

impl Digested {
    /// Returns that of a document.
    pub fn of(document: &GroupFile) -> Self {
        Self(document.id().zip(digest(document)))
    }

    /// Returns the group; none where the document cannot be read.
    pub fn group(&self) -> Option<GroupId> {
        self.0.map(|(id, _)| id)
    }
}

impl History {
    /// Returns what is known of the edits of a group.
    pub fn edit(&self, group: GroupId) -> Option<Edit> {
        self.groups.get(&group).map(|it| it.edit)
    }

    /// Returns the groups whose documents are there.
    pub fn present(&self) -> impl Iterator<Item = GroupId> {
        self.groups.iter().filter(|(_, known)| known.digest != GONE).map(|(id, _)| *id)
    }

    /// Returns when the last commit was made that made or edited a class catalogue; none where none
    /// did, or that is not known.
    pub fn last_catalogue(&self) -> Option<Timestamp> {
        self.catalogues
    }

    /// Takes note that a commit made or edited a class catalogue.
    pub fn take_catalogue(&mut self, made: Option<Timestamp>) {
        self.catalogues = made;
    }

    /// Takes a document of the next commit in.
    ///
    /// `made` is when the commit was made; none for one before which nothing is known, so that of
    /// it, the number of edits is unknown.
    pub fn take(&mut self, document: &Digested, made: Option<Timestamp>) {
        let Some((id, digest)) = document.0 else { return };
        match self.groups.get_mut(&id) {
            Some(known) => known.become_of(digest, made),
            None => {
                let edit = Edit { serial: made.map(|_| 1), time: made };
                self.groups.insert(id, KnownEdit { digest, edit });
            }
        }
    }

    /// Takes note that the next commit has no document of a group any more.
    pub fn take_removal(&mut self, group: GroupId, made: Option<Timestamp>) {
        if let Some(known) = self.groups.get_mut(&group) {
            known.become_of(GONE, made);
        }
    }
}

impl KnownEdit {
    fn become_of(&mut self, digest: Digest, made: Option<Timestamp>) {
        if self.digest != digest {
            let serial = self.edit.serial.map(|it| it + 1);
            *self = Self { digest, edit: Edit { serial, time: made } };
        }
    }
}

/// Returns what a document says in short; none if it cannot be read.
fn digest(document: &GroupFile) -> Option<Digest> {
    let mut value = group_to_value(document.group()?);
    // The order of keys says nothing.
    value.sort_all_objects();
    let parent = match &document.parent {
        Some(ParentName::Name(name)) => format!("name {name}"),
        Some(ParentName::Id(id)) => format!("id {id}"),
        None => format!("id {}", GroupId::ROOT),
    };
    let hash = Sha256::new().chain_update(value.to_string()).chain_update(parent).finalize();
    let mut words =
        hash.chunks_exact(8).filter_map(|it| it.try_into().ok().map(u64::from_be_bytes));
    Some([words.next()?, words.next()?])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validation::{FileKind, SourceContent, SourceFile, read_file};

    const ID: &str = "aaaaaaaa-0000-4000-8000-000000000001";

    fn take(history: &mut History, text: &str, made: Option<i64>) {
        let content = SourceContent::Bytes(text.as_bytes().into());
        let reading =
            read_file(&SourceFile { path: "groups/a.yaml".into(), content }, FileKind::Groups);
        let made = made.map(|it| Timestamp::from_second(it).unwrap());
        reading.groups().iter().for_each(|it| history.take(&Digested::of(it), made));
    }

    fn edit(history: &History) -> (Option<u64>, Option<i64>) {
        let edit = history.edit(ID.parse().unwrap()).unwrap();
        (edit.serial, edit.time.map(Timestamp::as_second))
    }

    #[test]
    fn an_edit_is_what_reads_otherwise() {
        let mut history = History::default();
        let start = format!("name: A\nid: {ID}\nvariables: {{v: {{a: 1, b: 2}}}}\n");
        take(&mut history, &start, Some(10));
        assert_eq!(edit(&history), (Some(1), Some(10)));
        for (at, text, expected) in [
            (
                20,
                format!("# why\nid: {ID}\nname: \"A\"\nvariables:\n  v: {{b: 2, a: 1}}\n"),
                (1, 10),
            ),
            (30, start.replace("a: 1", "a: 3"), (2, 30)),
            // It cannot be read, and then it is as before.
            (40, start.replace("variables", "what"), (2, 30)),
            (50, start.replace("a: 1", "a: 3"), (2, 30)),
            (60, format!("parent: B\n{start}"), (3, 60)),
            (70, format!("parent: C\n{start}"), (4, 70)),
            (80, format!("parent: {}\n{start}", GroupId::ROOT), (5, 80)),
            (90, start, (5, 80)),
        ] {
            take(&mut history, &text, Some(at));
            let (serial, time) = expected;
            assert_eq!(edit(&history), (Some(serial), Some(time)), "{at}");
        }
        let text = serde_json::to_string(&history).unwrap();
        assert_eq!(serde_json::from_str::<History>(&text).unwrap(), history);
    }

    /// The root group is there without a document, too, and a client that read it then must be told.
    #[test]
    fn a_removal_and_a_return_are_edits() {
        let mut history = History::default();
        let id: GroupId = ID.parse().unwrap();
        history.take_removal(id, Some(Timestamp::UNIX_EPOCH));
        assert_eq!(history.edit(id), None);
        let start = format!("name: A\nid: {ID}\n");
        take(&mut history, &start, Some(10));
        for second in [20, 30] {
            history.take_removal(id, Some(Timestamp::from_second(second).unwrap()));
            assert_eq!((edit(&history), history.present().count()), ((Some(2), Some(20)), 0));
        }
        take(&mut history, &start, Some(40));
        assert_eq!((edit(&history), history.present().count()), ((Some(3), Some(40)), 1));
    }

    #[test]
    fn a_group_that_was_not_counted_from_the_beginning_has_no_number() {
        let mut history = History::default();
        let start = format!("name: A\nid: {ID}\n");
        take(&mut history, &start, None);
        assert_eq!(edit(&history), (None, None));
        take(&mut history, &format!("{start}description: d\n---\nname: New\n"), Some(5));
        assert_eq!(edit(&history), (None, Some(5)));
        let new = GroupId::of_name(&"production".parse().unwrap(), &"New".parse().unwrap());
        assert_eq!(history.edit(new).unwrap().serial, Some(1));
    }
}
