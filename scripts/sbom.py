"""Write what the wheel in dist/ brings: a list of all packages (CycloneDX), and the licences of the declared ones.

    python scripts/sbom.py            sbom/delta-ds-<version>.cdx.json, and a check of the licences
    python scripts/sbom.py --page     docs/dependencies.md, too

An environment of its own gets the wheel with all extras for users, and nothing else. The list is as that environment
was on the day. Needs `cyclonedx-py` beside the interpreter: `make sbom` installs it.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import venv
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "dependencies.md"
# Extras of contributors; the others are for users.
NOT_FOR_USERS = ("dev", "docs", "release")
# Words of licences that let this package be used in closed programs.
_PERMISSIVE = re.compile(
    r"\b(apache|mit|0?bsd|isc|python software foundation|psf|python-2\.0|mpl-2\.0|mozilla public license 2\.0|"
    r"unlicense|public domain|zlib|hpnd|cc0)\b",
    re.IGNORECASE,
)
# Packages whose metadata names none, as their own licence files say.
_NAMED = {"hdfs-native": "Apache-2.0", "protobuf": "BSD-3-Clause"}


_HEAD = """# Dependencies and licences

These are the packages that `delta-ds` asks for, with the extra that brings each one and the licence that it names.
`delta-ds` itself is under Apache-2.0.

`make sbom` writes this page, and `sbom/delta-ds-<version>.cdx.json`: a CycloneDX document that lists every package that
comes with the wheel and all its extras, with versions. A release has that document beside the wheel. `make sbom` fails
if a package in it names no permissive licence.

| package | versions | comes with | licence |
|---|---|---|---|
"""


def declared() -> dict[str, tuple[str, str]]:
    """Extra (empty: always) and versions of each package that pyproject.toml asks for on behalf of users."""
    import tomllib  # of Python 3.11

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    groups = {"": project["dependencies"], **project["optional-dependencies"]}
    found: dict[str, tuple[str, str]] = {}
    for extra, lines in groups.items():
        if extra in NOT_FOR_USERS:
            continue
        for line in lines:
            requirement = Requirement(line)
            name = canonicalize_name(requirement.name)
            before, versions = found.get(name, (extra, str(requirement.specifier)))
            extras = before if extra in before.split(", ") else f"{before}, {extra}"
            found[name] = (before if before == "" else extras, versions)
    return found


def licences(component: Mapping[str, Any]) -> tuple[str, ...]:
    """What a component of a CycloneDX document calls its licences, as names or expressions."""
    found = []
    for entry in component.get("licenses", ()):
        licence = entry.get("license", {})
        text = entry.get("expression") or licence.get("id") or licence.get("name") or ""
        # A classifier says only the family where the licence itself is known; a name may be the whole text.
        found.append(text.removeprefix("License :: OSI Approved :: ").strip().partition("\n")[0][:80])
    named = _NAMED.get(canonicalize_name(component["name"]))
    return tuple(dict.fromkeys(filter(None, found))) or ((named,) if named else ())


def refused(components: list[Mapping[str, Any]]) -> Iterator[str]:
    """Components without a permissive licence, each as a line that says what it calls it."""
    for component in components:
        names = licences(component)
        if not any(map(_PERMISSIVE.search, names)):
            yield f"{component['name']} {component['version']}: {', '.join(names) or 'names no licence'}"


def install(python: Path, wheel: Path) -> None:
    """Make the environment of an interpreter, with a wheel and its extras for users in it and no tool beside."""
    venv.EnvBuilder(with_pip=False, clear=True).create(python.parents[1])
    extras = sorted({extra for names, _ in declared().values() for extra in names.split(", ") if extra})
    subprocess.run(
        [
            sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--disable-pip-version-check",
            f"{wheel}[{','.join(extras)}]",
        ],
        check=True,
    )  # fmt: skip


def document(python: Path) -> dict[str, Any]:
    """The CycloneDX document of an environment, without the places where its packages came from."""
    tool = Path(sys.executable).with_name("cyclonedx-py")
    told = subprocess.run(
        [
            str(tool), "environment", "--output-reproducible", "--short-PURLs", "--mc-type", "library",
            "--pyproject", str(ROOT / "pyproject.toml"), str(python),
        ],
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    found: dict[str, Any] = json.loads(told)
    for component in (*found["components"], found["metadata"]["component"]):
        component.pop("externalReferences", None)
    return found


def page(components: list[Mapping[str, Any]]) -> str:
    """The page of the declared packages, as Markdown."""
    by_name = {canonicalize_name(component["name"]): component for component in components}
    rows = [
        f"| `{name}` | {f'`{versions}`' if versions else 'any'} | {f'`{extra}`' if extra else 'always'} "
        f"| {', '.join(licences(by_name[name]))} |"
        for name, (extra, versions) in declared().items()
    ]
    return f"{_HEAD}{chr(10).join(rows)}\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--page", action="store_true", help=f"write {PAGE.relative_to(ROOT)}, too")
    given = parser.parse_args()
    wheels = sorted((ROOT / "dist").glob("delta_ds-*.whl"))
    if len(wheels) != 1:
        print(f"dist/ holds {len(wheels)} wheels of delta-ds: run make dist")
        return 1
    python = ROOT / ".venv-sbom" / "bin" / "python"
    install(python, wheels[0])
    found = document(python)
    version = wheels[0].name.split("-")[1]
    found["metadata"]["component"]["version"] = version
    found["components"] = [one for one in found["components"] if canonicalize_name(one["name"]) != "delta-ds"]
    file = ROOT / "sbom" / f"delta-ds-{version}.cdx.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(found, indent=2, sort_keys=True) + "\n")
    if given.page:
        PAGE.write_text(page(found["components"]))
    bad = list(refused(found["components"]))
    print(
        "\n".join(bad)
        or f"{file.relative_to(ROOT)}: {len(found['components'])} packages, all with a permissive licence"
    )
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
