"""Classes of values are those of the standard library, in everything that this package uses of them."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import Any, ClassVar, Generic, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_ds import records
from spark_tests.full_form import examples

T = TypeVar("T")
BOTH = [records, dataclasses]


@st.composite
def _definitions(draw: st.DrawFn) -> dict[str, Any]:
    """The fields of a class: name to what is said of it, those without a default first."""
    flags = st.fixed_dictionaries(
        {}, optional={"repr": st.booleans(), "compare": st.booleans(), "hash": st.sampled_from([None, True, False])}
    )  # fmt: skip
    required = draw(st.lists(flags, max_size=3))
    optional = draw(
        st.lists(
            st.tuples(flags, st.sampled_from([{"default": 7}, {"default_factory": list}, {"default": "x"}])),
            max_size=3,
        )
    )
    saying = [*required, *({**flag, **value} for flag, value in optional)]
    return {f"f{i}": said for i, said in enumerate(saying)}


def _made(module: Any, said: dict[str, Any], options: dict[str, bool], base: Any = object) -> Any:
    fields = {name: module.field(**known) for name, known in said.items() if known}
    namespace = {"__annotations__": dict.fromkeys(said, "object"), **fields, "__module__": __name__}
    return module.dataclass(type("Made", (base,), namespace), **options)


def _outcome(step: Any) -> Any:
    try:
        return step()
    except Exception as error:  # noqa: BLE001 - compared
        return type(error), str(error).split("__init__()")[-1]


# Not NaN, which equals itself in a tuple: the standard library compares fields one by one since Python 3.13.
_VALUES = st.sampled_from([1, 1.0, True, "a", None, (1, 2)])


@given(
    said=_definitions(),
    more=_definitions(),
    options=st.fixed_dictionaries({"frozen": st.booleans(), "slots": st.booleans()}),
    inherits=st.booleans(),
    values=st.lists(_VALUES, max_size=4),
    others=st.lists(_VALUES, max_size=4),
    unhashable=st.booleans(),
)
@settings(max_examples=examples(300), deadline=None)
def test_they_behave_as_those_of_the_standard_library(
    said: dict[str, Any], more: dict[str, Any], options: dict[str, bool], inherits: bool, values: list[Any],
    others: list[Any], unhashable: bool,
):  # fmt: skip
    if inherits:  # what has a default follows what has none
        more = {f"g{i}": known or {"default": 0} for i, known in enumerate(more.values())}
        more = {
            name: {"default": 1} | known for name, known in more.items() if "default_factory" not in known
        }
    if unhashable:
        values = [*values[:-1], []] if values else values
    seen = []
    for module in BOTH:
        cls = _made(module, said, options)
        if inherits:
            cls = _made(module, more, options, base=cls)
        seen.append(list(_observed(module, cls, values, others)))
    assert repr(seen[0]) == repr(seen[1])


def _observed(module: Any, cls: Any, values: list[Any], others: list[Any]) -> Any:
    yield cls.__match_args__
    made = _outcome(lambda: cls(*values))
    yield repr(made)
    yield [(f.name, f.init, f.repr, f.compare) for f in dataclasses.fields(cls)]
    if not isinstance(made, cls):
        return
    other = _outcome(lambda: cls(*others))
    yield made == other, other == made, made == cls(*values), made != other, made == 1
    yield (_outcome(lambda: hash(made) == hash(cls(*values)))), cls.__hash__ is None
    yield _outcome(lambda: dataclasses.asdict(made)), _outcome(lambda: dataclasses.replace(made) == made)
    name = next(iter(cls.__match_args__), "none")
    yield (
        _outcome(lambda: repr(module.replace(made, **{name: 5}))),
        _outcome(lambda: module.replace(made, no=1)),
    )
    copied = copy.copy(made)
    yield repr(copied), copied == made, copy.deepcopy(made).__class__ is cls
    yield _outcome(lambda: cls(**{name: 3}) is None)
    if name != "none":
        yield _outcome(lambda: setattr(made, name, 9)), repr(made), _outcome(lambda: delattr(made, name))
    if hasattr(made, "__dict__"):  # with slots the standard library raises now this, now that
        yield _outcome(lambda: setattr(made, "unknown", 9))
    yield hasattr(made, "__dict__")


@records.dataclass(frozen=True, slots=True)
class Pair(Generic[T]):
    """Two things."""

    left: T
    right: list[Pair[T]] = records.field(default_factory=list)
    both: ClassVar[int] = 2

    def __post_init__(self) -> None:
        if self.left is None:
            raise ValueError("nothing on the left")


@records.dataclass(frozen=True)
class Triple:
    """Three things."""

    first: int
    second: int = 2
    hidden: str = records.field(default="", repr=False, compare=False)

    def __repr__(self) -> str:
        return f"<{self.first}>"


class Named(Triple):
    """A plain class below."""


def test_values_are_pickled_copied_matched_and_shown():
    pair = Pair(1, [Pair(2)])
    assert pickle.loads(pickle.dumps(pair)) == pair
    assert repr(pair) == "Pair(left=1, right=[Pair(left=2, right=[])])"
    assert pickle.loads(pickle.dumps(Triple(1, 3, "h"))).hidden == "h"
    match pair:
        case Pair(left, [inner]):
            assert (left, inner) == (1, Pair(2))
    assert not hasattr(pair, "__dict__")
    assert Pair.__init__.__qualname__ == "Pair.__init__"
    assert Pair.both == 2
    pair.right.append(pair)
    assert repr(pair).endswith("right=[Pair(left=2, right=[]), ...])")


def test_what_a_class_defines_itself_stays():
    assert repr(Triple(1)) == "<1>"
    assert Triple(1, hidden="a") == Triple(1, hidden="b")
    assert Triple.second == 2
    with pytest.raises(ValueError, match="nothing on the left"):
        Pair(None)


def test_a_frozen_value_stays_and_a_plain_subclass_may_add():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Pair(1).left = 2  # type: ignore[misc]
    named = Named(1)
    named.more = 3  # type: ignore[attr-defined]
    with pytest.raises(dataclasses.FrozenInstanceError):
        named.first = 3  # type: ignore[misc]


def test_a_default_that_can_change_is_refused():
    with pytest.raises(ValueError, match="default_factory"):

        @records.dataclass
        class Shared:
            """One list for all."""

            items: list[int] = []  # noqa: RUF012


def test_help_shows_the_fields_as_arguments() -> None:
    import inspect

    from delta_ds import IdentityGenerator

    assert str(inspect.signature(IdentityGenerator)) == "(start: 'int' = 1, step: 'int' = 1)"
    IdentityGenerator(3)
    assert str(inspect.signature(IdentityGenerator)) == "(start: 'int' = 1, step: 'int' = 1)"

    class Own(IdentityGenerator):
        def __init__(self, only: str) -> None:
            super().__init__(int(only))

    assert str(inspect.signature(Own)) == "(only: 'str') -> 'None'"
