//! The list of nodes, by what they got last.

use askama::Template;
use axum::http::StatusCode;
use axum::response::Response;

use super::context::PageError;
use super::layout::{Links, PageFrame, Section, escaped};
use super::markup as m;
use super::pager::{Pager, query};
use super::state as s;
use super::visit::Visit;
use crate::http::types::NodePage;

/// How many nodes a page has.
const PAGE: usize = 50;

#[derive(Debug, Template)]
#[template(path = "nodes.html")]
struct NodesPage {
    layout: PageFrame,
    filter: TypedFilter,
    list: FilteredList,
}

/// The nodes that a filter finds, or what is wrong with it.
#[derive(Debug)]
enum FilteredList {
    Found(Box<FoundNodes>),
    Invalid(String),
}

/// A part of the list, and the ways to others.
#[derive(Debug)]
struct FoundNodes {
    page: NodePage,
    headings: Vec<SortableHeading>,
    pager: Pager,
    export: String,
}

/// What is filtered by, as it was typed.
#[derive(Clone, Debug)]
struct TypedFilter {
    q: String,
    state: String,
    environment: String,
    group: String,
    class: String,
    silent_for: String,
    answered_by: String,
    sort: String,
}

/// The heading of a column that the list can be sorted by.
#[derive(Debug)]
struct SortableHeading {
    title: &'static str,
    /// The address of the list in this order, or in the other direction.
    address: String,
    /// As `aria-sort` says it.
    state: Option<&'static str>,
}

/// The columns that the list can be sorted by, each with the order that a first click gives.
const SORTABLE: [(&str, &str); 5] = [
    ("Node", "certname"),
    ("State", "-state"),
    ("Environment", "environment"),
    ("Seen", "-last-seen"),
    ("Same answer since", "-since"),
];

impl TypedFilter {
    fn of(visit: &Visit) -> Self {
        let text = |name: &str| visit.parameter(name).to_owned();
        Self {
            q: text("q"),
            state: text("state"),
            environment: text("environment"),
            group: text("group"),
            class: text("class"),
            silent_for: text("silent_for"),
            answered_by: text("answered_by"),
            sort: text("sort"),
        }
    }

    /// Returns the query of a page, with the name that it has there for the commit that answered.
    fn query(&self, commit: &'static str) -> String {
        query(&[
            ("q", &self.q),
            ("state", &self.state),
            ("environment", &self.environment),
            ("group", &self.group),
            ("class", &self.class),
            ("silent_for", &self.silent_for),
            (commit, &self.answered_by),
            ("sort", &self.sort),
        ])
    }

    fn is_any(&self) -> bool {
        let unsorted = Self { sort: String::new(), ..self.clone() };
        !unsorted.query("commit").is_empty()
    }

    /// Returns the heading of a column; a click on that of the present order turns it round.
    fn heading(&self, (title, first): (&'static str, &str), links: &Links) -> SortableHeading {
        let name = first.trim_start_matches('-');
        let present = if self.sort.is_empty() { "certname" } else { self.sort.as_str() };
        let is_descending = present.starts_with('-');
        let is_present = present.trim_start_matches('-') == name;
        let state = match (is_present, is_descending) {
            (false, _) => None,
            (true, false) => Some("ascending"),
            (true, true) => Some("descending"),
        };
        let sort = match state {
            None => first.to_owned(),
            Some(_) if is_descending => name.to_owned(),
            Some(_) => format!("-{name}"),
        };
        let query = Self { sort, ..self.clone() }.query("answered_by");
        SortableHeading { title, address: links.to(&format!("/nodes{query}")), state }
    }
}

/// Shows the page.
pub(super) async fn show(visit: Visit) -> Response {
    match page(&visit).await {
        // The form is there to be corrected.
        Ok(page) if matches!(page.list, FilteredList::Invalid(_)) => {
            visit.show_as(StatusCode::BAD_REQUEST, &page)
        }
        page => visit.show(page),
    }
}

async fn page(visit: &Visit) -> Result<NodesPage, PageError> {
    let filter = TypedFilter::of(visit);
    let list = match list(visit, &filter).await {
        Ok(list) => FilteredList::Found(Box::new(list)),
        // What is not found is the commit that is filtered by.
        Err(PageError::Api(error))
            if matches!(error.status, StatusCode::BAD_REQUEST | StatusCode::NOT_FOUND) =>
        {
            FilteredList::Invalid(error.error.msg)
        }
        Err(trouble) => return Err(trouble),
    };
    Ok(NodesPage { layout: visit.layout(Section::Nodes), filter, list })
}

async fn list(visit: &Visit, filter: &TypedFilter) -> Result<FoundNodes, PageError> {
    let asked = filter.query("commit");
    let export = format!("/controller/nodes{asked}");
    let offset = visit.offset();
    let separator = if asked.is_empty() { '?' } else { '&' };
    // The number of the page is shown, and the place where it begins is known: nodes move while they are listed.
    let after = match visit.parameter("after") {
        "" => String::new(),
        after => format!("&after={}", escaped(after)),
    };
    let route = format!("{export}{separator}limit={PAGE}&offset={offset}{after}");
    let page: NodePage = visit.get(&route).await?;
    let address = visit.links().to(&format!("/nodes{}", filter.query("answered_by")));
    let part = (offset, page.nodes.len(), PAGE);
    Ok(FoundNodes {
        pager: Pager::with_place(page.total, part, &address, page.next.as_deref()),
        export: visit.links().plain(&format!("{export}{separator}limit=1000")),
        headings: SORTABLE.map(|it| filter.heading(it, visit.links())).into(),
        page,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_sort_and_turn_round_and_keep_the_filter() {
        let text = |it: &str| it.to_owned();
        for (sort, heading, address, state) in [
            ("", ("Node", "certname"), "/nodes?q=web&sort=-certname", Some("ascending")),
            ("", ("Seen", "-last-seen"), "/nodes?q=web&sort=-last-seen", None),
            (
                "-last-seen",
                ("Seen", "-last-seen"),
                "/nodes?q=web&sort=last-seen",
                Some("descending"),
            ),
            (
                "last-seen",
                ("Seen", "-last-seen"),
                "/nodes?q=web&sort=-last-seen",
                Some("ascending"),
            ),
            ("last-seen", ("Node", "certname"), "/nodes?q=web&sort=certname", None),
        ] {
            let filter = TypedFilter {
                q: text("web"),
                state: text(""),
                environment: text(""),
                group: text(""),
                class: text(""),
                silent_for: text(""),
                answered_by: text(""),
                sort: text(sort),
            };
            let found = filter.heading(heading, &Links::default());
            assert_eq!((found.address.as_str(), found.state), (address, state), "{sort}");
        }
    }
}
