// The files of a version: by partition, and one by one.

import { bar, bytes, count, figures, h, moment, nothing, pager, pairs, table } from "./dom.js";

const LIMIT = 50;

export async function files(into, { ask, table: found, parameters, go }) {
  const partitioned = found.partitionColumns.length > 0;
  const chosen = parameters.partition === undefined ? null : Number(parameters.partition);
  into.append(figures(["Files", count(found.files)], ["Size", bytes(found.bytes)], ["Rows", count(found.rows)],
    ["Mean size", found.files ? bytes(found.bytes / found.files) : "–"]));
  if (partitioned) {
    const holder = h("div", {});
    into.append(h("section", {}, h("h2", {}, `By partition: ${found.partitionColumns.join(", ")}`), holder));
    await partitions(holder, ask, found.version, chosen, go);
  }
  const list = h("div", {});
  into.append(h("section", { id: "file-list" }, h("h2", {}, chosen === null ? "Files" : "Files of one partition"),
    chosen === null ? null : h("p", {}, h("button", { type: "button", onclick: () => go("files", {}) }, "All files")), list));
  await fileList(list, ask, { version: found.version, partition: chosen }, partitioned);
}

async function partitions(holder, ask, version, chosen, go) {
  const state = { sort: { by: "values", descending: false }, offset: 0 };
  const load = async () => {
    const found = await ask("partitions", { version, sort: state.sort.by, descending: state.sort.descending, offset: state.offset, limit: LIMIT });
    holder.replaceChildren(
      table(
        "Partitions",
        [
          { label: "Partition", mono: true, wide: true, sort: "values", cell: (row) =>
            h("button", { type: "button", class: "link", "aria-pressed": String(row.partition === chosen), onclick: () => go("files", { partition: row.partition }) }, pairs(row.values)) },
          { label: "Files", number: true, sort: "files", cell: (row) => count(row.files) },
          { label: "Rows", number: true, sort: "rows", cell: (row) => count(row.rows) },
          { label: "Bytes", number: true, sort: "bytes", cell: (row) => [bytes(row.bytes), bar(row.bytes / found.most)] },
        ],
        found.partitions,
        { sort: state.sort, onsort: (sort) => again({ sort, offset: 0 }) },
      ),
      ...[pager(state.offset, found.partitions.length, found.total, LIMIT, (offset) => again({ offset }))].filter(Boolean),
    );
  };
  const again = (changed) => {
    Object.assign(state, changed);
    return load();
  };
  await load();
}

/** A list of files that can be sorted and paged; with a predicate, why each is read or skipped. */
export async function fileList(holder, ask, asked, partitioned) {
  const state = { sort: { by: "path", descending: false }, offset: 0 };
  const load = async () => {
    const found = await ask("files", { ...asked, sort: state.sort.by, descending: state.sort.descending, offset: state.offset, limit: LIMIT });
    const columns = [
      asked.where ? { label: "Read", cell: (row) => h("span", { class: row.kept ? "kept tag" : "skipped tag" }, row.kept ? "read" : "skipped") } : null,
      { label: "Path", mono: true, wide: true, sort: "path", cell: (row) => row.path },
      partitioned && !asked.where ? { label: "Partition", mono: true, cell: (row) => pairs(row.values) } : null,
      asked.where ? { label: "Why", wide: true, mono: true, cell: (row) => row.rule } : null,
      { label: "Size", number: true, sort: "bytes", cell: (row) => bytes(row.size) },
      { label: "Rows", number: true, sort: "rows", cell: (row) => count(row.rows) },
      { label: "Deleted", number: true, sort: "deleted", cell: (row) => count(row.deleted) },
      { label: "Modified (UTC)", sort: "modified", cell: (row) => moment(row.modified) },
    ].filter(Boolean);
    holder.replaceChildren(
      found.files.length
        ? table("Files", columns, found.files, { sort: state.sort, onsort: (sort) => again({ sort, offset: 0 }) })
        : nothing("no files"),
      ...[pager(state.offset, found.files.length, found.total, LIMIT, (offset) => again({ offset }))].filter(Boolean),
    );
  };
  const again = (changed) => {
    Object.assign(state, changed);
    return load();
  };
  await load();
}
