"""What mkdocs does not do by itself for the documentation site: a hook of `mkdocs.yml`.

Pages that lie outside `docs/` (the changelog, contributing, security, benchmarks) become pages of the site, links to
them lead there, and the tags of code blocks (`python check`), which are for `spark_tests/product/docs`, are left out.
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

_LINK = re.compile(r"(?<!!)\[([^\]\n]*)\]\(([\w./-]+)(#[\w-]+)?\)")
_FENCE = re.compile(r"^(\s*```[\w-]+)((?: [\w:/.@-]+)+)$", re.MULTILINE)


def on_files(files: Files, config: Any) -> Files:
    for source, target in OUTSIDE.items():
        files.append(File.generated(config, target, content=(ROOT / source).read_text()))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    place = page.file.src_uri
    source = next((s for s, target in OUTSIDE.items() if target == place), f"docs/{place}")

    def link(found: re.Match[str]) -> str:
        text, target, anchor = found[1], found[2], found[3] or ""
        named = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        there = OUTSIDE.get(named) or (named[5:] if named.startswith("docs/") else None)
        if there is None:  # a file of the repository that is no page
            return text
        return f"[{text}]({posixpath.relpath(there, posixpath.dirname(place) or '.')}{anchor})"

    return _FENCE.sub(r"\1", _LINK.sub(link, markdown))
