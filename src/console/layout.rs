//! What all pages share: the frame with its links, the commit that it is about, who is signed in.

use std::borrow::Borrow;
use std::sync::Arc;

use jiff::Timestamp;
use percent_encoding::utf8_percent_encode;

use super::markup::{self as m, Markup, short};
use crate::forge::ForgePages;
use crate::http::AddressRoutes;
use crate::model::{CommitId, URL_SEGMENT};
use crate::reconcile::path_below;

/// The part of the console that a page belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Section {
    Home,
    Nodes,
    Groups,
    Commits,
    Query,
    Problems,
    Other,
}

impl Section {
    /// Returns the path of its first page.
    fn path(self) -> Option<&'static str> {
        Some(match self {
            Self::Home => "/",
            Self::Nodes => "/nodes",
            Self::Groups => "/groups",
            Self::Commits => "/commits",
            Self::Query => "/query",
            Self::Problems => "/problems",
            Self::Other => return None,
        })
    }
}

/// The frame of a page.
#[derive(Clone, Debug)]
pub(super) struct PageFrame {
    pub(super) section: Section,
    pub(super) links: Links,
    pub(super) style: String,
    pub(super) script: String,
    pub(super) icon: String,
    /// The commit that answers.
    pub(super) live: Option<CommitId>,
    /// The commit whose files the page shows.
    pub(super) commit: Option<CommitId>,
    /// The address of the page itself, without a query.
    pub(super) here: String,
    /// The commit or time that the page is about, if that is not what is live.
    pub(super) point: Option<Point>,
    /// Who is signed in.
    pub(super) user: Option<String>,
    /// How the visitor can sign in or out.
    pub(super) session: SessionState,
    /// What makes a form one of this page.
    pub(super) form_token: String,
    /// Whether actions are offered.
    pub(super) operates: bool,
    pub(super) now: Timestamp,
    pub(super) version: String,
    /// What is searched for.
    pub(super) search: String,
}

/// Another point of history than the live commit.
#[derive(Clone, Debug)]
pub(super) struct Point {
    /// What the address asks for.
    pub(super) asked: String,
    /// The commit that it means.
    pub(super) commit: CommitId,
    /// The address of the same page as it is now.
    pub(super) now: String,
}

/// How a visitor can sign in or out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SessionState {
    /// There is no way to sign in, or no need.
    None,
    SignedOut,
    SignedIn,
}

/// Writes addresses.
#[derive(Clone, Debug, Default)]
pub(super) struct Links {
    /// The path that all addresses begin with.
    pub(super) base: String,
    /// `commit=…` or `at=…`, where a page is about another point of history.
    pub(super) point: String,
    /// The pages of the repository on its forge, where they are known.
    pub(super) forge: Option<Arc<ForgePages>>,
    /// The directory of the groups in the repository.
    pub(super) directory: String,
    pub(super) routes: AddressRoutes,
}

/// Escapes a text as one segment of a path, or as a value of a query.
pub(super) fn escaped(text: &str) -> String {
    // A segment of dots alone would be a step up.
    if matches!(text, "." | "..") {
        return text.replace('.', "%2E");
    }
    utf8_percent_encode(text, URL_SEGMENT).to_string()
}

/// Returns a path that a request names if it leads to a page of this daemon, and that of the home page otherwise: a
/// browser takes what stands behind `//` or `/\` for the name of another host.
pub(super) fn own_path(path: &str) -> &str {
    let is_own = path.starts_with('/')
        && !path.starts_with("//")
        && path.bytes().all(|it| it.is_ascii_graphic() && it != b'\\');
    if is_own { path } else { "/" }
}

impl Links {
    /// Returns the address of a page at the same point of history.
    pub(super) fn to(&self, path: &str) -> String {
        let separator = if path.contains('?') { '&' } else { '?' };
        match self.point.as_str() {
            "" => self.plain(path),
            point => format!("{}{path}{separator}{point}", self.base),
        }
    }

    /// Returns the address of a route of the classifier API, if this address of the daemon has it.
    pub(super) fn to_classifier(&self, path: &str) -> Option<String> {
        (self.routes != AddressRoutes::WithoutClassifier).then(|| self.to(path))
    }

    /// Returns the address of a page that is the same at every point of history.
    pub(super) fn plain(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    pub(super) fn node(&self, name: &str) -> String {
        self.to(&format!("/nodes/{}", escaped(name)))
    }

    pub(super) fn node_part(&self, name: &str, part: &str) -> String {
        self.to(&format!("/nodes/{}/{part}", escaped(name)))
    }

    pub(super) fn group<T: std::fmt::Display>(&self, id: &T) -> String {
        self.to(&format!("/groups/{}", escaped(&id.to_string())))
    }

    /// Returns the address of the part of the tree that is below a group.
    pub(super) fn groups_under<T: std::fmt::Display>(&self, id: &T) -> String {
        self.to(&format!("/groups?under={}", escaped(&id.to_string())))
    }

    pub(super) fn commit(&self, id: &CommitId) -> String {
        self.plain(&format!("/commits/{id}"))
    }

    /// Returns the page of a commit on the forge.
    pub(super) fn forge_commit(&self, id: &CommitId) -> Option<String> {
        self.forge.as_ref()?.commit(id)
    }

    pub(super) fn compare(&self, base: &CommitId, head: &CommitId) -> String {
        self.plain(&format!("/compare/{base}...{head}"))
    }
}

impl PageFrame {
    /// Returns whether the page belongs to the section of a path.
    pub(super) fn is_at(&self, path: &str) -> bool {
        self.section.path() == Some(path)
    }

    /// Returns the address of a group at a commit that has it, whichever commit the page is about.
    pub(super) fn group_at<T: std::fmt::Display>(&self, id: &T, commit: &CommitId) -> String {
        let live = Links { point: String::new(), ..self.links.clone() };
        let links = match self.is_live(commit) {
            true => live,
            false => Links { point: format!("commit={commit}"), ..live },
        };
        links.group(id)
    }

    /// Draws a place in a file, with a link to it on the forge where that is known.
    pub(super) fn place(
        &self,
        file: &str,
        line: impl Borrow<Option<u32>>,
        column: impl Borrow<Option<u32>>,
    ) -> Markup {
        self.place_at(self.commit.as_ref(), file, line, column)
    }

    /// Draws a place in a file of a commit.
    pub(super) fn place_at(
        &self,
        commit: Option<&CommitId>,
        file: &str,
        line: impl Borrow<Option<u32>>,
        column: impl Borrow<Option<u32>>,
    ) -> Markup {
        let place = m::place(file, line.borrow(), column);
        let forge = self.links.forge.as_ref().zip(commit);
        let page = forge.and_then(|(forge, commit)| {
            forge.file(commit, &path_below(&self.links.directory, file), *line.borrow())
        });
        match page {
            Some(address) => m::link_away(&address, &place),
            None => place,
        }
    }

    /// Draws the way to what the API answers: a link with some words. Where a session says who the visitor is, the link
    /// would lead to a 401, since the API takes no sessions: then it is the address, for a request with the token.
    pub(super) fn json(&self, words: &str, address: impl AsRef<str>) -> Markup {
        let (address, words) = (address.as_ref(), Markup::of_parts(words.to_owned()));
        match self.is_signed_in() {
            true => Markup::of_parts(format!("{words} ({})", self.json_at(address))),
            false => m::link(address, &words),
        }
    }

    /// Draws the same way with the address for words.
    pub(super) fn json_at(&self, address: impl AsRef<str>) -> Markup {
        let address = address.as_ref();
        let shown = m::line(address);
        match self.is_signed_in() {
            true => Markup::of_parts(format!("<code>{shown}</code>, asked with the token")),
            false => m::link(address, &shown),
        }
    }

    pub(super) fn is_live(&self, commit: &CommitId) -> bool {
        self.live.as_ref() == Some(commit)
    }

    pub(super) fn is_signed_in(&self) -> bool {
        self.session == SessionState::SignedIn
    }

    pub(super) fn is_signed_out(&self) -> bool {
        self.session == SessionState::SignedOut
    }

    pub(super) fn live_short(&self) -> String {
        self.live.as_ref().map(short).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_requests_lead_to_pages_of_this_daemon_alone() {
        for (path, expected) in [
            ("/nodes?q=x", "/nodes?q=x"),
            ("", "/"),
            ("//evil.example", "/"),
            ("/\\evil.example", "/"),
            ("https://evil.example", "/"),
            ("/a\r\nSet-Cookie: x", "/"),
        ] {
            assert_eq!(own_path(path), expected, "{path}");
        }
    }

    #[test]
    fn addresses_keep_the_base_path_and_the_point_of_history() {
        let (base, point) = ("/clade".to_owned(), "commit=abc".to_owned());
        let links = Links { base, point, ..Links::default() };
        assert_eq!(links.to("/nodes"), "/clade/nodes?commit=abc");
        assert_eq!(links.to("/nodes?q=x"), "/clade/nodes?q=x&commit=abc");
        assert_eq!(links.node("a/b?<c>"), "/clade/nodes/a%2Fb%3F%3Cc%3E?commit=abc");
        assert_eq!(links.groups_under(&"x"), "/clade/groups?under=x&commit=abc");
        assert_eq!(Links::default().node(".."), "/nodes/%2E%2E");
    }
}
