// How the newest version does, and what is due.

import { bytes, count, figures, h, table } from "./dom.js";

export async function health(into, { ask, table: found }) {
  const known = await ask("health");
  const due = known.due.length
    ? table("Due", [
      { label: "Command", cell: (row) => h("b", {}, row.command) },
      { label: "Reason", wide: true, cell: (row) => row.reason },
    ], known.due)
    : h("p", { class: "well" }, "Nothing is due.");
  const advice = known.due.some((row) => row.command !== "fsck")
    ? h("p", { class: "quiet" }, h("code", {}, "pydelta maintain"), " does what is due.")
    : "";
  into.append(
    known.version === found.version ? "" : h("p", { class: "quiet" }, `Of version ${count(known.version)}, the newest.`),
    h("section", { id: "due" }, h("h2", {}, "Due"), due, advice),
    figures(
      ["Files", count(known.num_files)],
      ["Size", bytes(known.size_in_bytes)],
      ["Rows", count(known.num_rows)],
      ["OPTIMIZE would join", count(known.files_to_join), known.files_to_join ? `into ${count(known.files_after)}` : "nothing to join"],
      ["Deleted rows", count(known.deleted_rows), `in ${count(known.files_with_vectors)} files`],
      ["Files without statistics", count(known.files_without_statistics)],
      ["Commits since checkpoint", count(known.commits_since_checkpoint)],
      ["Missing files", count(known.missing_files), known.missing_files ? "fsck names them" : ""],
      ["VACUUM would delete", count(known.unneeded_files), known.unneeded_bytes === null ? "the log does not tell" : bytes(known.unneeded_bytes)],
    ),
  );
}
