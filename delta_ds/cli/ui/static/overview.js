// What the table is: figures, columns, properties, features.

import { bytes, count, figures, h, moment, nothing, table } from "./dom.js";

export async function overview(into, { table: found }) {
  into.append(
    figures(
      ["Version", count(found.version), found.version === found.newest ? "newest" : `of ${count(found.newest)}`],
      ["Rows", count(found.rows), found.rows === null ? "not counted by the log" : null],
      ["Files", count(found.files)],
      ["Size", bytes(found.bytes)],
      found.deleted ? ["Deleted rows", count(found.deleted), "in deletion vectors"] : null,
    ),
    h("section", {}, h("h2", {}, "Description"), description(found)),
    h("section", {}, h("h2", {}, "Columns"), columns(found)),
    h("section", {}, h("h2", {}, "Properties"), properties(found)),
    h("section", {}, h("h2", {}, "Protocol and features"), features(found)),
  );
}

function description(found) {
  const entries = [
    ["Location", h("span", { class: "mono" }, found.location)],
    ["Name", found.name],
    ["Description", found.description],
    ["Id", h("span", { class: "mono" }, found.id)],
    ["Created", found.createdAt ? moment(found.createdAt) : null],
    ["Committed", moment(found.lastModified)],
    ["Partitioned by", found.partitionColumns.join(", ")],
    ["Clustered by", found.clusteringColumns.join(", ")],
    ["Metadata domains", found.domains.join(", ")],
    ["Applications with transactions", found.applications ? count(found.applications) : null],
  ].filter(([, value]) => value);
  return h("dl", { class: "pairs" }, entries.map(([label, value]) => h("div", {}, h("dt", {}, label), h("dd", {}, value))));
}

function columns(found) {
  const partitions = new Set(found.partitionColumns);
  const name = (row) => {
    const label = h("span", { class: "mono indent" }, row.name);
    label.style.paddingInlineStart = `${row.depth * 1.25}rem`;
    return [label, row.depth === 0 && partitions.has(row.name) ? h("span", { class: "tag" }, "partition") : null];
  };
  const shape = [
    { label: "Column", cell: name },
    { label: "Type", mono: true, cell: (row) => row.type },
    { label: "Nulls", cell: (row) => (row.nullable ? "allowed" : "not null") },
    { label: "Comment", wide: true, cell: (row) => row.comment || "" },
    { label: "Metadata", wide: true, mono: true, cell: (row) => (Object.keys(row.metadata).length ? JSON.stringify(row.metadata) : "") },
  ].filter(({ label }) => (label !== "Comment" || found.columns.some((row) => row.comment)) && (label !== "Metadata" || found.columns.some((row) => Object.keys(row.metadata).length)));
  const more = found.numColumns - found.columns.length;
  return [table("Columns", shape, found.columns, { empty: "no columns" }), more > 0 ? nothing(`and ${count(more)} more fields`) : null];
}

function properties(found) {
  return table(
    "Properties",
    [
      { label: "Property", mono: true, cell: (row) => row.name },
      { label: "Value", mono: true, wide: true, cell: (row) => row.value },
      { label: "Meaning", wide: true, cell: (row) => h("span", { class: "quiet" }, inWords(row.meaning || "")) },
    ],
    found.properties,
    { empty: "no properties are set" },
  );
}

/** Texts of ours, with code between backticks. */
function inWords(text) {
  return text.split("`").map((part, index) => (index % 2 ? h("code", {}, part) : part));
}

function features(found) {
  const on = (row) => (row.on === null ? "unknown here" : row.on ? "on" : "supported, not turned on");
  return [
    h("p", {}, "Readers need version ", h("b", {}, count(found.minReaderVersion)), ", writers version ", h("b", {}, count(found.minWriterVersion)), "."),
    table(
      "Features",
      [
        { label: "Feature", mono: true, cell: (row) => row.name },
        { label: "Asked of", cell: (row) => (row.kind === "writer" ? "writers" : row.kind ? "readers and writers" : "–") },
        { label: "State", cell: on },
        { label: "By", mono: true, wide: true, cell: (row) => row.property || "" },
      ],
      found.features,
      { empty: "no features" },
    ),
  ];
}
