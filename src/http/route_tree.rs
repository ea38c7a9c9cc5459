//! Paths of routes, found by the segments of the path of a request.
//!
//! A pattern has segments as they are, `{name}` for any one segment, and `{*name}` for the rest of a path, as the
//! last one. A segment as it is comes before a parameter, and a parameter before the rest. A parameter at the end of a
//! path and a rest are not empty; a parameter in the middle may be. Percent-encoding is decoded in parameters alone.

use std::borrow::Cow;
use std::ops::Range;
use std::str::Utf8Error;

use memchr::memchr;
use percent_encoding::percent_decode_str;
use smallvec::SmallVec;

/// What stands at each of some paths.
#[derive(Debug)]
pub(super) struct RouteTree<T> {
    root: TreeNode<T>,
}

/// What stands at a path and below it.
#[derive(Debug)]
struct TreeNode<T> {
    value: Option<T>,
    literals: Vec<(Box<str>, Self)>,
    parameter: Option<Box<Self>>,
    rest: Option<T>,
}

impl<T> Default for TreeNode<T> {
    fn default() -> Self {
        Self { value: None, literals: Vec::new(), parameter: None, rest: None }
    }
}

impl<T> Default for RouteTree<T> {
    fn default() -> Self {
        Self { root: TreeNode::default() }
    }
}

/// Where the parameters of a path stand in it, in their order. The path itself is kept in the request, so no parameter
/// is copied before a handler takes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ParameterRanges(SmallVec<[Range<usize>; 2]>);

impl ParameterRanges {
    /// Returns the parameters of the path that was matched, decoded.
    ///
    /// # Errors
    ///
    /// Each is an error if it is not UTF-8.
    pub(super) fn decoded<'p>(
        &self,
        path: &'p str,
    ) -> impl Iterator<Item = Result<Cow<'p, str>, Utf8Error>> {
        let texts = self.0.iter().map(move |it| path.get(it.clone()).unwrap_or_default());
        texts.map(|it| percent_decode_str(it).decode_utf8())
    }
}

impl<T> RouteTree<T> {
    /// Returns what stands at a pattern, to put something there.
    pub(super) fn entry(&mut self, pattern: &str) -> &mut Option<T> {
        let mut node = &mut self.root;
        for segment in pattern.split('/').skip(1) {
            if segment.starts_with("{*") {
                return &mut node.rest;
            }
            node = if segment.starts_with('{') {
                node.parameter.get_or_insert_default()
            } else {
                node.literal_mut(segment)
            };
        }
        &mut node.value
    }

    /// Returns what stands at a path, with its parameters.
    pub(super) fn find(&self, path: &str) -> Option<(&T, ParameterRanges)> {
        let mut parameters = ParameterRanges::default();
        // The target of `CONNECT` and `OPTIONS *` has no such path.
        let start = if path.starts_with('/') { 1 } else { return None };
        let found = self.root.find(path, start, &mut parameters)?;
        Some((found, parameters))
    }
}

impl<T> TreeNode<T> {
    fn literal_mut(&mut self, segment: &str) -> &mut Self {
        let known = self.literals.iter().position(|(it, _)| **it == *segment);
        let at = known.unwrap_or_else(|| {
            self.literals.push((segment.into(), Self::default()));
            self.literals.len() - 1
        });
        #[expect(clippy::indexing_slicing, reason = "it was found there, or was pushed")]
        &mut self.literals[at].1
    }

    /// Returns what stands at the rest of a path from the start of a segment.
    fn find(&self, path: &str, start: usize, parameters: &mut ParameterRanges) -> Option<&T> {
        let rest = path.get(start..)?;
        let length = memchr(b'/', rest.as_bytes());
        let next = length.map(|it| start + it + 1);
        let segment = rest.get(..length.unwrap_or(rest.len()))?;
        let literal = self.literals.iter().find(|(it, _)| **it == *segment);
        if let Some(found) = literal.and_then(|(_, node)| node.find_from(path, next, parameters)) {
            return Some(found);
        }
        if let Some(node) = &self.parameter
            && !(next.is_none() && segment.is_empty())
        {
            parameters.0.push(start..start + segment.len());
            if let Some(found) = node.find_from(path, next, parameters) {
                return Some(found);
            }
            parameters.0.pop();
        }
        let found = self.rest.as_ref().filter(|_| !rest.is_empty())?;
        parameters.0.push(start..path.len());
        Some(found)
    }

    /// Returns what stands at the rest of a path from its next segment, or here if it has none.
    fn find_from(
        &self,
        path: &str,
        next: Option<usize>,
        parameters: &mut ParameterRanges,
    ) -> Option<&T> {
        match next {
            Some(next) => self.find(path, next, parameters),
            None => self.value.as_ref(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(patterns: &[&'static str]) -> RouteTree<&'static str> {
        let mut tree = RouteTree::default();
        for pattern in patterns {
            *tree.entry(pattern) = Some(*pattern);
        }
        tree
    }

    /// Returns the pattern of a path, with its parameters.
    fn find<'p>(
        tree: &RouteTree<&'static str>,
        path: &'p str,
    ) -> Option<(&'static str, Vec<&'p str>)> {
        let (found, ranges) = tree.find(path)?;
        Some((*found, ranges.0.into_iter().filter_map(|it| path.get(it)).collect()))
    }

    #[test]
    fn a_path_is_found_by_its_segments() {
        let tree = tree(&["/", "/a", "/a/{x}", "/a/{x}/b", "/d/{x}/{y}", "/c", "/c/{*rest}"]);
        for (path, expected) in [
            ("/", Some(("/", vec![]))),
            ("/a", Some(("/a", vec![]))),
            ("/a/1", Some(("/a/{x}", vec!["1"]))),
            ("/a/b", Some(("/a/{x}", vec!["b"]))),
            ("/a/1/b", Some(("/a/{x}/b", vec!["1"]))),
            ("/a//b", Some(("/a/{x}/b", vec![""]))),
            ("/d//2", Some(("/d/{x}/{y}", vec!["", "2"]))),
            ("/d/1/2", Some(("/d/{x}/{y}", vec!["1", "2"]))),
            ("/d/%2F/%", Some(("/d/{x}/{y}", vec!["%2F", "%"]))),
            ("/c/1", Some(("/c/{*rest}", vec!["1"]))),
            ("/c/1/2/", Some(("/c/{*rest}", vec!["1/2/"]))),
            ("/c//", Some(("/c/{*rest}", vec!["/"]))),
        ] {
            assert_eq!(find(&tree, path), expected, "{path}");
        }
        for path in [
            "", "*", "a", "//", "//a", "/a/", "/A", "/%61", "/a/1/", "/a//", "/a/1/b/", "/a/1/c",
            "/d/1", "/d/1/", "/d//", "/d/1/2/", "/c/", "/b",
        ] {
            assert_eq!(find(&tree, path), None, "{path}");
        }
    }

    #[test]
    fn a_literal_that_leads_nowhere_leaves_the_path_to_a_parameter() {
        let tree = tree(&["/a/b/c", "/a/{x}/d", "/{*rest}"]);
        assert_eq!(find(&tree, "/a/b/c"), Some(("/a/b/c", vec![])));
        assert_eq!(find(&tree, "/a/b/d"), Some(("/a/{x}/d", vec!["b"])));
        assert_eq!(find(&tree, "/a/b/e"), Some(("/{*rest}", vec!["a/b/e"])));
    }

    #[test]
    fn parameters_are_decoded() {
        let tree = tree(&["/{x}/{y}"]);
        let decoded = |path: &str| -> Vec<Option<String>> {
            let (_, ranges) = tree.find(path).unwrap();
            ranges.decoded(path).map(|it| Some(it.ok()?.into_owned())).collect()
        };
        let some = |it: &str| Some(it.to_owned());
        assert_eq!(decoded("/a/b"), [some("a"), some("b")]);
        assert_eq!(decoded("/%61%2F/%C3%BC"), [some("a/"), some("ü")]);
        // What is not an encoding stays, and `+` stands for itself in a path.
        assert_eq!(decoded("/%/%zz+"), [some("%"), some("%zz+")]);
        assert_eq!(decoded("/%ff/b"), [None, some("b")]);
        assert_eq!(decoded("/%2561/b"), [some("%61"), some("b")]);
    }
}
