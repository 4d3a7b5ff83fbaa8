"""The code blocks of a page, and what kind each is.

`python`, `sql` and `bash` are run; `text` directly after one of them is what it prints. What no test machine can run
has the tag `check` (`python check`): it is compiled, and the names in it are looked up. `json`, `yaml` and `toml` are
parsed, `properties` are settings whose names are looked up. `title="..."`, `hl_lines="..."` are for the reader only.
"""

from __future__ import annotations

import ast
import re
import textwrap
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
DOCS = ROOT / "docs"

RUN = frozenset({"python", "sql", "bash"})
PARSED = frozenset({"json", "yaml", "toml", "properties"})
# Pages about the code may tell a procedure in words, as `pseudo`.
WITH_PSEUDO_CODE = frozenset({"docs/conflict-matrix.md"})
# Tags of a language beside `check`.
TAGS = {"python": {"check"}, "bash": {"check"}}
# Pages whose examples need servers or clusters: the tests that run them, and the tags that these know.
RUN_ELSEWHERE = {
    "docs/guide/pipelines.md": ("spark_tests/behaviour/spark/test_pipelines.py", set[str]()),
    "docs/clusters.md": ("spark_tests/faults/clusters/test_packages.py", set[str]()),
    "docs/storage.md": ("spark_tests/engines/stores/test_storage_page.py", {"session", "spark"}),
}

_GENERATED = re.compile(r"<!-- generated: (\w+) -->\n.*?<!-- end: \1 -->\n", re.DOTALL)
_FENCE = re.compile(
    r"^(?P<indent> *)(?P<marks>`{3,})(?P<info>[^`\n]*)\n(?P<body>.*?)^(?P=indent)(?P=marks)[ ]*$",
    re.MULTILINE | re.DOTALL,
)
_ADDRESS = re.compile(r"\w+://\S+")
_SECTION = re.compile(r"^## (.+)$", re.MULTILINE)
_FOR_THE_READER = re.compile(r"""\b(?:title|hl_lines|linenums)=(?:"[^"]*"|'[^']*')""")


class UnknownBlock(Exception):
    """A block of which nobody knows how to run or compare it."""


@dataclass(frozen=True)
class Block:
    """One fenced block.

    Attributes
    ----------
    page
        The page's path from the repository's root.
    section
        The last heading of the second level before it.
    line
        The line of its first line of text.
    address
        The table that a block to check is about, where it says one (```` ```python check s3://bucket/table ````).
    prints
        What it prints; None where the page does not say.
    """

    page: str
    section: str
    line: int
    language: str
    tags: frozenset[str]
    text: str
    address: str = ""
    prints: str | None = None

    @property
    def where(self) -> str:
        return f"{self.page}:{self.line}"


def pages() -> list[Path]:
    """Every document with blocks that are the reader's."""
    return [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path) -> list[Block]:
    """The blocks of a page, top to bottom, those of generated parts left out.

    Raises
    ------
    UnknownBlock
        A block has a language or tag that is not known, or is an output of nothing.
    """
    return parse(page.read_text(encoding="utf-8"), name_of(page))


def parse(text: str, page: str) -> list[Block]:
    # Lines stay where they are.
    text = _GENERATED.sub(lambda part: "\n" * part[0].count("\n"), text)
    found: list[Block] = []
    end = 0
    for match in _FENCE.finditer(text):
        line = text.count("\n", 0, match.start()) + 2
        info = _FOR_THE_READER.sub("", match["info"]).split()
        language, tags = (info or [""])[0], [tag for tag in info[1:] if not _ADDRESS.fullmatch(tag)]
        address = next(filter(_ADDRESS.fullmatch, info[1:]), "")
        body = textwrap.dedent(match["body"])
        where = f"{page}:{line}"
        if language == "text":
            if not found or text[end : match.start()].strip() or found[-1].language not in RUN:
                raise UnknownBlock(f"{where}: a block `text` is what the block directly before it prints")
            found[-1] = replace(found[-1], prints=body)
        elif language == "pseudo" and page in WITH_PSEUDO_CODE:
            pass
        elif language not in RUN | PARSED:
            raise UnknownBlock(
                f"{where}: language {language or 'missing'!r} is not known: nobody would run it"
            )
        else:
            section = (_SECTION.findall(text, 0, match.start()) or [""])[-1]
            found.append(Block(page, section, line, language, frozenset(tags), body, address))
        if unknown := set(tags) - TAGS.get(language, set()) - RUN_ELSEWHERE.get(page, ("", set()))[1]:
            raise UnknownBlock(f"{where}: tags {sorted(unknown)} are not known")
        end = match.end()
    outside = _FENCE.sub("", text)
    if "```" in outside:
        raise UnknownBlock(
            f"{page}: a fence is opened and not closed: {outside[outside.index('```') :][:60]!r}"
        )
    return found


def needs_session(page: list[Block]) -> bool:
    """Whether any block names `spark`, or is SQL."""
    return any(
        block.language == "sql" or (block.language == "python" and _names_spark(block)) for block in page
    )


def _names_spark(block: Block) -> bool:
    nodes = [] if "check" in block.tags else ast.walk(ast.parse(block.text, block.where))
    return any(isinstance(node, ast.Name) and node.id == "spark" for node in nodes)
