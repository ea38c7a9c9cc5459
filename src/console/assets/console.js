// What pages cannot do alone. Every page works without this file.

const editable = (element) => element.closest("input, textarea, select, [contenteditable]");

// Rows that `j` and `k` move through: the first link of each row of a table or tree.
const rows = () => [...document.querySelectorAll("main tbody tr, main .tree .row")].filter((it) => it.querySelector("a") && it.offsetParent);

function move(step) {
  const all = rows();
  if (all.length === 0) return;
  const at = all.findIndex((it) => it.contains(document.activeElement));
  const next = all[Math.min(Math.max(at + step, 0), all.length - 1)];
  next.querySelector("a").focus();
  next.scrollIntoView({ block: "nearest" });
}

function help() {
  let dialog = document.querySelector("#keys");
  if (!dialog) {
    dialog = document.createElement("dialog");
    dialog.id = "keys";
    const title = document.createElement("h2");
    title.textContent = "Keys";
    const list = document.createElement("dl");
    for (const [key, what] of [["/", "search nodes"], ["j, k", "next, previous row"], ["Enter", "open the row"], ["g h", "home"], ["g n", "nodes"], ["g g", "groups"], ["g c", "commits"], ["?", "this help"]]) {
      const name = document.createElement("dt");
      const text = document.createElement("dd");
      name.textContent = key;
      text.textContent = what;
      list.append(name, text);
    }
    const close = document.createElement("form");
    close.method = "dialog";
    const button = document.createElement("button");
    button.textContent = "Close";
    close.append(button);
    dialog.setAttribute("aria-label", "Keys");
    dialog.append(title, list, close);
    document.body.append(dialog);
  }
  dialog.showModal();
}

let prefix = "";
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || editable(event.target)) return;
  if (document.querySelector("dialog[open]")) return;
  const link = (path) => document.querySelector(`nav.sections a[href*="${path}"]`);
  if (prefix === "g") {
    prefix = "";
    const target = { h: document.querySelector("a.brand"), n: link("/nodes"), g: link("/groups"), c: link("/commits") }[event.key];
    if (target) {
      event.preventDefault();
      target.click();
    }
    return;
  }
  switch (event.key) {
    case "/": event.preventDefault(); document.querySelector("#search")?.focus(); break;
    case "j": move(1); break;
    case "k": move(-1); break;
    case "g": prefix = "g"; setTimeout(() => { prefix = ""; }, 1000); break;
    case "?": help(); break;
  }
});
document.querySelectorAll(".keys").forEach((it) => { it.hidden = false; });

// Buttons that copy the text of an element. Without a clipboard (plain HTTP to another host) they select it.
function offerCopies(root) {
  for (const source of root.querySelectorAll("[data-copy]")) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      const copied = await navigator.clipboard?.writeText(source.textContent).then(() => true, () => false);
      if (!copied) getSelection().selectAllChildren(source);
      button.textContent = copied ? "Copied" : "Selected";
      setTimeout(() => { button.textContent = "Copy"; }, 2000);
    });
    if (source.tagName === "PRE") {
      const frame = document.createElement("div");
      frame.className = "copyable";
      source.replaceWith(frame);
      frame.append(source, button);
    } else {
      source.after(button);
    }
  }
}
offerCopies(document);

// Replaces parts of the page that are named in `data-part` by those of another answer of the same page, unless one
// that was asked for later is there already.
let begun = 0;
let shown = 0;
async function refresh(address) {
  const mine = ++begun;
  const response = await fetch(address, { headers: { accept: "text/html" }, redirect: "error" });
  if (!response.ok && response.status !== 400) return false;
  const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
  if (mine < shown) return false;
  shown = mine;
  let has = false;
  for (const part of document.querySelectorAll("[data-part]")) {
    const found = fresh.querySelector(`[data-part="${part.dataset.part}"]`);
    if (!found) continue;
    has = true;
    offerCopies(found);
    part.replaceWith(document.adoptNode(found));
  }
  if (mine === begun) completePart();
  // The page of an error has none.
  return has;
}

// An answer about the first nodes is followed by that about all.
function completePart() {
  const whole = document.querySelector("a[data-whole]");
  if (whole) refresh(whole.href).catch(() => false);
}
completePart();

// Forms that answer while one types.
for (const form of document.querySelectorAll("form[data-live]")) {
  let waiting;
  form.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(async () => {
      // What the form does not ask for, as the order of a list, stays.
      const query = new URLSearchParams(location.search);
      for (const name of ["offset", "all"]) query.delete(name);
      const typed = new FormData(form);
      // Either of them names the point of history.
      if (typed.has("commit")) query.delete("at");
      for (const [name, value] of typed) value === "" ? query.delete(name) : query.set(name, value);
      const address = `${form.getAttribute("action")}?${query}`;
      if (await refresh(address).catch(() => false)) history.replaceState(null, "", address);
    }, 250);
  });
}

// Pages that stay true while they are open.
if (document.querySelector("[data-part][data-fresh]")) {
  const every = 10_000;
  const again = async () => {
    if (!document.hidden) await refresh(location.href).catch(() => false);
    setTimeout(again, every);
  };
  setTimeout(again, every);
  const told = document.querySelector("[data-events]")?.dataset.events;
  if (told) {
    const events = new EventSource(told);
    let first = true;
    events.addEventListener("status", () => {
      if (!first) refresh(location.href).catch(() => false);
      first = false;
    });
  }
}
