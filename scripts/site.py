"""What mkdocs does not do by itself for the documentation site: a hook of `mkdocs.yml`.

Pages that lie outside `docs/` (the changelog, contributing, security, benchmarks) become pages of the site, links to
them lead there, and the tags of code blocks (`python check`), which are for `spark_tests/product/docs`, are left out.
Search finds guides first, by the words that users type too.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]

# Where a document of the repository is on the site.
OUTSIDE = {
    "CHANGELOG.md": "project/changes.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/security.md",
    "benchmarks/README.md": "project/benchmarks.md",
}

# How much a page counts in search, by the longest beginning of its path: guides first, lists of names and pages
# about the code last.
BOOSTS = {
    "": 1.0,
    "guide/": 4.0,
    "api/": 0.2,
    "architecture.md": 0.1,
    "benchmarks": 0.1,
    "conflict-matrix.md": 0.3,
    "engines.md": 0.3,
    "errors.md": 5.0,  # conditions are typed whole
    "events.md": 0.3,
    "options.md": 0.5,
    "project/": 0.1,
    "properties.md": 0.5,
    "protocol-checklist.md": 0.05,
    "reliability.md": 0.3,
    "settings.md": 0.3,
}
# What users type and the headings of a page do not say.
WORDS = {
    "clusters.md": ["yarn", "emr", "executors"],
    "guide/audit.md": ["lineage", "blame"],
    "guide/catalog-managed-tables.md": ["unity"],
    "guide/change-feeds.md": ["cdc", "cdf"],
    "guide/debug-a-conflict.md": ["concurrent", "exception", "conflict"],
    "guide/first-hour.md": ["quickstart", "tutorial", "install", "installation", "getting", "started"],
    "guide/maintain.md": ["vacuum", "retention", "small", "files", "compaction"],
    "guide/notebooks.md": ["jupyter", "notebook"],
    "guide/on-azure.md": ["abfss", "adls"],
    "guide/on-google-cloud-storage.md": ["gcs"],
    "guide/on-kubernetes.md": ["k8s", "container", "image", "pod"],
    "guide/on-s3.md": ["minio", "aws"],
    "guide/orchestrate.md": ["scheduler"],
    "guide/secure.md": ["password", "secrets"],
    "guide/slow-merge.md": ["slow", "performance"],
    "guide/stream.md": ["streaming", "structured"],
    "guide/time-travel.md": ["restore", "rollback", "undo", "timestamp", "date"],
    "guide/tune.md": ["performance"],
    "guide/without-spark.md": ["pandas", "polars", "duckdb", "arrow"],
    "guide/write.md": ["column", "columns", "rename", "renamed", "schema", "evolution"],
}

_LINK = re.compile(r"(?<!!)\[([^\]\n]*)\]\(([\w./-]+)(#[\w-]+)?\)")
_FENCE = re.compile(r"^(\s*```[\w-]+)((?: [\w:/.@-]+)+)$", re.MULTILINE)


def on_files(files: Files, config: Any) -> Files:
    for source, target in OUTSIDE.items():
        files.append(File.generated(config, target, content=(ROOT / source).read_text()))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    place = page.file.src_uri
    page.meta["search"] = {"boost": BOOSTS[max((part for part in BOOSTS if place.startswith(part)), key=len)]}
    if place in WORDS:
        page.meta["tags"] = WORDS[place]
    source = next((s for s, target in OUTSIDE.items() if target == place), f"docs/{place}")

    def link(found: re.Match[str]) -> str:
        text, target, anchor = found[1], found[2], found[3] or ""
        named = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        there = OUTSIDE.get(named) or (named[5:] if named.startswith("docs/") else None)
        if there is None:  # a file of the repository that is no page
            return text
        return f"[{text}]({posixpath.relpath(there, posixpath.dirname(place) or '.')}{anchor})"

    return _FENCE.sub(r"\1", _LINK.sub(link, markdown))
