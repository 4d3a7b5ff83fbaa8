// Columns: least and greatest value, nulls, and how many files a lookup reads; the ranges of one of them.

import { bar, count, errorBox, h, nothing, pager, table } from "./dom.js";
import { ranges } from "./charts.js";

const LIMIT = 25;

export async function statistics(into, context) {
  const { ask, table: found, parameters, go } = context;
  const offset = Number(parameters.offset || 0);
  if (parameters.column) {
    const holder = h("section", { id: "ranges" });
    into.append(holder);
    try {
      await one(holder, context);
    } catch (error) {
      if (error.name === "AbortError") throw error;
      holder.append(errorBox(error));
    }
  }
  const page = await ask("columns", { version: found.version, offset, limit: LIMIT });
  const files = page.numFiles;
  const reads = (row) => (!row.bounds ? h("span", { class: "quiet" }, "all: no bounds in logs") : [`${row.read.toFixed(1)} of ${count(files)}`, bar(files ? row.read / files : 0)]);
  into.append(
    h("section", {}, h("h2", {}, "Columns"),
      h("p", { class: "quiet" }, "Values as the statistics of the files have them; texts may be cut. The last column tells how many files a lookup of one value reads on average: the fewer, the better the table lies for it."),
      table(
        "Columns",
        [
          { label: "Column", mono: true, cell: (row) => (row.bounds ? h("button", { type: "button", class: "link", "aria-pressed": String(row.column === parameters.column), onclick: () => go("statistics", { column: row.column, offset: offset || "", where: parameters.where }) }, row.name) : row.name) },
          { label: "Type", mono: true, cell: (row) => row.type },
          { label: "Least", mono: true, wide: true, cell: (row) => value(row.low, row) },
          { label: "Greatest", mono: true, wide: true, cell: (row) => value(row.high, row) },
          { label: "Nulls", number: true, cell: (row) => count(row.nulls) },
          { label: "Files without", number: true, cell: (row) => count(row.unknown) },
          { label: "A lookup reads", number: true, cell: reads },
        ],
        page.columns,
        { empty: "no columns" },
      ),
      pager(offset, page.columns.length, page.total, LIMIT, (next) => go("statistics", { offset: next || "", column: parameters.column })) || ""),
  );
}

function value(text, row) {
  return text === null || text === undefined ? h("span", { class: "null" }, row.bounds ? "none" : "–") : text;
}

async function one(holder, { ask, table: found, parameters, go }) {
  const where = parameters.where;
  const range = await ask("ranges", { version: found.version, column: parameters.column, where });
  const stands = range.bars.some((bar_) => bar_.files > 1);
  holder.append(
    h("h2", {}, "Ranges of ", h("span", { class: "mono" }, range.column)),
    h("p", {}, `A lookup of one value reads ${range.read.value.toFixed(1)} of ${count(range.numFiles)} files on average, a range with a tenth of the rows ${range.read.tenth.toFixed(1)}.`,
      range.unknown ? ` ${count(range.unknown)} files have no bounds: every lookup reads them.` : "",
      range.withoutValues ? ` ${count(range.withoutValues)} hold nulls alone.` : ""),
    range.bars.length ? ranges(range) : nothing("no file has bounds of this column"),
    h("p", { class: "quiet" }, stands ? "A bar stands for neighbouring files, least value first." : "A bar is a file, least value first.",
      " Where bars lie over each other, a lookup reads all of them."),
    h("form", { class: "ask", onsubmit: (event) => {
      event.preventDefault();
      go("statistics", { column: parameters.column, where: event.target.where.value, offset: parameters.offset });
    } },
    h("label", { for: "range-where" }, "Colour the files that a predicate reads"),
    h("div", { class: "joined" }, input(where), h("button", { type: "submit" }, "Colour"))),
  );
}

function input(where) {
  const found = h("input", { id: "range-where", name: "where", type: "text", spellcheck: "false" });
  found.value = where || "";
  return found;
}
