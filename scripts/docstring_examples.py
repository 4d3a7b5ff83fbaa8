"""Examples of docstrings as mkdocstrings wants them: under a heading of their own, wherever other sections stand above.

In the code an example follows the last section without a heading, as `help()` shows it well.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

_SECTION = re.compile(r"^\w[\w ]*\n-{3,}$", re.MULTILINE)
_EXAMPLE = re.compile(r"\n\n(?=>>> )")


class ExamplesUnderAHeading(griffe.Extension):
    """Put the heading in."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is None:
            return
        text = obj.docstring.value
        found = _EXAMPLE.search(text)
        if found and _SECTION.search(text, 0, found.start()) and "\nExamples\n---" not in text:
            obj.docstring.value = f"{text[: found.start()]}\n\nExamples\n--------\n{text[found.end() :]}"
