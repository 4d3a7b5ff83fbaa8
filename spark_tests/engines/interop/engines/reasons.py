"""Errors of engines as one short line, the same in every run."""

from __future__ import annotations

import re
from pathlib import Path

LONGEST = 160


def reason(error: str, path: Path) -> str:
    """What an error says, without where the table lay and what else changes from run to run."""
    text = error.replace(str(path), "<table>").replace(str(path.parent), "<folder>")
    text = re.sub(r"(file:)?/+<", "<", text)
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "<id>", text)
    text = re.sub(r"/[^ '\"]*?/(site-packages|rust|\.cargo|build)/[^ '\":]*", "<source>", text)
    text = re.sub(r"\x1b\[[0-9;]*m", "", text)
    text = re.sub(r"Py4JJavaError: An error occurred while calling \w+\.\w+\.\s*:\s*(\w+\.)*", "", text)
    # Traces of Rust, and what Polars says of its plan.
    text = re.split(r"\s+0: delta_kernel|\s+This error occurred with", text)[0]
    text = re.sub(r"/\w{2,3}/part-", "/part-", text)
    text = re.sub(r"\s+", " ", text).strip()
    return text if len(text) <= LONGEST else text[: LONGEST - 1].rstrip() + "…"
