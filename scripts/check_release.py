"""Whether a tag can become a release: `make release-check TAG=v1.2.0`; with --notes, what the changelog says of it.

The tag is a version, the changelog has a section for it with a date, the version file names it as the one that comes
next, and what `dist/` holds is of this version. Needs nothing but Python.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
KINDS = (
    "New for you",
    "What changed",
    "What broke",
    "Added",
    "Changed",
    "Deprecated",
    "Removed",
    "Fixed",
    "Security",
    "Known differences from delta-spark",
)

_TAG = re.compile(r"v(\d+\.\d+\.\d+)((?:a|b|rc)\d+)?")
_SECTION = re.compile(
    r"^## (\S+) \((\d{4}-\d{2}-\d{2}|unreleased)\)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL
)


def sections(changelog: str) -> dict[str, tuple[str, str]]:
    """Date (or `unreleased`) and text of each version of a changelog, newest first."""
    return {name: (date, text.strip()) for name, date, text in _SECTION.findall(changelog)}


def problems(tag: str, changelog: str, coming: str, files: list[str]) -> Iterator[str]:
    """What is wrong with a release.

    Parameters
    ----------
    tag
        As `v1.2.0`; `v1.2.0rc1` is tried before it.
    changelog
        The text of `CHANGELOG.md`.
    coming
        The text of `delta_ds/_version.py` in the checkout.
    files
        Names of what is in `dist/`.
    """
    found = _TAG.fullmatch(tag)
    if found is None:
        yield f"{tag} is no tag of a release such as v1.2.0 or v1.2.0rc1"
        return
    version, candidate = found[1], found[2]
    known = sections(changelog)
    if version not in known:
        yield f"CHANGELOG.md has no section '## {version} (YYYY-MM-DD)'"
    elif next(iter(known)) != version:
        yield f"the top of CHANGELOG.md is {next(iter(known))}, not {version}"
    elif known[version][0] == "unreleased" and not candidate:
        yield f"CHANGELOG.md still calls {version} unreleased: put the date there"
    if f'__version__ = "{version}.dev0"' not in coming:
        yield f'delta_ds/_version.py has to say __version__ = "{version}.dev0"'
    built = version + (candidate or "")
    wanted = {
        f"delta_ds-{built}.tar.gz", f"delta_ds-{built}-py3-none-any.whl", f"delta_ds_names-{built}-py3-none-any.whl",
    }  # fmt: skip
    if set(files) != wanted:
        yield f"dist/ holds {', '.join(sorted(files)) or 'nothing'}, not {', '.join(sorted(wanted))}: run make dist"


def notes(tag: str, changelog: str) -> str:
    """What the changelog says of a tag.

    Raises
    ------
    KeyError
        Nothing.
    """
    found = _TAG.fullmatch(tag)
    return sections(changelog)[found[1] if found else tag][1] + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("tag", help="such as v1.2.0")
    parser.add_argument(
        "--notes", action="store_true", help="print what the changelog says, and check nothing else"
    )
    given = parser.parse_args()
    changelog = (ROOT / "CHANGELOG.md").read_text()
    if given.notes:
        print(notes(given.tag, changelog), end="")
        return 0
    coming = (ROOT / "delta_ds" / "_version.py").read_text()
    files = [path.name for path in (ROOT / "dist").glob("*") if path.name != ".gitignore"]
    found = list(problems(given.tag, changelog, coming, files))
    print("\n".join(found) or f"{given.tag} can be released")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
