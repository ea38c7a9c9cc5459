//! The tree of groups, with how many nodes have each.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;

use askama::Template;
use axum::response::Response;

use super::context::PageError;
use super::layout::{PageFrame, Section, escaped};
use super::markup::{self as m, Markup};
use super::pager::Pager;
use super::stored::{UnreadableStore, count, stored};
use super::visit::Visit;
use crate::hierarchy::{GroupIndex, Hierarchy};
use crate::http::types::GroupMembers;
use crate::model::GroupId;
use crate::wording::plural_ending;

/// How many groups a page draws.
const DRAWN: usize = 400;

/// How many children of one group it draws at once.
const CHILDREN: usize = 150;

/// How deep a page draws, so that it stays as wide as a screen.
const DEPTH: usize = 12;

#[derive(Debug, Template)]
#[template(path = "groups.html")]
struct GroupsPage {
    layout: PageFrame,
    total: usize,
    asked: String,
    /// The groups above the drawn part, the root first.
    lineage: Vec<(GroupId, String)>,
    tree: Markup,
    found: Vec<FoundGroup>,
    pager: Pager,
    counted: bool,
    /// Why the numbers of nodes are not known.
    uncounted: Option<UnreadableStore>,
}

/// A group that a search found.
#[derive(Debug)]
struct FoundGroup {
    id: GroupId,
    name: String,
    environment: String,
    path: String,
    nodes: Option<u64>,
}

/// How many nodes have each group.
pub(super) type Members = BTreeMap<GroupId, u64>;

/// Asks how many nodes have each group in their last answer; with further conditions.
pub(super) async fn members(visit: &Visit, conditions: &str) -> Result<Members, PageError> {
    let route = format!("/controller/group-members{conditions}");
    let counted: Vec<GroupMembers> = visit.get(&route).await?;
    Ok(counted.into_iter().map(|it| (it.id, it.nodes)).collect())
}

/// Shows the page.
pub(super) async fn show(visit: Visit) -> Response {
    let page = page(&visit).await;
    visit.show(page)
}

async fn page(visit: &Visit) -> Result<GroupsPage, PageError> {
    let snapshot = visit.snapshot().await?;
    let hierarchy = &snapshot.estate.hierarchy;
    let members = stored(members(visit, "").await)?;
    let asked = visit.parameter("name").to_owned();
    let top = match visit.parameter("under") {
        "" => hierarchy.root(),
        under => {
            let found = under.parse().ok().and_then(|id| hierarchy.find(id));
            found.ok_or_else(|| PageError::NotFound(format!("No group has the id `{under}`.")))?
        }
    };
    let layout = visit.layout(Section::Groups);
    let offset = visit.offset();
    let named = |index: GroupIndex| {
        let group = hierarchy.group(index);
        (group.id, group.name.to_string())
    };
    let mut lineage: Vec<_> = hierarchy.lineage(top).skip(1).map(named).collect();
    lineage.reverse();
    let mut page = GroupsPage {
        total: hierarchy.len(),
        lineage,
        tree: Markup::default(),
        found: Vec::new(),
        pager: Pager::new(0, (0, 0, CHILDREN), ""),
        counted: !visit.is_elsewhere(),
        uncounted: members.as_ref().err().cloned(),
        asked,
        layout,
    };
    let members = members.as_ref().ok();
    if page.asked.is_empty() {
        let children: Vec<GroupIndex> = hierarchy.children(top).collect();
        let shown = children.len().saturating_sub(offset).min(CHILDREN);
        let under = hierarchy.group(top).id;
        let address = page.layout.links.groups_under(&under);
        page.pager = Pager::new(children.len() as u64, (offset, shown, CHILDREN), &address);
        let drawing = Drawing { hierarchy, members, layout: &page.layout };
        page.tree = drawing.tree(top, offset);
    } else {
        let wanted = page.asked.to_lowercase();
        let is_found = |index: &GroupIndex| {
            let group = hierarchy.group(*index);
            group.name.as_str().to_lowercase().contains(&wanted) || group.id.to_string() == wanted
        };
        let found: Vec<GroupIndex> = hierarchy.indexes().filter(is_found).collect();
        let address = page.layout.links.to(&format!("/groups?name={}", escaped(&page.asked)));
        let some = found.iter().skip(offset).take(CHILDREN);
        page.found = some.map(|index| found_group(hierarchy, *index, members)).collect();
        page.pager = Pager::new(found.len() as u64, (offset, page.found.len(), CHILDREN), &address);
    }
    Ok(page)
}

fn found_group(hierarchy: &Hierarchy, index: GroupIndex, members: Option<&Members>) -> FoundGroup {
    let group = hierarchy.group(index);
    let mut above: Vec<&str> = hierarchy
        .lineage(index)
        .skip(1)
        .take(6)
        .map(|it| hierarchy.group(it).name.as_str())
        .collect();
    above.reverse();
    FoundGroup {
        id: group.id,
        name: group.name.to_string(),
        environment: group.environment.to_string(),
        path: above.join(" › "),
        nodes: nodes(members, group.id),
    }
}

/// Returns how many nodes have a group, where that is known.
fn nodes(members: Option<&Members>, group: GroupId) -> Option<u64> {
    members.map(|it| it.get(&group).copied().unwrap_or_default())
}

/// Draws a part of the tree.
struct Drawing<'d> {
    hierarchy: &'d Hierarchy,
    members: Option<&'d Members>,
    layout: &'d PageFrame,
}

impl Drawing<'_> {
    /// Draws a group with what is below it, level by level until the page is full.
    fn tree(&self, top: GroupIndex, offset: usize) -> Markup {
        let mut opened: BTreeMap<GroupIndex, Vec<GroupIndex>> = BTreeMap::new();
        let mut waiting = VecDeque::from([(top, offset, 0)]);
        let mut drawn = 1;
        while let Some((index, offset, depth)) = waiting.pop_front() {
            let children: Vec<GroupIndex> =
                self.hierarchy.children(index).skip(offset).take(CHILDREN).collect();
            let fits = depth < DEPTH && drawn + children.len() <= DRAWN;
            if children.is_empty() || (!fits && index != top) {
                continue;
            }
            drawn += children.len();
            waiting.extend(children.iter().map(|it| (*it, 0, depth + 1)));
            opened.insert(index, children);
        }
        let mut markup = String::from("<ul class=\"tree groups\">");
        self.group(&mut markup, top, &opened, 0);
        markup.push_str("</ul>");
        Markup::of_parts(markup)
    }

    fn group(
        &self,
        markup: &mut String,
        index: GroupIndex,
        opened: &BTreeMap<GroupIndex, Vec<GroupIndex>>,
        depth: usize,
    ) {
        let all = self.hierarchy.children(index).count();
        match opened.get(&index) {
            None => {
                markup.push_str("<li>");
                self.row(markup, index);
                if all > 0 {
                    self.more(markup, index, &format!("{all} groups below"));
                }
                markup.push_str("</li>");
            }
            Some(children) => {
                let open = if depth < 2 { " open" } else { "" };
                markup.push_str("<li class=\"branch\">");
                self.row(markup, index);
                let _ = write!(
                    markup,
                    "<details{open}><summary><span class=\"away\">{}</span></summary><ul>",
                    m::counted(all, "group") + " below"
                );
                for child in children {
                    self.group(markup, *child, opened, depth + 1);
                }
                if depth > 0 && children.len() < all {
                    markup.push_str("<li>");
                    self.more(markup, index, &format!("all {all} groups"));
                    markup.push_str("</li>");
                }
                markup.push_str("</ul></details></li>");
            }
        }
    }

    /// Draws a link to the part of the tree below a group.
    fn more(&self, markup: &mut String, index: GroupIndex, words: &str) {
        let id = self.hierarchy.group(index).id;
        let address = self.layout.links.groups_under(&id).replace('&', "&amp;");
        let _ = write!(markup, "<a class=\"muted\" href=\"{address}\">{words}</a>");
    }

    fn row(&self, markup: &mut String, index: GroupIndex) {
        let group = self.hierarchy.group(index);
        let address = self.layout.links.group(&group.id).replace('&', "&amp;");
        let _ = write!(
            markup,
            "<div class=\"row\"><a href=\"{address}\">{}</a>",
            m::line(group.name.as_str())
        );
        if let Some(nodes) = nodes(self.members, group.id) {
            let class = if nodes == 0 { "muted" } else { "badge" };
            let (count, ending) = (m::count(nodes), plural_ending(nodes, "node"));
            let _ = write!(markup, " <span class=\"{class}\">{count} node{ending}</span>");
        }
        if group.rule.is_none() {
            markup.push_str(" <span class=\"muted\">no rule</span>");
        }
        if group.environment_trumps {
            markup.push_str(" <span class=\"badge warn\">environment group</span>");
        }
        let _ = write!(
            markup,
            " <span class=\"muted\">{}</span></div>",
            m::line(group.environment.as_str())
        );
    }
}
