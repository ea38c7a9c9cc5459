//! All masks of a daemon, compiled together.

use std::sync::Arc;

use smallvec::SmallVec;

use super::glob::{KeyPattern, KeyPatterns, lower};
use super::mask::{MaskSetting, MaskStep, MaskedData, PathMask};
use super::usual::USUAL;
use crate::model::{Path, Segment};

/// What a path leads into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataRoot {
    /// The facts.
    Facts,
    /// The trusted data.
    Trusted,
}

/// The masks of a daemon.
#[derive(Clone, Debug)]
pub struct Masks(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    all: Vec<PathMask>,
    facts: RootMasks,
    trusted: RootMasks,
    /// Every mask, wherever its path begins.
    anywhere: RootMasks,
}

/// The masks of facts, or of trusted data.
#[derive(Debug, Default)]
pub(super) struct RootMasks {
    /// Keys to mask at any depth.
    names: KeyPatterns,
    /// Other paths.
    paths: Vec<Vec<MaskStep>>,
}

/// A place in the facts or trusted data: what is left of the paths that have led there.
pub(super) type OpenPaths<'m> = SmallVec<[&'m [MaskStep]; 4]>;

/// The name of trusted data among the facts, where agents and `PuppetDB` repeat them.
const TRUSTED_FACT: &str = "trusted";

impl Default for Masks {
    /// Returns the usual masks.
    fn default() -> Self {
        Self::of_settings(&[])
    }
}

impl Masks {
    /// Returns the usual masks with those of the settings; without the usual ones if the settings say so.
    pub fn of_settings(settings: &[MaskSetting]) -> Self {
        let usual = USUAL.iter().filter(|_| !settings.contains(&MaskSetting::None));
        // A test parses each of them.
        let usual = usual.filter_map(|it| it.parse().ok());
        let own = settings.iter().filter_map(|it| match it {
            MaskSetting::None => None,
            MaskSetting::One(mask) => Some(mask.clone()),
        });
        Self::new(usual.chain(own).collect())
    }

    fn new(all: Vec<PathMask>) -> Self {
        let of = |wanted: MaskedData| {
            all.iter().filter(move |it| it.scope == wanted || it.scope == MaskedData::Both)
        };
        let steps = |it: &PathMask| it.steps.clone();
        // The same data lie there once more.
        let repeated =
            of(MaskedData::Trusted).filter(|it| it.scope != MaskedData::Both).map(|it| {
                let root = MaskStep::Key(KeyPattern::verbatim(TRUSTED_FACT));
                std::iter::once(root).chain(it.steps.iter().cloned()).collect()
            });
        let facts = RootMasks::new(of(MaskedData::Facts).map(steps).chain(repeated));
        let trusted = RootMasks::new(of(MaskedData::Trusted).map(steps));
        let anywhere = all.iter().map(|it| {
            let deep = (it.scope != MaskedData::Both).then_some(MaskStep::AnyDepth);
            deep.into_iter().chain(it.steps.iter().cloned()).collect()
        });
        let anywhere = RootMasks::new(anywhere);
        Self(Arc::new(Inner { all, facts, trusted, anywhere }))
    }

    /// Returns whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.all.is_empty()
    }

    pub(super) fn root(&self, root: DataRoot) -> &RootMasks {
        match root {
            DataRoot::Facts => &self.0.facts,
            DataRoot::Trusted => &self.0.trusted,
        }
    }

    pub(super) fn anywhere(&self) -> &RootMasks {
        &self.0.anywhere
    }

    /// Returns whether the value at a path is masked, or lies in a masked one.
    pub fn covers(&self, path: &Path) -> bool {
        let Path::Segments(segments) = path else { return false };
        let Some((Segment::Key(root), rest)) = segments.split_first() else { return false };
        let masks = match root.as_ref() {
            "fact" | "facts" => &self.0.facts,
            "trusted" => &self.0.trusted,
            _ => return false,
        };
        // The elements of a list have its path.
        let keys = rest.iter().filter_map(|segment| match segment {
            Segment::Key(key) => Some(key.as_ref()),
            Segment::Index(_) => None,
        });
        masks.lead(keys).is_none()
    }

    /// Returns whether a text that cannot be read may have a masked value in it.
    pub fn may_cover_text(&self, text: &str) -> bool {
        if self.is_empty() {
            return false;
        }
        let text = lower(text).to_ascii_lowercase();
        let has_all = |mask: &PathMask| {
            mask.steps.iter().all(|step| match step {
                MaskStep::AnyDepth => true,
                MaskStep::Key(pattern) => text.contains(pattern.literal()),
            })
        };
        // Characters of a key may be escaped.
        text.contains("\\u") || self.0.all.iter().any(has_all)
    }
}

impl RootMasks {
    fn new(all: impl Iterator<Item = Vec<MaskStep>>) -> Self {
        let (mut names, mut paths) = (Vec::new(), Vec::new());
        for steps in all {
            match steps.as_slice() {
                [MaskStep::AnyDepth, MaskStep::Key(name)] if !name.literal().is_empty() => {
                    names.push(name.clone());
                }
                _ => paths.push(steps),
            }
        }
        Self { names: KeyPatterns::new(names), paths }
    }

    /// Returns the place where all paths begin.
    pub(super) fn start(&self) -> OpenPaths<'_> {
        self.paths.iter().map(Vec::as_slice).collect()
    }

    /// Returns the place that keys lead to; `None` if it is masked, or lies in a masked one.
    pub(super) fn lead<'k>(
        &self,
        mut keys: impl Iterator<Item = &'k str>,
    ) -> Option<OpenPaths<'_>> {
        keys.try_fold(self.start(), |place, key| self.enter(&place, key))
    }

    /// Returns whether nothing can be masked below a place.
    #[inline]
    pub(super) fn is_clear(&self, place: &OpenPaths<'_>) -> bool {
        place.is_empty() && self.names.is_empty()
    }

    /// Returns the place below a key; `None` if the value of the key is masked.
    #[inline]
    pub(super) fn enter<'m>(&self, place: &OpenPaths<'m>, key: &str) -> Option<OpenPaths<'m>> {
        if self.names.matches(key) {
            return None;
        }
        let mut below = OpenPaths::new();
        for steps in place {
            if !advance(steps, key, &mut below) {
                return None;
            }
        }
        Some(below)
    }
}

/// Adds what is left of a path behind a key; returns false if the path ends there.
fn advance<'m>(steps: &'m [MaskStep], key: &str, below: &mut OpenPaths<'m>) -> bool {
    match steps.split_first() {
        Some((MaskStep::AnyDepth, rest)) => {
            below.push(steps);
            advance(rest, key, below)
        }
        Some((MaskStep::Key(pattern), rest)) if pattern.matches(key) => {
            if rest.is_empty() {
                return false;
            }
            below.push(rest);
            true
        }
        _ => true,
    }
}
