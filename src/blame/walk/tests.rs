//! Walks over branches that are made up.

use std::convert::Infallible;

use super::*;
use crate::answer::{Answer, AnswerKey};
use crate::model::{GroupId, Node};
use crate::validation::{Search, SourceContent, SourceFile, validate};

/// What stands at a commit: a value of the variable `v`, or nothing for a commit that is not valid.
type Commit = Option<i64>;

/// A branch, the oldest commit first; commits with the same value differ in nothing that concerns the node.
struct MadeUp {
    commits: Vec<Commit>,
    /// What stands before the oldest.
    before: Older,
    /// How many more steps are wanted.
    wanted: usize,
    /// What earlier walks found.
    known: BTreeMap<CommitId, Arc<KnownOrigins>>,
}

fn id(number: usize) -> CommitId {
    format!("{number:040x}").parse().unwrap()
}

fn number(commit: CommitId) -> usize {
    usize::from_str_radix(&commit.to_string(), 16).unwrap()
}

fn answer(value: i64) -> Answer {
    let text = format!("name: All Nodes\nid: {}\nvariables: {{v: {value}}}\n", GroupId::ROOT);
    let content = SourceContent::Bytes(text.into_bytes().into());
    let files = [SourceFile { path: "groups/all.yaml".into(), content }];
    let estate = validate(&files, Search::Decisive).estate.unwrap();
    Answer::of(&estate, &Node::named("n".to_owned())).unwrap()
}

impl BlamedBranch for MadeUp {
    type Error = Infallible;

    fn parent(&mut self, commit: CommitId) -> Result<Older, Infallible> {
        Ok(number(commit).checked_sub(1).map_or(self.before, |it| Older::Commit(id(it))))
    }

    fn may_differ(&mut self, parent: CommitId, commit: CommitId) -> Result<bool, Infallible> {
        Ok(self.commits[number(parent)] != self.commits[number(commit)])
    }

    fn answer(&mut self, commit: CommitId) -> Result<Option<Answer>, Infallible> {
        Ok(self.commits[number(commit)].map(answer))
    }

    fn is_valid(&mut self, commit: CommitId) -> Result<bool, Infallible> {
        Ok(self.commits[number(commit)].is_some())
    }

    fn known(&mut self, commit: CommitId) -> Option<Arc<KnownOrigins>> {
        self.known.get(&commit).cloned()
    }

    fn is_wanted(&mut self) -> bool {
        let wanted = self.wanted > 0;
        self.wanted = self.wanted.saturating_sub(1);
        wanted
    }
}

fn origin_of_v(commits: &[Commit], before: Older, wanted: usize) -> (Walked, Option<Origin>) {
    let mut branch = MadeUp { commits: commits.to_vec(), before, wanted, known: BTreeMap::new() };
    let head = id(commits.len() - 1);
    let whole = answer(commits.last().unwrap().unwrap());
    let mut found = None;
    let walked = walk(&mut branch, head, &whole, &mut |key, origin| {
        if matches!(key, AnswerKey::Variable(_)) {
            found = Some(origin);
        }
        Ok(())
    });
    let Ok(walked) = walked;
    (walked, found)
}

#[test]
fn a_value_is_followed_back_to_where_it_began() {
    let origin = |commits: &[Commit]| origin_of_v(commits, Older::Nothing, 99);
    let from = |number| (Walked::Whole, Some(Origin::Commit(id(number))));
    assert_eq!(origin(&[Some(1)]), from(0));
    assert_eq!(origin(&[Some(1), Some(2), Some(2)]), from(1));
    assert_eq!(origin(&[Some(2), Some(1), Some(2)]), from(2));
    // An invalid commit neither begins nor ends a value.
    assert_eq!(origin(&[Some(2), None, Some(2)]), from(0));
    assert_eq!(origin(&[Some(1), None, None, Some(2)]), from(3));
    assert_eq!(origin(&[None, None, Some(2)]), from(2));
}

#[test]
fn a_branch_that_is_cut_has_a_boundary() {
    let found = origin_of_v(&[Some(2), Some(2)], Older::Unknown, 99);
    assert_eq!(found, (Walked::Whole, Some(Origin::Boundary(id(0)))));
    let found = origin_of_v(&[Some(1), Some(2)], Older::Unknown, 99);
    assert_eq!(found, (Walked::Whole, Some(Origin::Commit(id(1)))));
}

#[test]
fn a_walk_that_is_not_wanted_stops() {
    let commits = [Some(1), Some(2), Some(2), Some(2)];
    for wanted in 0..3 {
        let found = origin_of_v(&commits, Older::Nothing, wanted);
        assert_eq!(found, (Walked::Stopped, None), "{wanted}");
    }
    assert_eq!(origin_of_v(&commits, Older::Nothing, 3).0, Walked::Stopped);
    assert_eq!(origin_of_v(&commits, Older::Nothing, 99).0, Walked::Whole);
}

#[test]
fn a_walk_ends_at_a_commit_where_the_rest_is_known() {
    let commits = [Some(1), Some(2), None, Some(2), Some(3), Some(2), Some(2)];
    let variable =
        answer(2).values().keys().find(|it| matches!(it, AnswerKey::Variable(_))).cloned();
    let known = Arc::new(KnownOrigins::from([(variable.unwrap(), Origin::Commit(id(1)))]));
    for (at, expected) in [(6, 1), (5, 1), (3, 5), (2, 5)] {
        let known = BTreeMap::from([(id(at), Arc::clone(&known))]);
        let mut branch =
            MadeUp { commits: commits.to_vec(), before: Older::Nothing, wanted: 99, known };
        let mut found = Vec::new();
        let whole = answer(2);
        let Ok(walked) = walk(&mut branch, id(6), &whole, &mut |key, origin| {
            if matches!(key, AnswerKey::Variable(_)) {
                found.push(origin);
            }
            Ok(())
        });
        assert_eq!((walked, found), (Walked::Whole, vec![Origin::Commit(id(expected))]), "{at}");
    }
}
