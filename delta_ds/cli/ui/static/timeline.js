// Versions, newest first, with what each changed; a drawing above, the actions of a version below it.

import { bytes, count, errorBox, h, moment, nothing, pager, plural, table } from "./dom.js";
import { history } from "./charts.js";

const LIMIT = 50;
const FILES = 25;

export async function timeline(into, { ask, parameters, go }) {
  const found = await ask("timeline", { before: parameters.before, limit: LIMIT });
  const open = new Map();
  const places = new Map();

  const toggle = (version) => open.get(version) && open.get(version)();
  const list = table("Versions", columns((version) => toggle(version), open), found.versions, {
    empty: "no versions",
    after: (row) => {
      const cell = h("td", { colspan: 8 });
      const line = h("tr", { class: "details", hidden: true, id: `details-${row.version}` }, cell);
      places.set(row.version, line);
      return line;
    },
  });
  for (const row of found.versions) {
    open.set(row.version, () => flip(row, places.get(row.version), list, ask, go));
  }
  const navigation = h(
    "div",
    { class: "pager" },
    h("button", { type: "button", disabled: !parameters.before, onclick: () => go("timeline", {}) }, "Newest"),
    h("span", {}, span(found.versions)),
    h("button", { type: "button", disabled: !found.older, onclick: () => go("timeline", { before: last(found.versions).version }) }, "Older"),
  );
  const reveal = (version) => {
    if (places.get(version).hidden) toggle(version);
    places.get(version).previousElementSibling.scrollIntoView({ block: "nearest", behavior: "smooth" });
  };
  into.append(history([...found.versions].reverse(), reveal), list, navigation);
  if (parameters.show && open.has(Number(parameters.show))) toggle(Number(parameters.show));
}

const last = (list) => list[list.length - 1];

function span(versions) {
  if (!versions.length) return "no versions";
  return `versions ${count(last(versions).version)} to ${count(versions[0].version)}`;
}

function columns(toggle, open) {
  return [
    {
      label: "Version",
      number: true,
      cell: (row) =>
        h("button", { type: "button", class: "link", id: `version-${row.version}`, "aria-expanded": "false", "aria-controls": `details-${row.version}`, onclick: () => toggle(row.version) }, count(row.version)),
    },
    { label: "Time (UTC)", cell: (row) => moment(row.timestamp) },
    { label: "Operation", cell: (row) => row.operation || h("span", { class: "null" }, "not said") },
    { label: "By", cell: (row) => row.userName || row.engineInfo || "–" },
    { label: "Rows", number: true, cell: (row) => rowChange(row.rows) },
    { label: "Files", number: true, cell: (row) => change(row.added_files, row.removed_files, count) },
    { label: "Bytes", number: true, cell: (row) => change(row.added_bytes, row.removed_bytes, bytes) },
    { label: "Then", number: true, cell: (row) => (row.files === undefined ? "–" : `${plural(row.files, "file")}, ${bytes(row.bytes)}`) },
  ];
}

function change(added, removed, text) {
  if (added === null || added === undefined) return "–";
  return signs([["added", "+", added], ["removed", "−", removed]], text);
}

function rowChange(rows) {
  return signs([["added", "+", rows.inserted], ["changed", "~", rows.updated], ["removed", "−", rows.deleted]], count);
}

function signs(parts, text) {
  const shown = parts.filter(([, , number]) => number);
  if (!shown.length) return h("span", { class: "quiet" }, "0");
  return shown.map(([kind, sign, number], index) => [index ? " " : null, h("span", { class: kind }, `${sign}${text(number)}`)]);
}

async function flip(row, line, list, ask, go) {
  const button = list.querySelector(`#version-${row.version}`);
  line.hidden = !line.hidden;
  button.setAttribute("aria-expanded", String(!line.hidden));
  if (line.hidden) return;
  line.firstChild.replaceChildren(nothing("reading the commit ..."));
  try {
    line.firstChild.replaceChildren(await details(row, ask, go));
  } catch (error) {
    if (error.name !== "AbortError") line.firstChild.replaceChildren(errorBox(error));
  }
}

async function details(row, ask, go) {
  const actions = h("div", {});
  const load = async (offset) => {
    const found = await ask("commit", { version: row.version, offset, limit: FILES });
    const total = found.counts.add + found.counts.remove + found.counts.cdc;
    actions.replaceChildren(
      h("h3", {}, "Actions"),
      h("p", { class: "quiet" }, `${plural(found.counts.add, "file")} added, ${count(found.counts.remove)} removed, ${plural(found.counts.cdc, "change file")}`),
      ...found.actions.map(action),
      table(
        `Files of version ${row.version}`,
        [
          { label: "Action", mono: true, cell: (file) => h("span", { class: { add: "added", remove: "removed" }[file.kind] }, file.kind) },
          { label: "Path", mono: true, wide: true, cell: (file) => action(file) },
          { label: "Size", number: true, cell: (file) => bytes(file.size) },
          { label: "Rows", number: true, cell: (file) => count(file.rows) },
          { label: "Deleted", number: true, cell: (file) => count(file.deleted) },
        ],
        found.files,
        { empty: "no files" },
      ),
      ...[pager(offset, found.files.length, total, FILES, load)].filter(Boolean),
    );
  };
  await load(0);
  return h(
    "div",
    { class: "inside" },
    h("p", {}, h("button", { type: "button", onclick: () => go("overview", { at: row.version }) }, `Show the table at version ${row.version}`)),
    h("div", { class: "columns" }, named("Parameters", row.parameters, "stacked"), named("Metrics", row.metrics, "numbers"), named("Commit", {
      engine: row.engineInfo, user: row.userName, "user metadata": row.userMetadata, isolation: row.isolationLevel,
      "blind append": row.isBlindAppend === null ? null : String(row.isBlindAppend),
    }, "stacked")),
    actions,
  );
}

function named(title, values, form) {
  const entries = Object.entries(values).filter(([, value]) => value !== null && value !== undefined && value !== "");
  if (!entries.length) return null;
  return h("div", {}, h("h3", {}, title), h("dl", { class: `pairs ${form}` }, entries.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", { class: "mono" }, value)))));
}

function action(found) {
  const more = found.cut ? h("p", { class: "quiet" }, `${count(found.cut)} more letters: pydelta log shows all`) : null;
  return h("details", { class: "action" }, h("summary", { class: "mono" }, found.path || found.kind || "action"), h("pre", {}, found.text), more);
}
