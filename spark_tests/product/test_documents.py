"""The documents and the code agree: generated parts are current, and what one names of the other is there."""

from __future__ import annotations

import re
import runpy
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PACKAGE = ROOT / "delta_ds"
CHECKLIST = DOCS / "protocol-checklist.md"
MATRIX = DOCS / "conflict-matrix.md"

_BLOCK = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
_CODE = r"[A-Z]{2,3}-(?:RW|R|W)-[0-9]{2}"


def sources() -> list[Path]:
    """Every text of the project that people write, but for the corpora of recorded tables and programs."""
    folders = ("delta_ds", "spark_tests", "docs", "benchmarks", "examples", "scripts")
    found = [path for folder in folders for path in (ROOT / folder).rglob("*")] + list(ROOT.glob("*"))
    kept = (".py", ".java", ".md", ".toml", ".sh")
    return [path for path in found if path.suffix in kept and "corpora" not in path.parts]


@pytest.fixture(scope="module")
def texts() -> dict[Path, str]:
    return {path: path.read_text() for path in sources()}


def test_generated_parts_are_what_the_code_says() -> None:
    outdated = runpy.run_path(str(ROOT / "scripts" / "generate_docs.py"))["outdated"]()
    assert not outdated, f"run scripts/generate_docs.py: {', '.join(path.name for path in outdated)}"


def _demands() -> dict[str, str]:
    """The code of each demand and what stands below it: where it is honoured."""
    lines = CHECKLIST.read_text().splitlines()
    found = {}
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        if match := re.match(rf"- \*\*({_CODE})\*\*", line):
            found[match[1]] = below
    return found


def test_every_demand_that_is_cited_is_in_the_checklist(texts: dict[Path, str]) -> None:
    known = set(_demands())
    groups = {code.split("-")[0] for code in known}
    cited = {
        (code, path.relative_to(ROOT).as_posix())
        for path, text in texts.items()
        for code in re.findall(rf"\b{_CODE}\b", text)
        if code.split("-")[0] in groups
    }
    assert not sorted((code, where) for code, where in cited if code not in known)


def test_every_section_and_group_that_is_cited_is_there(texts: dict[Path, str]) -> None:
    groups = {code.split("-")[0] for code in _demands()}
    for document in (CHECKLIST, MATRIX):
        sections = set(re.findall(r"^## (\d+)\.", document.read_text(), re.MULTILINE))
        for path, text in texts.items():
            for cited in re.findall(rf"{document.stem},? sections? (\d+(?:, \d+|,? and \d+| to \d+)*)", text):
                assert set(re.findall(r"\d+", cited)) <= sections, f"{path}: {document.stem} {cited}"
            for cited in re.findall(rf"{document.stem} [^\n]*?\b([A-Z]{{2,3}})-\*", text):
                assert cited in groups, f"{path}: {cited}"


def _paths(text: str) -> list[str]:
    return re.findall(r"`([\w/]+\.(?:py|java))`", text)


def test_every_demand_says_where_it_is_honoured() -> None:
    for code, below in _demands().items():
        where, _, tests = below.partition("Tests: ")
        assert _paths(where) or "Nothing to honour" in where or "Refused" in where, f"{code}: {below!r}"
        assert [name for name in _paths(where) if not (PACKAGE / name).is_file()] == [], code
        assert [name for name in _paths(tests) if not (ROOT / "spark_tests" / name).is_file()] == [], code


def test_a_demand_names_the_modules_that_cite_it(texts: dict[Path, str]) -> None:
    demands = _demands()
    missing = [
        (code, name)
        for path, text in texts.items()
        if path.is_relative_to(PACKAGE)
        for name in [path.relative_to(PACKAGE).as_posix()]
        for code in set(re.findall(rf"\b{_CODE}\b", text))
        if code in demands and f"`{name}`" not in demands[code].partition("Tests: ")[0]
    ]
    assert not sorted(missing)


def _documents(texts: dict[Path, str]) -> Iterator[tuple[Path, str]]:
    """The pages of `docs/` and its folders, and those that lie elsewhere for people to find."""
    return ((page, text) for page, text in texts.items() if page.suffix == ".md")


def test_files_that_documents_name_are_there(texts: dict[Path, str]) -> None:
    known = [path.relative_to(ROOT).as_posix() for path in texts]
    missing = [
        (page.relative_to(ROOT).as_posix(), name)
        for page, text in _documents(texts)
        if page.is_relative_to(DOCS) or page.name == "README.md"
        for name in _paths(text)
        if not any(f"/{path}".endswith("/" + name) for path in known)
    ]
    assert not missing


def test_links_of_documents_lead_to_files_and_headings(texts: dict[Path, str]) -> None:
    missing = [
        (page.relative_to(ROOT).as_posix(), f"{target}{anchor}")
        for page, text in _documents(texts)
        for target, anchor in re.findall(r"\]\((?!\w+:)([^)#\s]*)(#[^)\s]*)?\)", _BLOCK.sub("", text))
        if not _leads(page, target, anchor, texts)
    ]
    assert not missing


def _leads(page: Path, target: str, anchor: str, texts: dict[Path, str]) -> bool:
    there = (page.parent / target).resolve() if target else page
    if not anchor or there.suffix != ".md":
        return there.exists()
    return there in texts and anchor[1:] in _anchors(texts[there])


def _anchors(text: str) -> set[str]:
    """The headings of a page as links name them, and the marks of its own."""
    found = set(re.findall(r"\bid=\"([^\"]+)\"", text))
    for heading in re.findall(r"^#{1,6} (.+?)(?: \{#.*\})?$", _BLOCK.sub("", text), re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        found.add(re.sub(r"[^\w\- ]", "", plain).strip().lower().replace(" ", "-"))
    return found


def test_documents_that_code_names_are_there(texts: dict[Path, str]) -> None:
    missing = [
        (path.relative_to(ROOT).as_posix(), name)
        for path, text in texts.items()
        if path.suffix == ".py"
        for name in re.findall(r"docs/[\w/-]+\.md", text)
        if not (ROOT / name).is_file()
    ]
    assert not missing


# Names tests of other projects.
OF_OTHERS = DOCS / "guide" / "what-was-tried.md"


def test_tests_that_documents_name_are_there(texts: dict[Path, str]) -> None:
    code = "\n".join(
        text for path, text in texts.items() if "spark_tests" in path.parts and path.suffix == ".py"
    )
    names = set(re.findall(r"^(?:class|    def|def) (Test\w+|test_\w+)", code, re.MULTILINE))
    names |= {path.stem for path in texts if "spark_tests" in path.parts}
    missing = [
        (page.name, name)
        for page, text in texts.items()
        if page.is_relative_to(DOCS) and page != OF_OTHERS
        for name in re.findall(r"\b(?:Test[A-Z]\w+|test_\w+)", text)
        if name not in names
    ]
    assert not missing


def test_every_setting_of_spark_that_the_code_names_is_documented(texts: dict[Path, str]) -> None:
    documented = texts[DOCS / "settings.md"]
    named = {
        name
        for path, text in texts.items()
        if path.is_relative_to(PACKAGE / "spark")
        for name in re.findall(r"\"(spark\.(?:sql|ui|pydelta)\.[\w.]+)\"", text)
    }
    assert not sorted(name for name in named if f"`{name}`" not in documented)


def test_every_environment_variable_is_documented(texts: dict[Path, str]) -> None:
    documented = set(re.findall(r"`(DELTA_DS_\w+)`", texts[DOCS / "settings.md"]))
    code = [*texts.values(), (ROOT / "Makefile").read_text()]
    named = {name for text in code for name in re.findall(r"\bDELTA_DS_[A-Z_]*[A-Z]\b", text)}
    assert named == documented


_IMAGE = re.compile(r"!\[([^\]]*)\]\(([^)]+)\)|<img\b[^>]*>")


def test_pictures_say_what_they_show(texts: dict[Path, str]) -> None:
    """For who does not see them: in words, and not by the name of a file."""
    found = [
        (path, match)
        for path, text in texts.items()
        if path.suffix == ".md"
        for match in _IMAGE.finditer(_BLOCK.sub("", text))
    ]
    assert len(found) > 5
    silent = [
        f"{path.relative_to(ROOT)}: {match[0][:80]}"
        for path, match in found
        if len((match[1] or "").split()) < 4
    ]
    assert silent == []
