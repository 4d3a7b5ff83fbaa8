"""The names of this package that its docstrings and comments cite in backticks, and whether they exist.

A name counts as one of the package by its form alone, so that terms of the protocol, options, SQL and names of other
projects are left alone:

- `folder/file.py` and `Name.java` are files of the repository;
- `head.tail` whose head is a module, a package or a class here; or whose head is of several words in snake case, or
  whose tail is a constant, as is no foreign name in the package. A module with a tail in camel case is a setting;
- `name()`, called with nothing, is a word of the code, of Python or of Spark's functions.

What stands under `Source:` is the code of others. The trees of the sources say what there is: nothing is imported.
"""

from __future__ import annotations

import ast
import builtins
import functools
import io
import re
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import functions as sql_functions

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "delta_ds"
# Modules here too, but these heads begin settings, properties of tables or what a session of Spark offers; and names
# that stand for any, or are methods of pyspark's own errors.
FOREIGN = {"spark", "delta", "hadoop", "schema.table", "getStackTrace()"}

_TICKED = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
_SOURCE = re.compile(r"\bSource:(?:.+\n?)+")
_FILE = re.compile(r"[\w/]+\.(py|java)")
_FOREIGN_FILE = re.compile(r"\w+\.(c|scala|json|md|crc)")
_CAMEL = re.compile(r"[a-z]+[A-Z]\w*")
_DOTTED = re.compile(r"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+)(?:\(.*\))?")
_CALL = re.compile(r"([A-Za-z_]\w*)\(\)")
_SNAKE = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)+")
_CONSTANT = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)+")


@dataclass
class Class:
    """A class of the package: its members and the names of its bases."""

    members: set[str] = field(default_factory=set)
    bases: list[str] = field(default_factory=list)


@dataclass
class Source:
    """What a file binds, its classes, the words of its code, its arguments and variables, and what its prose cites."""

    bound: set[str]
    classes: list[tuple[str, Class]]
    words: set[str]
    variables: set[str]
    cited: list[tuple[int, str]]

    @classmethod
    @functools.cache
    def of(cls, file: Path) -> Source:
        text = file.read_text(encoding="utf-8")
        tree, tokens = ast.parse(text), list(tokenize.generate_tokens(io.StringIO(text).readline))
        classes = [(node.name, _class(node)) for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
        words = {token.string for token in tokens if token.type == tokenize.NAME}
        return cls(set(_bound(tree)), classes, words, _variables(tree), list(_cited(tree, tokens)))


@dataclass
class Names:
    """What the package has: files, modules with their names, classes with their members, and all words of its code."""

    files: set[str] = field(default_factory=set)
    modules: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    top_level: dict[str, set[str]] = field(default_factory=dict)
    classes: dict[str, list[Class]] = field(default_factory=lambda: defaultdict(list))
    words: set[str] = field(default_factory=lambda: {*dir(builtins), *dir(sql_functions)})

    @classmethod
    def of_package(cls) -> Names:
        names = cls()
        for folder in (PACKAGE, ROOT / "spark_tests", ROOT / "scripts"):
            names.files |= {
                str(file.relative_to(ROOT)) for end in ("py", "java") for file in folder.rglob(f"*.{end}")
            }
        names.files |= {file.name for file in ROOT.glob("*.py")}
        for file in sources():
            names._add(file)
        return names

    def _add(self, file: Path) -> None:
        source = Source.of(file)
        parts = file.relative_to(ROOT).with_suffix("").parts
        module = ".".join(parts[:-1] if file.name == "__init__.py" else parts)
        self.modules[module.rpartition(".")[2]].append(module)
        self.top_level[module] = source.bound
        for name, one in source.classes:
            self.classes[name].append(one)
        self.words |= source.words

    def has_file(self, path: str) -> bool:
        return any(f"/{file}".endswith(f"/{path}") for file in self.files)

    def has(self, dotted: str) -> bool:
        """Whether a module or class of the first part's name has the second, that the third, and so on."""
        head, *rest = dotted.split(".")
        return any(self._in_module(module, rest) for module in self.modules.get(head, ())) or self._in_class(
            head, rest
        )

    def _in_module(self, module: str, rest: list[str]) -> bool:
        if not rest:
            return True
        below = f"{module}.{rest[0]}"
        if below in self.top_level and self._in_module(below, rest[1:]):
            return True
        return rest[0] in self.top_level[module] and (
            rest[0] not in self.classes or self._in_class(rest[0], rest[1:])
        )

    def _in_class(self, name: str, rest: list[str]) -> bool:
        return name in self.classes and (not rest or rest[0] in self._members(name))

    def _members(self, name: str) -> set[str]:
        return {
            member
            for one in self.classes.get(name, ())
            for member in one.members.union(*(self._members(base) for base in one.bases if base != name))
        }

    def is_an_attribute(self, name: str) -> bool:
        return any(name in one.members for classes in self.classes.values() for one in classes)


def sources() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def missing(file: Path, names: Names) -> Iterator[tuple[int, str]]:
    """Line and text of every name that a file cites as one of this package, and that is nowhere."""
    source = Source.of(file)
    return ((line, cited) for line, cited in source.cited if not _exists(cited, names, source.variables))


def _exists(cited: str, names: Names, variables: set[str]) -> bool:
    if cited in FOREIGN:
        return True
    if _FILE.fullmatch(cited):
        return names.has_file(cited)
    if call := _CALL.fullmatch(cited):
        return call[1] in names.words
    dotted = _DOTTED.fullmatch(cited)
    if not dotted or _FOREIGN_FILE.fullmatch(cited):
        return True
    head, *rest = dotted[1].split(".")
    if not _is_ours(head, rest, names) or names.has(dotted[1]):
        return True
    return head in variables and names.is_an_attribute(rest[0])


def _is_ours(head: str, rest: list[str], names: Names) -> bool:
    if head in FOREIGN:
        return False
    if head in names.classes or _SNAKE.fullmatch(head) or (head.islower() and _CONSTANT.fullmatch(rest[-1])):
        return True
    return head in names.modules and not any(_CAMEL.fullmatch(part) for part in rest)


def _cited(tree: ast.Module, tokens: list[tokenize.TokenInfo]) -> Iterator[tuple[int, str]]:
    for line, written in _prose(tree, tokens):
        prose = _SOURCE.sub(lambda source: "\n" * source[0].count("\n"), written)
        for match in _TICKED.finditer(prose):
            yield line + prose.count("\n", 0, match.start()), match[1]


def _prose(tree: ast.Module, tokens: list[tokenize.TokenInfo]) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            yield node.lineno, node.value.value
    yield from ((token.start[0], token.string) for token in tokens if token.type == tokenize.COMMENT)


def _class(node: ast.ClassDef) -> Class:
    own = {
        n.attr
        for n in ast.walk(node)
        if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.value.id == "self"
    }
    bases = [base.value if isinstance(base, ast.Subscript) else base for base in node.bases]
    return Class(own | set(_bound(node)), [ast.unparse(base).rpartition(".")[2] for base in bases])


def _bound(node: ast.AST) -> Iterator[str]:
    """The names that a module or class binds, also below `if` and `try`."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield child.name
        elif isinstance(child, (ast.Import, ast.ImportFrom)):
            yield from (alias.asname or alias.name for alias in child.names)
        elif isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store):
            yield child.id
        else:
            yield from _bound(child)


def _variables(tree: ast.AST) -> set[str]:
    """Arguments and variables of a file: a cited `plan.schema` may be an attribute of one, and no name of a module."""
    stored = {
        node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    return stored | {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
