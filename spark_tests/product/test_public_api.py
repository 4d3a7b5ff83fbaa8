"""The public API: everything is documented with an example that is run, typed, and found by `dir` and `help`."""

from __future__ import annotations

import inspect
import pydoc
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

import delta_ds
from delta_ds import DeltaError, DeltaLog, DeltaTable, Scan, Snapshot, Transaction
from spark_tests.product import public_api

CALLABLES = public_api.callables()
# Gives the package to the executors of the application, for its whole life; `spark_tests/behaviour/spark/test_ship.py`
# runs it.
_NOT_RUN = {"delta_ds.ship"}


def parameters(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    found = inspect.signature(function).parameters
    return {name: one for name, one in found.items() if name not in ("self", "cls")}


def sections(text: str) -> dict[str, str]:
    """The sections of a docstring by their titles; what comes before them has none."""
    parts = re.split(r"^([A-Z][a-z]+)\n-{3,}\n", inspect.cleandoc(text), flags=re.MULTILINE)
    return {"": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}


@pytest.mark.parametrize("name", sorted(CALLABLES))
def test_functions_and_methods_say_what_for_with_which_arguments_and_show_it(name: str) -> None:
    function = CALLABLES[name]
    assert function.__doc__, f"{name} has no docstring"
    said = sections(function.__doc__)
    assert ">>> " in said.get("Examples", ""), f"{name} has no example under a title `Examples`"
    assert "+SKIP" not in said["Examples"] or name in _NOT_RUN, f"the example of {name} is not run"
    explained = set(
        re.findall(r"\w+", " ".join(re.findall(r"^\S.*", said.get("Parameters", ""), re.MULTILINE)))
    )
    unexplained = sorted(set(parameters(function)) - explained)
    assert unexplained == [], f"{name} does not say under `Parameters` what {unexplained} are"


@pytest.mark.parametrize("name", sorted(CALLABLES))
def test_examples_stand_in_their_section(name: str) -> None:
    said = sections(CALLABLES[name].__doc__ or "")
    assert not any(">>> " in text for title, text in said.items() if title != "Examples")


@pytest.mark.parametrize("name", sorted(public_api.properties()))
def test_properties_say_what_they_are(name: str) -> None:
    assert public_api.properties()[name].__doc__


@pytest.mark.parametrize("owner", public_api.classes(), ids=lambda owner: owner.__name__)
def test_classes_say_what_they_are_and_all_but_errors_show_it(owner: type) -> None:
    said = sections(vars(owner)["__doc__"])
    assert said[""]
    if not issubclass(owner, DeltaError):
        assert ">>> " in said.get("Examples", ""), f"{owner.__name__} has no example under a title `Examples`"


@pytest.mark.parametrize("name", sorted(CALLABLES | public_api.properties()))
def test_signatures_are_typed_and_answer_no_any(name: str) -> None:
    function = (CALLABLES | public_api.properties())[name]
    hints = function.__annotations__
    assert [each for each in parameters(function) if each not in hints] == []
    assert hints.get("return", Any) is not Any, f"what {name} answers is not typed"
    assert not re.search(r"\bAny\b", str(hints["return"])), f"{name} answers {hints['return']}"


@pytest.mark.parametrize("owner", public_api.results(), ids=lambda owner: owner.__name__)
def test_attributes_and_items_of_what_is_handed_out_are_no_any(owner: type) -> None:
    said = [str(base) for base in getattr(owner, "__orig_bases__", ())]
    said += [
        str(hint)
        for base in owner.__mro__
        if base.__module__.startswith("delta_ds")
        for name, hint in vars(base).get("__annotations__", {}).items()
        if not name.startswith("_")
    ]
    assert [each for each in said if re.search(r"\bAny\b", each)] == []


def test_what_public_methods_hand_out_is_public_too() -> None:
    """Else whoever gets it finds neither an example nor a promise."""
    known = public_api.RECORDS | {owner.__name__ for owner in public_api.classes()}
    elsewhere = {
        "Any",
        "DataFrame",
        "DataStreamWriter",
        "Iterator",
        "None",
        "Path",
        "Sequence",
    }  # of Python and Spark; Arrow's have a dot
    unknown = {
        (name, word)
        for name, function in (CALLABLES | public_api.properties()).items()
        for word in re.findall(r"(?<![\w.])[A-Z]\w+(?!\w*\.)", str(function.__annotations__["return"]))
        if word not in known | elsewhere
    }
    assert unknown == set(), (
        "a class of values? then it belongs into _HANDED_OUT of spark_tests/product/public_api.py"
    )


def test_every_name_that_is_offered_is_there() -> None:
    assert set(delta_ds.__all__) <= set(dir(delta_ds))
    assert all(getattr(delta_ds, name).__module__.startswith("delta_ds") for name in delta_ds.__all__)
    assert [
        name for name in dir(delta_ds) if name in ("Any", "TYPE_CHECKING", "import_module", "annotations")
    ] == []


def test_a_mistyped_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(AttributeError, match="no attribute 'DeltaTabel'; did you mean 'DeltaTable'?"):
        delta_ds.DeltaTabel  # noqa: B018
    with pytest.raises(AttributeError, match="no attribute '__path_hook__'$"):
        delta_ds.__path_hook__  # noqa: B018
    # Of classes Python says it by itself, on standard error.
    program = "from delta_ds import DeltaTable\nDeltaTable.forpath"
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stderr
    assert "Did you mean: 'forPath'?" in said


@pytest.mark.parametrize("owner", [DeltaLog, Snapshot, Scan, Transaction])
def test_completion_of_a_name_offers_what_is_public(owner: type, tmp_path: Any) -> None:
    import pyarrow as pa

    log = DeltaLog(tmp_path)
    log.write(pa.table({"id": [1]}))
    made = {
        "DeltaLog": log,
        "Snapshot": log.snapshot(),
        "Scan": log.snapshot().scan(),
        "Transaction": log.start_transaction(),
    }
    shown = {name for name in dir(made[owner.__name__]) if not name.startswith("_")}
    attributes = {"predicate", "schema", "snapshot"}  # which `__init__` sets
    documented = {member.name.partition(".")[2] for member in public_api.members(owner)}
    assert documented <= shown <= documented | attributes


@pytest.mark.parametrize("name", ["merge", "forPath", "vacuum", "addColumns"])
def test_help_in_a_terminal_shows_the_signature_as_it_is_called(name: str) -> None:
    text = pydoc.render_doc(getattr(DeltaTable, name), renderer=pydoc.plaintext)
    head = text.splitlines()[2]
    assert head.startswith(f"{name}(") and "*arguments" not in head
    assert "Examples" in text
