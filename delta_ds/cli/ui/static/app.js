// The frame of the page: which view, of which version, by what stands behind the # of the address.

import { ask } from "./api.js";
import { errorBox, h } from "./dom.js";
import { overview } from "./overview.js";
import { timeline } from "./timeline.js";
import { files } from "./files.js";
import { filter } from "./filter.js";
import { statistics } from "./statistics.js";
import { rows } from "./rows.js";
import { health } from "./health.js";

const VIEWS = {
  overview: ["Overview", overview],
  timeline: ["Timeline", timeline],
  files: ["Files", files],
  filter: ["Filter", filter],
  statistics: ["Statistics", statistics],
  rows: ["Rows", rows],
  health: ["Health", health],
};

const $ = (id) => document.getElementById(id);
let running = new AbortController();
let shown = null;

function place() {
  const [view, query] = location.hash.slice(1).split("?", 2);
  return { view: view in VIEWS ? view : "overview", parameters: Object.fromEntries(new URLSearchParams(query || "")) };
}

function address(view, parameters) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== null && value !== undefined && value !== "") query.set(name, String(value));
  }
  const text = query.toString();
  return `#${view}${text ? `?${text}` : ""}`;
}

/** To a view; the version stays unless another one is named. */
function go(view, parameters = {}) {
  const at = "at" in parameters ? parameters.at : place().parameters.at;
  const next = address(view, { ...parameters, at });
  if (next === location.hash) show();
  else location.hash = next;
}

function drawTabs(current, at) {
  $("tabs").replaceChildren(
    ...Object.entries(VIEWS).map(([name, [label]]) =>
      h("li", {}, h("a", { href: address(name, { at }), "aria-current": name === current ? "page" : null }, label)),
    ),
  );
  const tab = $("tabs").querySelector("[aria-current]");
  $("tabs").scrollLeft = tab.offsetLeft - ($("tabs").clientWidth - tab.offsetWidth) / 2;
}

function drawHeader(table) {
  const parts = table.location.replace(/\/+$/, "").split("/");
  const name = table.name || parts[parts.length - 1] || table.location;
  $("name").textContent = name;
  $("location").textContent = table.location;
  $("location").title = table.location;
  document.title = `${name} version ${table.version} · pydelta`;
  $("at").value = table.version;
  $("earlier").disabled = table.version === 0;
  $("later").disabled = table.version >= table.newest;
  $("past").hidden = table.version === table.newest;
  $("past").textContent = `This is version ${table.version} of ${table.newest}: the table as it was then.`;
}

async function show() {
  running.abort();
  running = new AbortController();
  const { signal } = running;
  const { view, parameters } = place();
  drawTabs(view, parameters.at);
  const main = $("main");
  main.setAttribute("aria-busy", "true");
  const late = setTimeout(() => main.classList.add("waiting"), 150);
  try {
    const table = await ask("table", { at: parameters.at }, signal);
    shown = table;
    drawHeader(table);
    const content = h("div", { class: "view", id: `view-${view}` });
    const context = {
      table,
      parameters,
      go,
      ask: (name, given) => ask(name, given, signal),
    };
    await VIEWS[view][1](content, context);
    if (signal.aborted) return;
    main.replaceChildren(content);
    $("status").textContent = `${VIEWS[view][0]} of version ${table.version}`;
  } catch (error) {
    if (error.name === "AbortError") return;
    main.replaceChildren(errorBox(error));
    if (!("condition" in error)) throw error;
  } finally {
    clearTimeout(late);
    if (!signal.aborted) {
      main.classList.remove("waiting");
      main.removeAttribute("aria-busy");
      main.dataset.place = location.hash;
    }
  }
}

$("when").addEventListener("submit", (event) => {
  event.preventDefault();
  go(place().view, { ...place().parameters, at: $("at").value.trim() });
});
$("earlier").addEventListener("click", () => shown && go(place().view, { ...place().parameters, at: shown.version - 1 }));
$("later").addEventListener("click", () => shown && go(place().view, { ...place().parameters, at: shown.version + 1 }));
$("newest").addEventListener("click", () => go(place().view, { ...place().parameters, at: shown ? shown.newest : "" }));
window.addEventListener("hashchange", show);
show();
