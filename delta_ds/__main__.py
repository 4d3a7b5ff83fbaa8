"""`python -m delta_ds`, also called `pydelta`: look at tables, start programs that know nothing of this package."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

# Those that need pyspark, and nothing of the extra `cli`.
_PROGRAMS = ("run", "serve", "connect-server")


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says.

    Parameters
    ----------
    arguments
        Without the name of the program; None: those of this process.

    Returns
    -------
    int
        The exit status. A program that is run in the place of this one has its own.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    # A shell asks for completions without arguments.
    if not given or given[0] not in _PROGRAMS:
        return _of_tables(given)
    # What comes after `run` is the command line of another program, and none of ours.
    ours, program = (given[:1], given[1:]) if given[:1] == ["run"] else (given, [])
    if program[:1] in (["-h"], ["--help"]):
        ours += program
    parser = _parser()
    parsed, left = parser.parse_known_args(ours, argparse.Namespace(program=program))
    if left:
        # Not shown: one may be the value of a setting.
        parser.error(f"{len(left)} more arguments than {given[0]} takes")
    status: int = parsed.call(parsed)
    return status


def _of_tables(given: Sequence[str]) -> int:
    from importlib.util import find_spec

    missing = [name for name in ("typer", "rich") if find_spec(name) is None]
    if missing:
        sys.stderr.write(
            f"{' '.join(['pydelta', *given[:1]])} needs {' and '.join(missing)}: pip install 'delta-ds[cli]'. "
            f"Without: {', '.join(_PROGRAMS)}\n"
        )
        return 2
    try:
        from delta_ds.cli.app import main as run

        return run(given)
    except KeyboardInterrupt:  # Before the command began.
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m delta_ds", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    run = commands.add_parser(
        "run",
        help="run a program: dbt build, script.py, -m pytest, pyspark, spark-submit job.py",
        usage="python -m delta_ds run [--] PROGRAM [ARGUMENT ...]",
        description="Run a program written for delta-spark: it and every Python that it starts register their "
        "sessions when they are created, and `import delta` works. PROGRAM is a command, a Python file, "
        "or arguments of Python, such as -m pytest.",
    )
    run.set_defaults(call=_run)
    _add_servers(commands)
    return parser


def _add_servers(commands: Any) -> None:
    from delta_ds.spark import connect_server, serve

    serve.add_command(commands)
    connect_server.add_command(commands)


def _run(parsed: argparse.Namespace) -> int:
    from delta_ds.spark.as_delta.programs import run_program

    run_program(parsed.program[1:] if parsed.program[:1] == ["--"] else parsed.program)


if __name__ == "__main__":
    sys.exit(main())
