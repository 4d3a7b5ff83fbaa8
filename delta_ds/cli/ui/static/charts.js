// Drawings: the history of a table, the ranges of files, the files that a filter reads.

import { bytes, count, h, percent, plural, s } from "./dom.js";

const HEIGHT = 190;
const PAD = { left: 8, right: 8, top: 12, bottom: 22 };

/** Draws anew whenever the width changes. */
function responsive(draw, label) {
  const holder = h("div", { class: "chart" });
  let width = 0;
  new ResizeObserver(() => {
    const next = Math.floor(holder.clientWidth);
    if (next < 40 || next === width) return;
    width = next;
    const drawing = draw(width);
    drawing.setAttribute("role", "img");
    drawing.setAttribute("aria-label", label);
    holder.replaceChildren(drawing);
  }).observe(holder);
  return holder;
}

/** What versions, oldest first, added and removed; a click on one calls `reveal`. */
export function history(versions, reveal) {
  const measures = { bytes: ["Bytes", bytes], files: ["Files", count] };
  const holder = h("div", {});
  const choose = (name) => {
    for (const button of buttons) button.setAttribute("aria-pressed", String(button.dataset.name === name));
    const [label, text] = measures[name];
    holder.replaceChildren(
      responsive((width) => bars(versions, name, text, width, reveal), `${label} added and removed by ${plural(versions.length, "version")}; the table below has the numbers`),
    );
  };
  const buttons = Object.entries(measures).map(([name, [label]]) => h("button", { type: "button", "data-name": name, onclick: () => choose(name) }, label));
  const figure = h(
    "figure",
    {},
    h("figcaption", {},
      h("span", {}, h("span", { class: "key added" }), "added"),
      h("span", {}, h("span", { class: "key removed" }), "removed"),
      h("span", {}, h("span", { class: "key line" }), "in all"),
      h("span", { class: "joined", role: "group", "aria-label": "What is drawn" }, buttons)),
    holder,
  );
  choose("bytes");
  return figure;
}

function bars(versions, name, text, width, reveal) {
  const known = versions.map((row) => ({ version: row.version, operation: row.operation, total: row[name] || 0, added: row[`added_${name}`] || 0, removed: row[`removed_${name}`] || 0 }));
  const inner = { width: width - PAD.left - PAD.right, height: HEIGHT - PAD.top - PAD.bottom };
  const step = inner.width / Math.max(known.length, 1);
  const most = Math.max(1, ...known.map((row) => Math.max(row.added, row.total)));
  const least = Math.max(0, ...known.map((row) => row.removed));
  const scale = inner.height / (most + least);
  const zero = PAD.top + most * scale;
  const thick = Math.max(1, Math.min(28, step * 0.6));
  const x = (index) => PAD.left + step * (index + 0.5);
  const drawing = s("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT });
  drawing.append(s("line", { class: "axis", x1: PAD.left, x2: width - PAD.right, y1: zero, y2: zero }));
  known.forEach((row, index) => {
    const title = `version ${row.version} ${row.operation || ""}: +${text(row.added)} −${text(row.removed)}, in all ${text(row.total)}`;
    const group = s("g", { class: "version", "data-version": row.version, onclick: () => reveal(row.version) }, s("title", {}, title),
      s("rect", { class: "hit", x: x(index) - step / 2, y: 0, width: step, height: HEIGHT }),
      rect("added", x(index) - thick / 2, zero - row.added * scale, thick, row.added * scale),
      rect("removed", x(index) - thick / 2, zero, thick, row.removed * scale));
    drawing.append(group);
  });
  const points = known.map((row, index) => `${x(index)},${zero - row.total * scale}`).join(" ");
  drawing.append(s("polyline", { class: "total", points }));
  if (known.length <= 50) known.forEach((row, index) => drawing.append(s("circle", { class: "total", cx: x(index), cy: zero - row.total * scale, r: 2.5 })));
  const every = Math.max(1, Math.ceil((known.length * 34) / inner.width));
  known.forEach((row, index) => {
    if (index % every === 0) drawing.append(s("text", { x: x(index), y: HEIGHT - 6, "text-anchor": "middle" }, count(row.version)));
  });
  return drawing;
}

function rect(kind, x, y, width, height) {
  return height > 0 ? s("rect", { class: kind, x, y: height < 1 ? y - 0.5 : y, width, height: Math.max(1, height) }) : null;
}

/** Files in the order of the log: which of them are read. */
export function strip(found) {
  if (!found.cells.length) return null;
  const many = found.filesPerCell > 1;
  const cells = found.cells.map((share, index) => {
    const kind = share === 0 ? "skipped" : share === 1 ? "kept" : "some";
    const text = many ? `about ${count(found.filesPerCell)} files: ${percent(share)} read` : `file ${count(index + 1)}: ${share ? "read" : "skipped"}`;
    const cell = h("span", { class: kind, title: text });
    if (kind === "some") cell.style.setProperty("--share", `${20 + share * 80}%`);
    return cell;
  });
  return h("figure", {}, h("div", { class: "strip", role: "img", "aria-label": "The files in the order of the log; those that are read are coloured" }, cells),
    h("figcaption", {}, h("span", {}, h("span", { class: "key kept" }), "read"), h("span", {}, h("span", { class: "key skipped" }), "skipped"),
      h("span", { class: "quiet" }, many ? `a square is about ${plural(found.filesPerCell, "file")}` : "a square is a file")));
}

/** The ranges of files on the axis of a column. */
export function ranges(found) {
  const each = found.bars.length > 60 ? 3 : found.bars.length > 20 ? 7 : 12;
  const gap = each > 3 ? 2 : 0;
  const height = found.bars.length * (each + gap) + 26;
  const draw = (width) => {
    const inner = width - 16;
    const drawing = s("svg", { viewBox: `0 0 ${width} ${height}`, width, height });
    found.bars.forEach((one, index) => {
      const title = `${plural(one.files, "file")}: ${one.from} to ${one.till}${one.read === null ? "" : `, ${percent(one.read)} read`}`;
      drawing.append(s("rect", {
        class: one.read === null ? "range" : one.read > 0 ? "kept" : "skipped",
        x: 8 + one.at * inner, y: index * (each + gap) + 2, width: Math.max(2, (one.to - one.at) * inner), height: each, rx: 1,
      }, s("title", {}, title)));
    });
    const bottom = height - 20;
    drawing.append(s("line", { class: "axis", x1: 8, x2: width - 8, y1: bottom, y2: bottom }),
      s("text", { x: 8, y: height - 5 }, short(found.low)), s("text", { x: width - 8, y: height - 5, "text-anchor": "end" }, short(found.high)));
    return drawing;
  };
  return responsive(draw, `The ranges of ${found.column} in ${plural(found.numFiles, "file")}, from ${found.low} to ${found.high}`);
}

function short(text) {
  return text === null ? "" : text.length > 28 ? `${text.slice(0, 27)}…` : text;
}
