"""The documentation site: built strictly, every page in it, and nothing fetched from elsewhere."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from spark_tests.product.docs.blocks import DOCS, ROOT
from spark_tests.product.docs.search import Search

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("material", reason="mkdocs-material is not installed")
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return folder


def pages(site: Path) -> list[Path]:
    return [page for page in site.rglob("*.html") if page.name != "404.html"]


def test_every_document_is_a_page(site: Path) -> None:
    built = {page.relative_to(site).as_posix() for page in pages(site)}
    for document in DOCS.rglob("*.md"):
        name = document.relative_to(DOCS).with_suffix("").as_posix()
        assert (
            f"{name.removesuffix('index')}index.html" if name.endswith("index") else f"{name}/index.html"
        ) in built


def test_nothing_is_fetched_from_other_hosts(site: Path) -> None:
    fetched = re.compile(
        r"<(?:script|img|iframe|source|video)[^>]*\bsrc=\"?(?:https?:)?//|<link[^>]*\bhref=\"?https?://"
    )
    for page in pages(site):
        found = fetched.search(page.read_text(encoding="utf-8"))
        assert found is None, (page, found)
    for style in site.rglob("*.css"):
        assert not re.search(r"url\([\"']?(?:https?:)?//", style.read_text(encoding="utf-8")), style


def test_tags_of_blocks_are_not_shown(site: Path) -> None:
    for page in pages(site):
        assert "```" not in re.sub(
            r"<code[^>]*>.*?</code>", "", page.read_text(encoding="utf-8"), flags=re.DOTALL
        ), page


def test_every_public_name_is_in_the_reference(site: Path) -> None:
    reference = "".join(page.read_text(encoding="utf-8") for page in (site / "api").rglob("index.html"))
    there = set(re.findall(r"\bid=\"?([\w.]+)", reference))
    surface = (ROOT / "spark_tests" / "product" / "public_surface" / "names.txt").read_text(encoding="utf-8")
    names = [
        match[1] for match in re.finditer(r"^(?:class |property )?(delta_ds[\w.]+)", surface, re.MULTILINE)
    ]
    assert len(names) > 200
    elsewhere = re.compile(
        r"delta_ds\.spark\.|.*\._repr_"
    )  # classes that methods return; what notebooks ask for
    missing = [name for name in names if name not in there and not elsewhere.match(name)]
    assert [name for name in missing if f">{name.rpartition('.')[2]}<" not in reference] == []


@pytest.fixture(scope="module")
def search(site: Path) -> Search:
    return Search(site)


@pytest.mark.parametrize(
    ("typed", "page"),
    [
        ("upsert", "guide/upsert/"),
        ("merge is slow", "guide/slow-merge/"),
        ("slow merge", "guide/slow-merge/"),
        ("time travel by date", "guide/time-travel/"),
        ("restore table", "guide/time-travel/"),
        ("vacuum retention", "guide/maintain/"),
        ("small files", "guide/maintain/"),
        ("column renamed", "guide/write/"),
        ("schema evolution", "guide/write/"),
        ("concurrent append exception", "guide/debug-a-conflict/"),
        ("s3 credentials", "guide/on-s3/"),
        ("minio", "guide/on-s3/"),
        ("jupyter", "guide/notebooks/"),
        ("airflow", "guide/orchestrate/"),
        ("dagster", "guide/orchestrate/"),
        ("dbt", "guide/orchestrate/"),
        ("kedro", "guide/orchestrate/"),
        ("docker image", "guide/on-kubernetes/"),
        ("kubernetes", "guide/on-kubernetes/"),
        ("power bi", "guide/serve/"),
        ("jdbc", "guide/serve/"),
        ("parquet to delta", "guide/from-parquet/"),
        ("install", "guide/first-hour/"),
        ("delete gdpr", "guide/delete-for-gdpr/"),
        ("change data feed", "guide/change-feeds/"),
        ("streaming", "guide/stream/"),
        ("who changed this row", "guide/audit/"),
        ("read without spark", "guide/without-spark/"),
        ("unity catalog", "guide/catalog-managed-tables/"),
        ("spark connect", "connect/"),
        ("DELTA_ILLEGAL_OPTION", "errors/"),
        ("DELTA_STORAGE_ERROR.CREDENTIALS_EXPIRED", "errors/"),
    ],
)
def test_search_finds_the_page_that_answers(search: Search, typed: str, page: str) -> None:
    assert search.pages(typed)[0] == page


def test_pages_that_search_knows_by_other_words_are_there() -> None:
    words = runpy.run_path(str(ROOT / "scripts" / "site.py"))["WORDS"]
    assert [name for name in words if not (DOCS / name).is_file()] == []
