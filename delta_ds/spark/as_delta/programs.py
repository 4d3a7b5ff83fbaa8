"""Start programs with Delta by delta-spark's names: `python -m delta_ds run`, and the command `pydelta-python`.

Python itself offers the plug-in point: a folder on `PYTHONPATH` with a module `sitecustomize`. So a program is started
as ever, with all that Python's command line has, and the Python processes that it starts in turn have Delta as well:
kernels of notebooks, test workers, the driver of `spark-submit`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

_STARTUP = Path(__file__).with_name("startup")
_NOT_FOUND = 127  # as shells have it


def run_program(arguments: Sequence[str]) -> NoReturn:
    """Become a program, in which every session that is made is registered.

    Parameters
    ----------
    arguments
        The name of a program, first looked for beside this Python, then on `PATH`; or a Python file, or what Python
        takes (`-m pytest`, `-c ...`); and its arguments.
    """
    environment = prepared_environment(os.environ)
    command = _command(arguments, environment["PATH"])
    if command is None:
        print(f"python -m delta_ds run: there is no program {arguments[0]!r}", file=sys.stderr)
        sys.exit(_NOT_FOUND)
    _become(command, environment)


def run_python() -> NoReturn:
    """Become this Python, with the arguments that this process was given: the command `pydelta-python`."""
    _become([sys.executable, *sys.argv[1:]], prepared_environment(os.environ))


def prepared_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment of a program that is started: Delta in every Python, and this Python before all others.

    The latter as an activated virtual environment has it: `python3`, which Spark starts its workers with, is this one.
    """
    prepared = dict(environment)
    beside = str(Path(sys.executable).parent)
    for name, entry in (("PYTHONPATH", str(_STARTUP)), ("PATH", beside)):
        others = [other for other in prepared.get(name, "").split(os.pathsep) if other and other != entry]
        prepared[name] = os.pathsep.join([entry, *others])
    return prepared


def _command(arguments: Sequence[str], path: str) -> list[str] | None:
    if not arguments or arguments[0].startswith("-") or arguments[0].endswith(".py"):
        return [sys.executable, *arguments]
    found = shutil.which(arguments[0], path=path)
    return None if found is None else [found, *arguments[1:]]


def _become(command: list[str], environment: Mapping[str, str]) -> NoReturn:
    if os.name == "nt":
        # There a program that is become goes on behind its parent's back.
        sys.exit(subprocess.call(command, env=environment))
    sys.stdout.flush()
    os.execve(command[0], command, environment)
