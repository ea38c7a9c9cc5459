//! Which facts are stored.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::masks::{DataRoot, Masks};
use crate::mentioned::MentionedPaths;
use crate::model::{Node, STORED_PATHS, stored_of};

/// Which facts and trusted data of a node are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StoredExtent {
    /// All.
    #[default]
    All,
    /// Those that the rules of the commit mention that answers the node.
    Mentioned,
    /// None.
    None,
}

/// What is stored, and shown, of the facts and trusted data of nodes.
#[derive(Clone, Debug, Default)]
pub struct StoredForm {
    /// Which values are not.
    pub masks: Masks,
    /// Which of the others are.
    pub facts: StoredExtent,
}

impl StoredForm {
    /// Returns a node as it is stored; `mentioned` are the paths of the commit that answers.
    pub fn node<'n>(&self, node: &'n Node, mentioned: &MentionedPaths) -> Cow<'n, Node> {
        let kept = match self.facts {
            StoredExtent::All => return self.masks.node(node),
            StoredExtent::Mentioned => mentioned.keep(node),
            StoredExtent::None => Node::named(node.name.clone()),
        };
        let Node { name, fact, trusted } = kept;
        Cow::Owned(Node {
            name,
            fact: self.listed(DataRoot::Facts, fact, mentioned, Presence::of(node.fact.is_empty())),
            trusted: self.listed(
                DataRoot::Trusted,
                trusted,
                mentioned,
                Presence::of(node.trusted.is_empty()),
            ),
        })
    }

    /// Returns facts and trusted data, the texts of objects, as they are stored.
    pub fn texts<'t>(
        &self,
        fact: &'t str,
        trusted: &'t str,
        mentioned: &MentionedPaths,
    ) -> [Cow<'t, str>; 2] {
        let kept = match self.facts {
            StoredExtent::All => {
                return [
                    self.masks.text(DataRoot::Facts, fact),
                    self.masks.text(DataRoot::Trusted, trusted),
                ];
            }
            // What cannot be read is not stored.
            StoredExtent::Mentioned => mentioned.keep_text(fact, trusted).unwrap_or_default(),
            StoredExtent::None => Default::default(),
        };
        let write = |root, kept, text: &str| {
            // An object without a string has no key.
            let presence = Presence::of(!text.contains('"'));
            Value::Object(self.listed(root, kept, mentioned, presence)).to_string().into()
        };
        [write(DataRoot::Facts, kept.0, fact), write(DataRoot::Trusted, kept.1, trusted)]
    }

    /// Masks what is kept, and lists the paths that it has.
    fn listed(
        &self,
        root: DataRoot,
        mut kept: Map<String, Value>,
        mentioned: &MentionedPaths,
        presence: Presence,
    ) -> Map<String, Value> {
        // Nothing was left out of nothing.
        if presence == Presence::Empty {
            return Map::new();
        }
        self.masks.mask_map(root, &mut kept, &mut |_| {});
        let paths = match (self.facts, root) {
            (StoredExtent::None, _) => Vec::new(),
            (_, DataRoot::Facts) => mentioned.fact_paths(),
            (_, DataRoot::Trusted) => mentioned.trusted_paths(),
        };
        // What was left out before is not there again.
        let paths = stored_of(&kept, paths);
        kept.insert(STORED_PATHS.to_owned(), paths.into());
        kept
    }
}

/// What is stored of the nodes that a commit answers.
#[derive(Clone, Debug)]
pub struct CommitForm {
    form: StoredForm,
    mentioned: Arc<MentionedPaths>,
    keeps_mentioned: bool,
}

impl CommitForm {
    /// Returns the form of a commit whose rules mention these paths; none if all is stored as it is.
    pub fn new(form: &StoredForm, mentioned: impl FnOnce() -> Arc<MentionedPaths>) -> Option<Self> {
        let withholds = form.facts != StoredExtent::All || !form.masks.is_empty();
        withholds.then(|| {
            let mentioned = mentioned();
            let keeps_mentioned = form.facts != StoredExtent::None
                && !mentioned.paths().any(|it| form.masks.covers(&it));
            Self { form: form.clone(), mentioned, keeps_mentioned }
        })
    }

    /// Returns whether rules and values find in what is stored all that they look for.
    pub fn keeps_mentioned(&self) -> bool {
        self.keeps_mentioned
    }

    /// Returns a node as it is stored.
    pub fn node<'n>(&self, node: &'n Node) -> Cow<'n, Node> {
        self.form.node(node, &self.mentioned)
    }

    /// Returns facts and trusted data, the texts of objects, as they are stored.
    pub fn texts<'t>(&self, fact: &'t str, trusted: &'t str) -> [Cow<'t, str>; 2] {
        self.form.texts(fact, trusted, &self.mentioned)
    }
}

/// Whether a node has facts, or trusted data, at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Presence {
    Some,
    Empty,
}

impl Presence {
    fn of(is_empty: bool) -> Self {
        if is_empty { Self::Empty } else { Self::Some }
    }
}
