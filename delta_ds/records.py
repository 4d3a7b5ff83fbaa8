"""Classes of values: `dataclass`, `field` and `replace` of the standard library, without their cost at import.

The standard library compiles six functions for each class when its module is imported, half a millisecond, and Spark
starts a Python process for every step of a query. Here `__init__` is compiled when the first value is made, and all
other methods are shared. What is offered is what this package uses; to type checkers it is the standard library, and
functions of `dataclasses`, such as `asdict`, take these values, too.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any

_MISSING: Any = object()
_SHAPE = "__record__"


class _Field:
    """What is said of one field."""

    __slots__ = ("compare", "default", "default_factory", "hash", "init", "repr")

    def __init__(
        self,
        *,
        default: Any = _MISSING,
        default_factory: Any = _MISSING,
        init: bool = True,
        repr: bool = True,
        hash: bool | None = None,
        compare: bool = True,
    ) -> None:
        self.default = default
        self.default_factory = default_factory
        self.init = init
        self.repr = repr
        self.hash = compare if hash is None else hash
        self.compare = compare


class _Shape:
    """The fields of a class by name, those of its bases first, and what follows from them."""

    __slots__ = ("compared", "fields", "frozen", "hashed", "shown")

    def __init__(self, fields: dict[str, _Field], frozen: bool) -> None:
        self.fields = fields
        self.frozen = frozen
        self.compared = _values_of([name for name, member in fields.items() if member.compare])
        self.hashed = _values_of([name for name, member in fields.items() if member.hash])
        self.shown = [name for name, member in fields.items() if member.repr]


def _values_of(names: list[str]) -> Callable[[object], Any]:
    return attrgetter(*names) if names else lambda value: ()


def _dataclass(cls: Any = None, /, *, frozen: bool = False, slots: bool = False) -> Any:
    if cls is None:
        return lambda cls: _made(cls, frozen, slots)
    return _made(cls, frozen, slots)


def _made(cls: Any, frozen: bool, slots: bool) -> Any:
    own = {
        name: _described(cls, name)
        for name, annotation in cls.__annotations__.items()
        if not str(annotation).startswith("ClassVar")
    }
    fields: dict[str, _Field] = {}
    for base in cls.__mro__[:0:-1]:
        if _SHAPE in base.__dict__:
            fields |= base.__dict__[_SHAPE].fields
    shape = _Shape({**fields, **own}, frozen)
    members = _members(shape, frozen, slots)
    made = {name: member for name, member in members.items() if name not in cls.__dict__}
    if cls.__dict__.get("__hash__") is None:
        made["__hash__"] = _hash if frozen else None
    if slots:
        cls = _with_slots(cls, own, made)
    else:
        _complete(cls, own, made)
    if "__init__" in made:
        cls.__init__ = _first_init(cls, shape)
    return cls


def _described(cls: Any, name: str) -> _Field:
    """What a class says of one of its own fields."""
    default = cls.__dict__.get(name, _MISSING)
    described = default if isinstance(default, _Field) else _Field(default=default)
    if described.default.__class__.__hash__ is None:
        raise ValueError(f"the default of {cls.__name__}.{name} can change: use default_factory")
    return described


def _members(shape: _Shape, frozen: bool, slots: bool) -> dict[str, Any]:
    """What every class gets that it does not define itself."""
    members = {
        _SHAPE: shape,
        "__dataclass_fields__": _StandardFields(),
        "__signature__": _StandardSignature(),
        "__match_args__": tuple(name for name, member in shape.fields.items() if member.init),
        "__init__": None,
        "__repr__": _repr,
        "__eq__": _eq,
    }
    if frozen:
        members |= {"__setattr__": _refuse_to_set, "__delattr__": _refuse_to_delete}
    if frozen and slots:
        members |= {"__getstate__": _getstate, "__setstate__": _setstate}
    return members


def _with_slots(cls: Any, own: dict[str, _Field], made: dict[str, Any]) -> Any:
    """The class anew, as slots cannot be added to one."""
    inherited = {name for base in cls.__mro__[1:] for name in getattr(base, "__slots__", ())}
    left_out = {*own, "__dict__", "__weakref__"}
    namespace = {name: member for name, member in cls.__dict__.items() if name not in left_out}
    slots = tuple(name for name in own if name not in inherited)
    with_slots = type(cls)(cls.__name__, cls.__bases__, {**namespace, **made, "__slots__": slots})
    with_slots.__qualname__ = cls.__qualname__
    return with_slots


def _complete(cls: Any, own: dict[str, _Field], made: dict[str, Any]) -> None:
    for name, described in own.items():
        if described.default is not _MISSING:
            setattr(cls, name, described.default)
        elif name in cls.__dict__:
            delattr(cls, name)
    for name, member in made.items():
        setattr(cls, name, member)


# --- making values


def _first_init(cls: Any, shape: _Shape) -> Callable[..., None]:
    """The `__init__` of a class of which there is no value yet; it gives way to a compiled one."""

    def __init__(self: object, *args: Any, **values: Any) -> None:
        init = cls.__init__ = _compiled_init(cls, shape)
        init(self, *args, **values)

    setattr(__init__, _SHAPE, shape)
    return __init__


def _compiled_init(cls: Any, shape: _Shape) -> Any:
    namespace: dict[str, Any] = {"_set": object.__setattr__, "_missing": _MISSING}
    parameters, lines = ["self"], []
    for name, member in shape.fields.items():
        value = name
        if member.default_factory is not _MISSING:
            namespace[f"_make_{name}"] = member.default_factory
            value = f"_make_{name}() if {name} is _missing else {name}" if member.init else f"_make_{name}()"
        namespace[f"_default_{name}"] = member.default
        if member.init:
            optional = member.default is not _MISSING or member.default_factory is not _MISSING
            parameters.append(f"{name}=_default_{name}" if optional else name)
        elif member.default is not _MISSING:
            value = f"_default_{name}"
        elif member.default_factory is _MISSING:
            continue
        lines.append(f"_set(self, {name!r}, {value})" if shape.frozen else f"self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    body = "".join(f"\n  {line}" for line in lines or ["pass"])
    exec(f"def __init__({', '.join(parameters)}):{body}", namespace)
    init = namespace["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    setattr(init, _SHAPE, shape)
    return init


def _replace(value: Any, /, **changes: Any) -> Any:
    for name, member in value.__record__.fields.items():
        if member.init and name not in changes:
            changes[name] = getattr(value, name)
    return value.__class__(**changes)


# --- what all classes share


@reprlib.recursive_repr()
def _repr(self: Any) -> str:
    from delta_ds.redaction import safe_addresses

    shown = ", ".join([f"{name}={getattr(self, name)!r}" for name in self.__record__.shown])
    return safe_addresses(f"{self.__class__.__qualname__}({shown})")


def _eq(self: Any, other: Any) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    values = self.__record__.compared
    # In tuples, as what is the same object counts as equal there: NaN.
    return (values(self),) == (values(other),)


def _hash(self: Any) -> int:
    return hash(self.__record__.hashed(self))


def _getstate(self: Any) -> list[Any]:
    return [getattr(self, name) for name in self.__record__.fields]


def _setstate(self: Any, state: list[Any]) -> None:
    for name, value in zip(self.__record__.fields, state, strict=True):
        object.__setattr__(self, name, value)


def _refuse_to_set(self: Any, name: str, value: Any) -> None:
    if _frozen(self, name):
        from dataclasses import FrozenInstanceError

        raise FrozenInstanceError(f"cannot assign to field {name!r}")
    object.__setattr__(self, name, value)


def _refuse_to_delete(self: Any, name: str) -> None:
    if _frozen(self, name):
        from dataclasses import FrozenInstanceError

        raise FrozenInstanceError(f"cannot delete field {name!r}")
    object.__delattr__(self, name)


def _frozen(self: Any, name: str) -> bool:
    """Whether an attribute stays as it is: all but those that a plain subclass adds."""
    return _SHAPE in self.__class__.__dict__ or name in self.__record__.fields


class _StandardFields:
    """`__dataclass_fields__` of a class, made when a function of the standard library asks for it."""

    def __get__(self, instance: object, owner: Any) -> dict[str, Any]:
        from dataclasses import field, make_dataclass

        described = []
        for name, member in owner.__record__.fields.items():
            attributes = {key: getattr(member, key) for key in _Field.__slots__}
            stated = {key: value for key, value in attributes.items() if value is not _MISSING}
            described.append((name, owner.__annotations__.get(name, "Any"), field(**stated)))
        made: Any = make_dataclass(owner.__name__, described, slots=True)
        owner.__dataclass_fields__ = made.__dataclass_fields__
        return owner.__dataclass_fields__  # type: ignore[no-any-return]


class _StandardSignature:
    """`__signature__` of a class, for `help` and editors."""

    def __get__(self, instance: object, owner: Any) -> Any:
        from inspect import Parameter, Signature

        shape = getattr(owner.__init__, _SHAPE, None)
        if shape is None:
            raise AttributeError("__signature__")  # a plain subclass with an `__init__` of its own
        annotations = {
            name: text
            for base in owner.__mro__[::-1]
            for name, text in vars(base).get("__annotations__", {}).items()
        }
        parameters = []
        for name, member in shape.fields.items():
            if member.init:
                default = _FACTORY if member.default_factory is not _MISSING else member.default
                default = Parameter.empty if default is _MISSING else default
                kind = Parameter.POSITIONAL_OR_KEYWORD
                annotation = annotations.get(name, Parameter.empty)
                parameters.append(Parameter(name, kind, default=default, annotation=annotation))
        return Signature(parameters)


class _Factory:
    """What stands for a default that is made anew for each value."""

    def __repr__(self) -> str:
        return "<factory>"


_FACTORY = _Factory()


if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
    from dataclasses import field as field
    from dataclasses import replace as replace
else:
    dataclass, field, replace = _dataclass, _Field, _replace
