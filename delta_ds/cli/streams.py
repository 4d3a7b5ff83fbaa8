"""The standard streams of the program: closed ones, full disks, readers that have gone."""

from __future__ import annotations

import io
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from delta_ds.kernel.base.card import visible


class OutputError(Exception):
    """What was to be printed was not taken; the text says why.

    Attributes
    ----------
    reader_gone
        Whether the reader has closed the stream, as `head` does.
    """

    def __init__(self, text: str, *, reader_gone: bool = False) -> None:
        super().__init__(text)
        self.reader_gone = reader_gone


@contextmanager
def writing() -> Iterator[None]:
    """What a block prints has left this process when the block ends.

    Raises
    ------
    OutputError
        The output stream does not take it.
    """
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError as error:
        raise OutputError(str(error), reader_gone=True) from error
    except SystemExit as end:
        # Consoles of rich, which help is printed on, end the program.
        if isinstance(end.__context__, BrokenPipeError):
            raise OutputError(str(end.__context__), reader_gone=True) from end
        raise
    except OSError as error:
        raise OutputError(f"cannot write the output: {error.strerror or error}") from error


def prepare() -> None:
    """Make the standard streams fit for whatever a table holds.

    A number of a standard stream that is free would be that of the next file opened, such as one of a table. What an
    encoding has no letters for is spelled out.

    Raises
    ------
    OutputError
        There is no output stream.
    """
    has_output = sys.stdout is not None
    _take_free_numbers()
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - as long as the process
    if not has_output:
        raise OutputError("cannot write the output: the standard output is closed")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")


def _take_free_numbers() -> None:
    # The lowest one that is free is taken.
    while (number := os.open(os.devnull, os.O_RDWR)) < 3:
        pass
    os.close(number)


def abandon() -> None:
    """Let go of what the output stream has not taken: the end of the process would try once more, and fail aloud."""
    with suppress(OSError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def tell_unexpected(error: BaseException) -> None:
    """Write the traceback of an error that is a defect to the error stream, what comes from a table spelled out."""
    lines = "".join(traceback.format_exception(error)).rstrip("\n").split("\n")
    tell("\n".join(map(visible, lines)))


def tell(text: str) -> None:
    """Write a line to the error stream; where that takes nothing either, nobody is there to be told."""
    with suppress(OSError):
        sys.stderr.write(text + "\n")
        sys.stderr.flush()
