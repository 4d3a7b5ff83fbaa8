// The first rows, or the first that match a predicate.

import { count, errorBox, h, nothing, table } from "./dom.js";

const LIMIT = 50;

export async function rows(into, context) {
  const { parameters, go } = context;
  const input = h("input", { id: "rows-where", name: "where", type: "text", spellcheck: "false", autocapitalize: "off" });
  input.value = parameters.where || "";
  into.append(
    h("form", { class: "ask", onsubmit: (event) => {
      event.preventDefault();
      go("rows", { where: input.value });
    } },
    h("label", { for: "rows-where" }, "Predicate (may be empty)"),
    h("div", { class: "joined" }, input, h("button", { type: "submit" }, "Show"))),
  );
  try {
    await list(into, context);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    into.append(errorBox(error));
  }
}

async function list(into, { ask, table: found, parameters }) {
  const page = await ask("rows", { version: found.version, where: parameters.where, limit: LIMIT });
  const columns = page.columns.map((column, index) => ({
    label: column.name,
    mono: true,
    cell: (row) => (row[index] === null ? h("span", { class: "null" }, "null") : row[index]),
  }));
  into.append(table("Rows", columns, page.rows, { scroll: true, empty: page.stopped ? "none was found in time" : "no rows" }));
  const notes = [];
  if (page.more) notes.push(`Only the first ${count(page.rows.length)} rows.`);
  if (page.stopped) notes.push("Looking for more took too long and was given up.");
  if (page.numColumns > page.columns.length) notes.push(`Only the first ${count(page.columns.length)} of ${count(page.numColumns)} columns.`);
  if (notes.length) into.append(nothing(notes.join(" ")));
}
