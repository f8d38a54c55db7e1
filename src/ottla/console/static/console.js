// The console's own script, all of it: it renews what is on the page, follows a search, copies, and hears keys.
// Pages work without it. Text that comes from a cluster only ever enters as text, or as markup that the server escaped.

const FRAGMENT = { "X-Ottla-Fragment": "1" };

function renewable() {
  return [...document.querySelectorAll("[data-live]")];
}

let renewing = false;

async function renew() {
  const parts = renewable();
  if (renewing || !parts.length || document.hidden) return;
  renewing = true;
  try {
    const answer = await fetch(location.href, { headers: FRAGMENT, credentials: "same-origin" });
    if (!answer.ok) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const part of parts) {
      const fresh = page.getElementById(part.id);
      const busy = part.contains(document.activeElement) && document.activeElement.matches("input, select, textarea");
      if (fresh && !busy) swap(part, fresh);
    }
  } finally {
    renewing = false;
  }
}

function swap(part, fresh) {
  const focused = part.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
  const open = [...part.querySelectorAll("details[open]")].map((each) => each.id).filter(Boolean);
  const wraps = [...part.querySelectorAll(".wrap")];
  const scrolls = wraps.map((each) => each.scrollLeft);
  const scrolled = wraps.indexOf(document.activeElement);
  part.replaceChildren(...fresh.childNodes);
  part.querySelectorAll(".wrap").forEach((each, at) => { each.scrollLeft = scrolls[at] || 0; });
  part.querySelectorAll(".wrap")[scrolled]?.focus({ preventScroll: true });
  for (const id of open) document.getElementById(id)?.setAttribute("open", "");
  if (focused) [...part.querySelectorAll("a")].find((each) => each.getAttribute("href") === focused)?.focus();
}

function followLooks() {
  const where = document.body.dataset.events;
  const state = document.getElementById("live-state");
  if (!where || !renewable().length) return;
  const stream = new EventSource(where);
  stream.addEventListener("look", renew);
  stream.onopen = () => { if (state) state.hidden = false; };
  stream.onerror = () => { if (state) state.hidden = true; };
  addEventListener("pagehide", () => stream.close());
  document.addEventListener("visibilitychange", () => { if (!document.hidden) renew(); });
}

// A search, or a tail: rows come one after the other, counts with them, until it ends or is stopped.
function followSearch() {
  const table = document.querySelector("[data-stream]");
  if (!table) return;
  const body = table.querySelector("tbody");
  const counts = document.getElementById("counts");
  const stop = document.getElementById("stop");
  const tail = table.dataset.tail === "1";
  const most = Number(table.dataset.most || 500);
  const stream = new EventSource(table.dataset.stream);
  const end = (words) => {
    stream.close();
    stop.hidden = true;
    if (words) document.getElementById("search-state").textContent = words;
  };
  stop.hidden = false;
  stop.addEventListener("click", () => end("stopped"));
  addEventListener("pagehide", () => stream.close());
  stream.addEventListener("hits", (event) => {
    const made = document.createElement("template");
    made.innerHTML = JSON.parse(event.data).html;
    if (tail) {
      body.prepend(made.content);
      while (body.children.length > most) body.lastElementChild.remove();
    } else {
      body.append(made.content);
    }
  });
  stream.addEventListener("progress", (event) => { counts.textContent = JSON.parse(event.data).words; });
  stream.addEventListener("failed", (event) => end(JSON.parse(event.data).words));
  stream.addEventListener("done", (event) => end(JSON.parse(event.data).words));
  stream.onerror = () => end("the connection was lost");
}

function offerCopies() {
  for (const button of document.querySelectorAll("[data-copy]")) {
    button.hidden = !navigator.clipboard;
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(button.parentElement.querySelector("code").textContent);
      button.textContent = "Copied";
    });
  }
}

const PLACES = { o: "/", b: "/brokers", t: "/topics", g: "/groups", r: "/reassignment", p: "/pipelines", d: "/dead-letters", s: "/schemas" };
let waiting = false;

function hearKeys() {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, textarea, select")) return;
    if (event.key === "/") {
      const field = document.querySelector("[data-slash]");
      if (field) { event.preventDefault(); field.focus(); field.select(); }
    } else if (waiting && PLACES[event.key]) {
      const base = document.body.dataset.events?.replace(/\/events$/, "");
      if (base) location.href = base + PLACES[event.key];
    } else if (event.key === "g") {
      waiting = true;
      setTimeout(() => { waiting = false; }, 1500);
      return;
    }
    waiting = false;
  });
}

// Where rooms are a row that is wider than the screen, the one that we are in is to be seen.
document.querySelector("nav.rooms a[aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
followLooks();
followSearch();
offerCopies();
hearKeys();
