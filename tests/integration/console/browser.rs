//! The console in a real browser: clicked through, by keyboard, without scripts, for all eyes.

use super::chromium::{Chromium, Scheme};
use super::estate::{
    FullHome, crawl, fleet_in_conflict, fleet_with_a_past, full_home, hostile, large_fleet,
    shared_fleet, wait_for_nodes,
};
use crate::program::{Daemon, root};
use crate::readme::{serve_fleet, updating};

const WEB: &str = "/groups/58463036-0efa-4365-b367-b5401c0711d3";

const PAGES: [&str; 13] = [
    "/",
    "/nodes",
    "/nodes/web1.example.com",
    "/nodes/web1.example.com?blame=on&group=Databases",
    "/nodes/web1.example.com/history",
    "/nodes/web1.example.com/facts",
    "/groups",
    WEB,
    "/commits",
    "/commits/HEAD",
    "/compare/HEAD...HEAD",
    "/query?rule=os.family%20%3D%20Debian",
    "/problems",
];

#[test]
fn pages_have_no_barriers_in_light_and_dark() {
    let Some(browser) = Chromium::start() else { return };
    // First, so that the first minute of its graphs passes meanwhile.
    let home = full_home();
    let fleet = shared_fleet();
    let daemon = &fleet.daemon;
    let (_past, with_past) = fleet_with_a_past();
    let (_conflict, in_conflict) = fleet_in_conflict();
    let plain = PAGES.into_iter().chain(["/login", "/nowhere", "/nodes?commit=HEAD"]);
    let pages: Vec<(&Daemon, &str)> = plain
        .map(|it| (daemon, it))
        .chain(["/", "/commits/HEAD", "/compare/HEAD~2...HEAD~1"].map(|it| (&with_past, it)))
        .chain(["/", "/nodes/web2.example.com", "/problems"].map(|it| (&in_conflict, it)))
        .collect();
    let mut wrong = barriers(&browser, &pages);
    home.daemon.wait_until("the check-ins of a minute are counted", |it| {
        it.get("/controller/trends").json()["check_ins"].as_array().is_some_and(|it| !it.is_empty())
    });
    wrong.extend(barriers(&browser, &[(&home.daemon, "/")]));
    assert!(wrong.is_empty(), "{wrong:#?}");
    // In the same browser, so that none is started for it.
    a_full_home_fits_a_phone_and_works_without_scripts(&browser, &home);
}

/// Returns what is wrong with pages, with all that can be opened open.
fn barriers(browser: &Chromium, pages: &[(&Daemon, &str)]) -> Vec<String> {
    let mut wrong = Vec::new();
    for scheme in [Scheme::Light, Scheme::Dark] {
        browser.prefer(scheme);
        for &(daemon, page) in pages {
            browser.open(daemon, page);
            browser.run(OPEN_ALL);
            let Some(found) = browser.violations() else { return wrong };
            wrong.extend(found.into_iter().map(|it| format!("{scheme:?} {page}: {it}")));
        }
    }
    wrong
}

fn a_full_home_fits_a_phone_and_works_without_scripts(browser: &Chromium, home: &FullHome) {
    browser.resize(375, 800);
    browser.without_scripts();
    browser.open(&home.daemon, "/");
    let text = browser.text();
    for expected in &home.texts {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    // Each kind of mark has a colour and a size.
    let drawn = "return [...document.querySelectorAll('.charts svg.chart')].map((it) => [...it.children].filter((mark) => mark.getBoundingClientRect().height > 0 && getComputedStyle(mark).fill !== 'rgb(0, 0, 0)').length > 0)";
    assert_eq!(browser.run(drawn), serde_json::json!([true, true, true]), "{text}");
    browser.click(".charts summary");
    browser.wait_until("return document.querySelector('.charts details table').offsetHeight > 0");
    assert_fits(browser, "/");
}

/// Opens all that can be opened.
const OPEN_ALL: &str =
    "document.querySelectorAll('details').forEach((it) => { it.open = true; }); return true";

/// The page is not wider than a phone.
fn assert_fits(browser: &Chromium, page: &str) {
    browser.run(OPEN_ALL);
    let width = browser.run("return document.documentElement.scrollWidth");
    assert!(width.as_u64().unwrap() <= 375, "{page} is {width} wide");
}

#[test]
fn no_page_is_wider_than_a_phone() {
    let Some(browser) = Chromium::start() else { return };
    let fleet = shared_fleet();
    let daemon = &fleet.daemon;
    browser.resize(375, 800);
    for page in PAGES {
        browser.open(daemon, page);
        assert_fits(&browser, page);
    }
}

#[test]
fn the_questions_are_answered_by_clicks() {
    let Some(browser) = Chromium::start() else { return };
    let fleet = shared_fleet();
    let daemon = &fleet.daemon;
    // Is my change live?
    browser.open(daemon, "/");
    assert!(browser.text().contains("The newest commit answers"));
    browser.click(".hero a.id");
    browser.wait_until("return document.querySelector('h1').innerText.includes('the fleet')");
    // What does this machine get, and why?
    browser.click(".sections a[href='/nodes']");
    browser.wait_until("return document.title.startsWith('Nodes')");
    browser.click("tbody a[href='/nodes/web1.example.com']");
    browser.wait_until("return document.querySelector('#values') !== null");
    assert!(browser.text().contains("groups/roles/web.yaml:"));
    // Since when?
    browser.click("a[href='/nodes/web1.example.com?blame=on#values']");
    browser.wait_until("return document.body.innerText.includes('Since')");
    // What would this rule match?
    browser.click(".sections a[href='/query']");
    browser.wait_until("return document.querySelector('#rule') !== null");
    browser.click("#rule");
    browser.press("name ~ \"^web\"");
    browser.wait_until("return document.body.innerText.includes('2 of 4 nodes match')");
    assert!(browser.text().contains("rule: \"name ~ \\\"^web\\\"\""), "{}", browser.text());
    // What is wrong?
    browser.click(".sections a[href='/problems']");
    browser.wait_until("return document.title.startsWith('Problems')");
    // What did change between two points?
    browser.click(".sections a[href='/commits']");
    browser.wait_until("return document.title.startsWith('Commits')");
    browser.click("input[name=base]");
    browser.press("HEAD");
    browser.click("input[name=head]");
    browser.press("HEAD\u{e007}");
    browser.wait_until("return document.body.innerText.includes('No node gets another answer')");
}

/// What a newcomer does who runs the first command of the README and opens the address.
#[test]
fn a_newcomer_sees_what_web1_gets_and_why() {
    let Some(browser) = Chromium::start() else { return };
    let (_repository, daemon) = serve_fleet();
    browser.open(&daemon, "/");
    let text = browser.text();
    assert!(text.contains("The newest commit answers") && text.contains("the fleet"), "{text}");
    assert!(text.contains("No node has checked in yet"), "{text}");
    let command = browser.run("return document.querySelector('#fleet ~ .empty pre').textContent");
    let command = command.as_str().unwrap();
    assert!(command.contains(daemon.address()), "{command}");
    let done = std::process::Command::new("sh").args(["-c", command]).output();
    if !done.is_ok_and(|it| it.status.success()) {
        eprintln!("skipped: needs curl");
        return;
    }
    wait_for_nodes(&daemon, 1);
    browser.open(&daemon, "/");
    browser.click(".tiles a");
    browser.wait_until("return document.title.startsWith('Nodes')");
    browser.click("tbody a");
    browser.wait_until("return document.title.startsWith('web1.example.com')");
    let text = browser.text();
    for expected in ["classes.role::web", "groups/roles/web.yaml:", "because", "pp_role = \"web\""]
    {
        assert!(text.contains(expected), "{expected}: {text}");
    }
}

#[test]
fn a_rule_that_is_typed_is_searched_for_in_all_nodes() {
    let Some(browser) = Chromium::start() else { return };
    let (_repository, daemon) = large_fleet();
    browser.open(&daemon, "/query");
    browser.click("#rule");
    browser.press("even = true");
    browser.wait_until(
        "return document.querySelector('#nodes')?.innerText.startsWith('1\u{202f}003 of 1\u{202f}003')",
    );
    assert_eq!(browser.run("return location.search"), "?rule=even+%3D+true");
    assert_eq!(browser.run("return document.querySelectorAll('[data-whole]').length"), 0);
}

/// The names of the nodes of a list.
const LISTED: &str = "return [...document.querySelectorAll('[data-part=list] tbody tr')].map((it) => it.cells[0].innerText).join(' ')";

#[test]
fn a_list_keeps_its_order_and_its_time_while_one_types() {
    let Some(browser) = Chromium::start() else { return };
    let fleet = shared_fleet();
    let daemon = &fleet.daemon;
    let shows = |names: &str| browser.wait_until(&format!("{LISTED} === '{names}'"));
    let address = |path_and_query: &str| {
        browser.wait_until(&format!(
            "return location.pathname + decodeURIComponent(location.search) === '{path_and_query}'"
        ));
    };
    let clears = "return document.querySelector('form.filters a.button').offsetHeight > 0";
    browser.open(daemon, "/nodes?sort=-certname&offset=1");
    assert_eq!(browser.run(clears), false);
    browser.click(".filters input[name=q]");
    browser.press("WEB");
    shows("web2.example.com web1.example.com");
    address("/nodes?sort=-certname&q=WEB");
    assert_eq!(browser.run(clears), true);
    // The headings of the new list keep the filter.
    browser.click("thead a[href*='sort=certname']");
    address("/nodes?q=WEB&sort=certname");
    shows("web1.example.com web2.example.com");
    browser.click(".filters input[name=q]");
    browser.press("\u{e010}\u{e003}\u{e003}\u{e003}db");
    shows("db1.example.com");
    address("/nodes?q=db&sort=certname");
    browser.press("\u{e003}\u{e003}");
    shows("db1.example.com mail1.example.com web1.example.com web2.example.com");
    address("/nodes?sort=certname");
    assert_eq!(browser.run(clears), false);
    // What is not a duration is said in place of the list, and corrected where it stands.
    browser.click(".filters input[name=silent_for]");
    browser.press("x");
    let alert = "return document.querySelector('[role=alert]')?.innerText.includes('duration')";
    browser.wait_until(alert);
    address("/nodes?sort=certname&silent_for=x");
    browser.press("\u{e003}");
    shows("db1.example.com mail1.example.com web1.example.com web2.example.com");
    address("/nodes?sort=certname");
    browser.click(".filters input[name=class]");
    browser.press("role::web");
    shows("web1.example.com web2.example.com");
    address("/nodes?sort=certname&class=role::web");

    // A point of history that was named as a time stays, in either list.
    let now = daemon.get("/controller/status").json()["replicas"][0]["seen_at"].clone();
    let (time, head) = (now.as_str().unwrap(), fleet.head());
    browser.open(daemon, &format!("/nodes?at={time}&sort=-certname"));
    browser.click(".filters input[name=q]");
    browser.press("web");
    shows("web2.example.com web1.example.com");
    address(&format!("/nodes?sort=-certname&q=web&commit={head}"));
    browser.open(daemon, &format!("/groups?at={time}"));
    browser.click(".filters input[name=name]");
    browser.press("large");
    shows("Large webservers");
    address(&format!("/groups?name=large&commit={head}"));
    assert_eq!(browser.run(clears), true);
}

#[test]
fn a_page_shows_another_point_of_history() {
    let Some(browser) = Chromium::start() else { return };
    let (_repository, daemon) = fleet_with_a_past();
    let timeout = "return [...document.querySelectorAll('.values tr')].find((it) => it.innerText.includes('classes.apache.keepalive_timeout')).cells[1].innerText";
    browser.open(&daemon, "/nodes/web1.example.com");
    assert_eq!(browser.run(timeout), "15");
    browser.click(".travel > summary");
    browser.click(".travel input[name=commit]");
    browser.press("HEAD~2\u{e007}");
    browser.wait_until("return document.querySelector('.banner') !== null");
    assert!(browser.text().contains("Not what is live"), "{}", browser.text());
    assert_eq!(browser.run(timeout), "5");
    // Links stay there, until one goes back.
    browser.click("#values ~ .scroll a[href*='/groups/']");
    browser.wait_until("return location.pathname.startsWith('/groups/')");
    assert_eq!(browser.run("return location.search"), "?commit=HEAD~2");
    browser.click(".banner a.button");
    browser.wait_until("return document.querySelector('.banner') === null");
}

#[test]
fn the_keyboard_is_enough() {
    let Some(browser) = Chromium::start() else { return };
    let fleet = shared_fleet();
    let daemon = &fleet.daemon;
    browser.open(daemon, "/");
    browser.press("/");
    browser.wait_until("return document.activeElement.id === 'search'");
    browser.press("web1\u{e007}");
    browser.wait_until("return location.search === '?q=web1'");
    browser.press("j");
    browser.wait_until("return document.activeElement.closest('tbody') !== null");
    browser.press("\u{e007}");
    browser.wait_until("return location.pathname === '/nodes/web1.example.com'");
    browser.press("?");
    browser.wait_until("return document.querySelector('dialog[open]') !== null");
}

#[test]
fn pages_work_without_scripts() {
    let Some(browser) = Chromium::start() else { return };
    let fleet = shared_fleet();
    let daemon = &fleet.daemon;
    browser.without_scripts();
    browser.open(daemon, "/nodes");
    browser.click("input[name=q]");
    browser.press("web1\u{e007}");
    browser.wait_until("return location.search.includes('q=web1')");
    browser.click("tbody a");
    browser.wait_until("return location.pathname === '/nodes/web1.example.com'");
    browser.open(daemon, "/nodes?sort=-certname");
    browser.click(".filters input[name=q]");
    browser.press("web\u{e007}");
    browser.wait_until("return location.search.includes('q=web')");
    assert_eq!(browser.run(LISTED), "web2.example.com web1.example.com");
    browser.open(daemon, "/query");
    browser.click("#rule");
    browser.press("name = web1.example.com");
    browser.click("form button.primary");
    browser.wait_until("return document.body.innerText.includes('1 of 4 nodes match')");
}

#[test]
fn a_hostile_estate_runs_nothing_and_loads_nothing() {
    let Some(browser) = Chromium::start() else { return };
    let (_repository, daemon) = hostile();
    for (page, _) in crawl(&daemon, 40) {
        browser.open(&daemon, &page);
        assert_eq!(browser.run("return window.pwned === undefined"), true, "{page}");
        let own = "return performance.getEntriesByType('resource').every((it) => it.name.startsWith(location.origin))";
        assert_eq!(browser.run(own), true, "{page}");
        let width = browser.run("return document.documentElement.scrollWidth");
        assert!(width.as_u64().unwrap() <= 1280, "{page} is {width} wide");
    }
}

/// Writes the pictures of README and guide, with `UPDATE_DOCS=1`.
#[test]
fn pictures_show_the_pages() {
    let directory = root().join("docs/images");
    let pictures = [
        ("home", "/", Scheme::Light),
        ("node", "/nodes/web1.example.com", Scheme::Light),
        ("node-dark", "/nodes/web1.example.com", Scheme::Dark),
        ("groups", "/groups", Scheme::Light),
        (
            "query",
            "/query?rule=os.family%20%3D%20Debian%20and%20name%20~%20%22%5Eweb%22",
            Scheme::Light,
        ),
    ];
    if !updating() {
        return;
    }
    let Some(browser) = Chromium::start() else { return };
    let (_repository, daemon) = fleet_with_a_past();
    std::fs::create_dir_all(&directory).unwrap();
    browser.resize(1200, 800);
    for (name, page, scheme) in pictures {
        browser.prefer(scheme);
        browser.open(&daemon, page);
        std::fs::write(directory.join(format!("console-{name}.png")), browser.picture()).unwrap();
    }
}
