// What a predicate reads: files kept and skipped, by which rules, and where they lie in the log.

import { bar, bytes, count, errorBox, figures, h, nothing, percent, table } from "./dom.js";
import { strip } from "./charts.js";
import { fileList } from "./files.js";

export async function filter(into, context) {
  const { parameters, table: found, go } = context;
  const input = h("input", { id: "where", name: "where", type: "text", spellcheck: "false", autocapitalize: "off", placeholder: example(found), "aria-describedby": "where-help" });
  input.value = parameters.where || "";
  const form = h(
    "form",
    { class: "ask", onsubmit: (event) => {
      event.preventDefault();
      go("filter", { where: input.value });
    } },
    h("label", { for: "where" }, "Predicate"),
    h("div", { class: "joined" }, input, h("button", { type: "submit" }, "Explain")),
    h("p", { id: "where-help", class: "quiet" }, `Spark SQL, as after WHERE. Times without a zone are of ${found.zone}. No data file is read for the answer.`),
  );
  into.append(form);
  if (!(parameters.where || "").trim()) {
    into.append(nothing("The answer says which files a query with this predicate reads, and by what the others are skipped."));
    return;
  }
  try {
    await answer(into, context);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    into.append(errorBox(error));
  }
}

function example(found) {
  const column = found.partitionColumns[0] || (found.columns[0] && found.columns[0].name) || "id";
  return `${column} = 'x'`;
}

async function answer(into, { ask, parameters, table: found, go }) {
  const where = parameters.where;
  const summary = await ask("filter", { version: found.version, where });
  const { all, read } = summary;
  into.append(
    h("p", { class: "verdict", id: "verdict" }, `${count(read.files)} of ${count(all.files)} files are read`,
      all.files ? h("span", { class: "quiet" }, ` (${percent(read.files / all.files)}; ${bytes(read.bytes)} of ${bytes(all.bytes)})`) : null),
    bar(all.files ? read.files / all.files : 0, "kept"),
    figures(["Files skipped", count(all.files - read.files)], ["Bytes skipped", bytes(all.bytes - read.bytes)],
      ["Rows in files read", count(read.rows), "before the predicate is applied"]),
    strip(summary.strip) || "",
    h("section", {}, h("h2", {}, "Why"), table(
      "Rules",
      [
        { label: "Files are", cell: (row) => h("span", { class: row.kept ? "kept tag" : "skipped tag" }, row.kept ? "read" : "skipped") },
        { label: "Because of", mono: true, wide: true, cell: (row) => row.rule },
        { label: "Files", number: true, cell: (row) => count(row.files) },
        { label: "Bytes", number: true, cell: (row) => bytes(row.bytes) },
      ],
      summary.rules,
      { empty: "the table has no files" },
    )),
  );
  const list = h("div", {});
  const kinds = [["", "All"], ["yes", "Read"], ["no", "Skipped"]];
  const kept = parameters.kept || "";
  into.append(
    h("section", {}, h("h2", {}, "Files"),
      h("p", { class: "joined", role: "group", "aria-label": "Which files" }, kinds.map(([value, label]) =>
        h("button", { type: "button", "aria-pressed": String(value === kept), onclick: () => go("filter", { where, kept: value }) }, label))),
      list),
    h("p", {}, h("button", { type: "button", onclick: () => go("rows", { where }) }, "Show rows that match")),
  );
  await fileList(list, ask, { version: found.version, where, kept }, false);
}
