"""Run the blocks of a page, top to bottom, in one namespace and a fresh folder; in a block, `/data/` is that folder."""

from __future__ import annotations

import io
import json
import re
import shlex
import signal
import subprocess
import sys
import urllib.request
from contextlib import redirect_stdout
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spark_tests.product.docs.blocks import ROOT, Block
from spark_tests.product.docs.names import check_names, check_settings, check_shell

if TYPE_CHECKING:
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

_STATEMENT = re.compile(r"(?P<text>.+?);[ ]*(?:-- refused: (?P<condition>\w+))?[ ]*(?:\n|\Z)", re.DOTALL)
_STATUS = re.compile(r"\s+# exit (\d+)$")
_COMMENT = re.compile(r"\s*(?:#.*)?$")


def _example(words: list[str]) -> str | None:
    """The program of `examples/` that a command runs, where it runs one."""
    found = re.fullmatch(r"make quickstart|python (examples/\w+\.py)", " ".join(words))
    return (found[1] or "examples/quickstart.py") if found else None


class Failed(AssertionError):
    """A block does not do what the page says."""


class Page:
    """A page that is being run.

    Parameters
    ----------
    folder
        Where `/data/` is, and where the page is run.
    names
        What the page may use without making it: `spark`, and what a prepared page is given.
    """

    def __init__(self, folder: Path, names: dict[str, Any]) -> None:
        self.folder = folder
        self.names = {"__name__": "__main__", **names}

    @property
    def spark(self) -> SparkSession:
        session: SparkSession = self.names["spark"]
        return session

    def run(self, block: Block) -> None:
        """Run, parse or check one block, and compare what it prints.

        Raises
        ------
        Failed
            It prints something else, a statement is not refused, a command ends otherwise than the page says.
        """
        if block.language in ("json", "yaml", "toml", "properties"):
            self._parse(block)
        elif "check" in block.tags:
            check_names(block) if block.language == "python" else check_shell(block)
        else:
            told = {"python": self._python, "sql": self._sql, "bash": self._bash}[block.language](block)
            self._compare(block, told)

    def _text(self, text: str) -> str:
        return re.sub(r"(?<![\w/.])/data(?=/|\b)", str(self.folder), text)

    def _python(self, block: Block) -> str:
        # Tracebacks name the lines of the page.
        code = compile("\n" * (block.line - 1) + self._text(block.text), str(ROOT / block.page), "exec")
        told = io.StringIO()
        with redirect_stdout(told):
            exec(code, self.names)  # noqa: S102 - the page is ours
        return told.getvalue()

    def _sql(self, block: Block) -> str:
        if left := _STATEMENT.sub("", block.text).strip():
            raise Failed(f"{block.where}: a statement without its semicolon: {left!r}")
        told = io.StringIO()
        for statement in _STATEMENT.finditer(block.text):
            text, condition = statement["text"].strip(), statement["condition"]
            with redirect_stdout(told):
                found = self._statement(text, shown=block.prints is not None)
            if found is not None and (found.getCondition() or "").partition(".")[0] != condition:
                raise Failed(f"{block.where}: {text}\n{found}") from found
            if found is None and condition:
                raise Failed(f"{block.where}: not refused: {text}")
        return told.getvalue()

    def _statement(self, text: str, shown: bool) -> PySparkException | None:
        """The error that a statement ends with."""
        from pyspark.errors import PySparkException

        try:
            rows = self.spark.sql(self._text(text))
            if shown and rows.columns:
                rows.show(100, truncate=False)
            else:
                rows.collect()
        except PySparkException as error:
            return error
        return None

    def _bash(self, block: Block) -> str:
        told = []
        for line in block.text.replace("\\\n", " ").splitlines():
            if _COMMENT.fullmatch(line):
                continue
            status = _STATUS.search(line)
            command, expected = _STATUS.sub("", line).strip(), int(status[1]) if status else 0
            program, *arguments = words = shlex.split(command, comments=True)
            if program == "pydelta" and not re.search(
                r"[|<>&$;]", re.sub(r"\"[^\"]*\"|'[^']*'", "", command)
            ):
                found, text = self._pydelta(arguments)
            elif re.search(r"\bpydelta\b", command) and program not in ("pip", "make"):
                found, text = self._shell(command)
            elif block.prints is not None and (example := _example(words)):
                found, text = self._shell(f"{sys.executable} {example}")
            else:
                check_shell(block, [command])
                continue
            if found != expected:
                raise Failed(f"{block.where}: {command}: status {found}\n{text}")
            told.append(text)
        return "".join(told)

    def _pydelta(self, arguments: list[str]) -> tuple[int, str]:
        if arguments[:1] == ["ui"]:
            return _served([self._text(argument) for argument in arguments])
        from delta_ds.__main__ import main

        told = io.StringIO()
        with redirect_stdout(told):
            status = main([self._text(argument) for argument in arguments])
        return status, told.getvalue()

    def _shell(self, command: str) -> tuple[int, str]:
        script = f'set -o pipefail; pydelta() {{ {sys.executable} -m delta_ds "$@"; }}; {self._text(command)}'
        done = subprocess.run(
            ["bash", "-c", script], capture_output=True, text=True, timeout=300, check=False
        )
        return done.returncode, done.stdout + (done.stderr if done.returncode else "")

    def _parse(self, block: Block) -> None:
        if block.language == "json":
            json.loads(block.text)
        elif block.language == "yaml":
            import yaml

            list(yaml.safe_load_all(block.text))
        elif block.language == "toml":
            try:
                import tomllib
            except ModuleNotFoundError:  # Python 3.10; pytest brings it
                import tomli as tomllib
            tomllib.loads(block.text)
        else:
            check_settings(block)

    def _compare(self, block: Block, told: str) -> None:
        if block.prints is None:
            return
        told = told.replace(str(self.folder), "/data")
        if not same(block.prints, told):
            raise Failed(f"{block.where} prints\n{told}\nand the page says\n{block.prints}")


def _served(arguments: list[str]) -> tuple[int, str]:
    """The status and the output of a page's server, which is asked for the page and then ended as by Ctrl+C."""
    command = [
        sys.executable,
        "-m",
        "delta_ds",
        *arguments,
        *([] if "--no-open" in arguments else ["--no-open"]),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as program:
        assert program.stdout is not None
        told = ""
        for line in program.stdout:
            told += line
            if address := re.match(r"http://[\w.-]+(:\d+/\S+)$", line):
                with urllib.request.urlopen(f"http://127.0.0.1{address[1]}", timeout=180):
                    program.send_signal(signal.SIGINT)
        return program.wait(timeout=300), told


_MOMENT = r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d+)?"
_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_OPEN = re.compile(rf"(?P<any>\.\.\.)|(?P<uuid>{_UUID})|(?P<moment>{_MOMENT})")


def same(says: str, told: str) -> bool:
    """Whether a page says what was told, but for white space, `...`, UUIDs and moments of the last year.

    What changes from run to run stays readable: `2026-11-21 10:54:40.232` on a page stands for any moment not long ago.
    """
    says, told = " ".join(says.split()), " ".join(told.split())
    told = re.sub(_MOMENT, lambda m: "<lately>" if _lately(m[0]) else m[0], re.sub(_UUID, "<uuid>", told))
    pattern, end = "", 0
    for found in _OPEN.finditer(says):
        pattern += re.escape(says[end : found.start()])
        if found["any"]:
            pattern += ".*?"
        else:
            pattern += "<uuid>" if found["uuid"] else f"(?:{re.escape(found[0])}|<lately>)"
        end = found.end()
    return re.fullmatch(pattern + re.escape(says[end:]), told, re.DOTALL) is not None


def _lately(moment: str) -> bool:
    age = datetime.now(timezone.utc) - datetime.fromisoformat(moment[:19]).replace(tzinfo=timezone.utc)
    return timedelta(days=-1) < age < timedelta(days=400)
