// Elements, numbers and texts. Whatever comes from the table becomes text nodes, never markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return element;
}

/** An element with attributes; those that begin with `on` are listeners. */
export function h(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** The same in a drawing. */
export function s(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

const whole = new Intl.NumberFormat("en-US");
const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

export function count(number) {
  return number === null || number === undefined ? "–" : whole.format(number);
}

export function bytes(number) {
  if (number === null || number === undefined) return "–";
  let unit = 0;
  let value = Math.abs(number);
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  const text = unit === 0 ? count(value) : value.toFixed(1);
  return `${number < 0 ? "−" : ""}${text} ${UNITS[unit]}`;
}

export function percent(share) {
  if (share > 0 && share < 0.001) return "< 0.1 %";
  return `${(share * 100).toFixed(share === 0 || share === 1 ? 0 : 1)} %`;
}

export function plural(number, word) {
  return `${count(number)} ${word}${number === 1 ? "" : "s"}`;
}

/** A time as the server tells it, in UTC, for a cell. */
export function moment(text) {
  if (!text) return "–";
  const plain = text.replace("T", " ").replace(/(\.\d+)?([+-]00:00|Z)$/, "");
  return h("time", { datetime: text, title: `${text} (UTC)` }, plain);
}

/** The values of partition columns in one line. */
export function pairs(values) {
  const entries = Object.entries(values || {});
  return entries.map(([name, value], index) => [
    index ? ", " : null,
    h("span", { class: "quiet" }, `${name}=`),
    value === null ? h("span", { class: "null" }, "null") : value === "" ? h("span", { class: "null" }, "empty") : value,
  ]);
}

export function nothing(text) {
  return h("p", { class: "quiet" }, text);
}

/** What went wrong, as the server says it. */
export function errorBox(error) {
  return h(
    "div",
    { class: "error", role: "alert" },
    error.condition ? h("strong", {}, error.condition) : null,
    h("span", {}, error.message),
  );
}

/**
 * A table. Columns: label, cell (of a row), and perhaps number, sort (its name for the server), wide.
 * On narrow screens rows become cards, unless `scroll` is wanted.
 */
export function table(caption, columns, rows, options = {}) {
  const { sort, onsort, scroll, after, empty } = options;
  if (!rows.length) return nothing(empty || "none");
  const head = h("tr", {}, columns.map((column) => heading(column, sort, onsort)));
  const body = rows.map((row) => {
    const cells = columns.map((column) =>
      h(
        "td",
        { class: [column.number && "number", column.wide && "wide", column.mono && "mono"].filter(Boolean).join(" "), "data-label": column.label },
        column.cell(row),
      ),
    );
    return [h("tr", {}, cells), after ? after(row) : null];
  });
  return h(
    "div",
    { class: scroll ? "scroll" : "cards", tabindex: scroll ? 0 : null, role: scroll ? "region" : null, "aria-label": scroll ? caption : null },
    h("table", {}, h("caption", { class: "unseen" }, caption), h("thead", {}, head), h("tbody", {}, body)),
  );
}

function heading(column, sort, onsort) {
  const attributes = { scope: "col", class: column.number ? "number" : null };
  if (!column.sort || !onsort) return h("th", attributes, column.label);
  const active = sort && sort.by === column.sort;
  attributes["aria-sort"] = active ? (sort.descending ? "descending" : "ascending") : null;
  const descending = active ? !sort.descending : Boolean(column.number);
  return h(
    "th",
    attributes,
    h("button", { type: "button", class: "sort", onclick: () => onsort({ by: column.sort, descending }) },
      column.label, h("span", { "aria-hidden": "true" }, active ? (sort.descending ? " ▾" : " ▴") : " ▵")),
  );
}

/** Which entries of how many are shown, and the way to the others. */
export function pager(offset, shown, total, limit, go) {
  if (total <= limit && offset === 0) return null;
  return h(
    "div",
    { class: "pager" },
    h("button", { type: "button", disabled: offset === 0, onclick: () => go(Math.max(0, offset - limit)) }, "Previous"),
    h("span", {}, `${count(shown ? offset + 1 : 0)}–${count(offset + shown)} of ${count(total)}`),
    h("button", { type: "button", disabled: offset + shown >= total, onclick: () => go(offset + limit) }, "Next"),
  );
}

/** A bar that shows a share between 0 and 1. */
export function bar(share, kind = "") {
  const inside = h("span", { class: kind });
  inside.style.width = `${Math.max(0, Math.min(1, share)) * 100}%`;
  return h("span", { class: "bar", "aria-hidden": "true" }, inside);
}

/** Large numbers with what they count. */
export function figures(...entries) {
  return h("dl", { class: "figures" }, entries.filter(Boolean).map(([label, value, note]) =>
    h("div", {}, h("dt", {}, label), h("dd", {}, value, note ? h("small", {}, note) : null))));
}
