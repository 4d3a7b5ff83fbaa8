"""Find stilted English in the texts that users read: pages, errors, log events, help and docstrings of the API.

    python scripts/check_prose.py               all texts; exits with 1 if there is a finding
    python scripts/check_prose.py docs/sql.md   these files

The rules are lines of `prose_words.txt`. Code, names in backquotes, addresses and generated parts are not looked at.
Needs nothing but Python.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RULES = ROOT / "scripts" / "prose_words.txt"
# What users read; pages and modules for those who change the code are not among them.
READ_BY_USERS = (
    "README.md",
    "docs/clusters.md",
    "docs/command-line.md",
    "docs/commands.md",
    "docs/compatibility.md",
    "docs/connect.md",
    "docs/delta-spark-code.md",
    "docs/index.md",
    "docs/not-promised.md",
    "docs/spark-versions.md",
    "docs/sql.md",
    "docs/storage.md",
    "docs/streaming.md",
    "docs/guide/*.md",
    "delta_ds/api/*.py",
    "delta_ds/cli/*.py",
    "delta_ds/conditions/*.py",
    "delta_ds/events/*.py",
    "delta_ds/spark/api/*.py",
)

_NOT_PROSE = re.compile(
    r"<!-- (?:generated|measured).*?<!-- end[^\n]*|^ *```.*?^ *```$|``.*?``|`[^`\n]*`|\]\([^)\s]*\)|\b\w+://\S+",
    re.MULTILINE | re.DOTALL,
)


def rules(text: str) -> list[tuple[re.Pattern[str], str]]:
    """The rules of a file: what is refused, and what to write instead.

    Raises
    ------
    ValueError
        A line is neither a rule nor a comment.
    """
    found = []
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        pattern, separator, instead = line.partition(" = ")
        if not separator:
            raise ValueError(f"no rule: {line!r}")
        found.append((re.compile(pattern.replace(" ", r"\s+"), re.IGNORECASE), instead))
    return found


def _blank(found: re.Match[str]) -> str:
    """As many lines as before, so that findings name theirs."""
    return "~" + "\n" * found[0].count("\n")


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """The texts of a page or a module, each with the line that it begins at."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        yield 1, _NOT_PROSE.sub(_blank, text)
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value.strip():
            yield (
                node.lineno,
                _NOT_PROSE.sub(_blank, re.sub(r"^ *(?:>>>|\.\.\.).*$", "", node.value, flags=re.MULTILINE)),
            )


def findings(paths: list[Path], known: list[tuple[re.Pattern[str], str]]) -> Iterator[str]:
    """`file:line: words: what to write instead` for each finding."""
    for path in paths:
        for line, text in prose(path):
            for pattern, instead in known:
                for match in pattern.finditer(text):
                    at = line + text.count("\n", 0, match.start())
                    words = " ".join(match[0].split())
                    yield f"{path.relative_to(ROOT) if path.is_relative_to(ROOT) else path}:{at}: {words!r}: {instead}"


def main() -> int:
    given = [Path(name).resolve() for name in sys.argv[1:]]
    paths = given or [path for pattern in READ_BY_USERS for path in sorted(ROOT.glob(pattern))]
    found = list(findings(paths, rules(RULES.read_text(encoding="utf-8"))))
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
