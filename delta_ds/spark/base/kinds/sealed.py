"""Options of stores on Spark Connect: references in plans, and the values aside.

A server of Spark Connect writes the plans of its clients into its event log, options and all, whatever their names are.
What it abbreviates there are bytes. So the values travel with the class of the data source, which Spark sends as bytes
when it is registered; the processes of the server that make the source take them out of there.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar
from weakref import WeakKeyDictionary

from delta_ds.conditions.session import SECRET_NOT_KNOWN
from delta_ds.kernel.format.options.parsing import hidden_name, is_of_store
from delta_ds.kernel.storage.store_options import SecretOptions
from delta_ds.records import dataclass, field
from delta_ds.redaction import safe_addresses
from delta_ds.spark.base.kinds.frames import active
from delta_ds.spark.base.kinds.kind import is_connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MARK = "pydelta-sealed:"
# Not to be imported, so that Spark pickles classes of it by their values.
SEALED_MODULE = "delta_ds_sealed"

# In a process of the server: what the classes carried that have come there.
_carried: dict[str, str] = {}


class Sealed:
    """What data sources have to be: their class carries the values of the references in their options."""

    sealed: ClassVar[Mapping[str, str]] = {}

    @classmethod
    def opened(cls, options: Mapping[str, Any]) -> dict[str, Any]:
        """Options with values, in a process that the class has come to.

        Raises
        ------
        InvalidOptionError
            It does not carry one of them.
        """
        _carried.update(cls.sealed)
        return {name: open_value(name, value) for name, value in options.items()}


def open_value(name: str, value: Any) -> Any:
    """What a reference stands for, alone or in a dictionary; anything else as it is.

    Raises
    ------
    InvalidOptionError
        It is not known here; `name` says of what it is.
    """
    if isinstance(value, dict):
        return {inner: open_value(str(inner), one) for inner, one in value.items()}
    if not isinstance(value, str) or not value.startswith(MARK):
        return value
    if value not in _carried:
        raise SECRET_NOT_KNOWN(option=name)
    return _carried[value]


@dataclass
class _Client:
    """What a session has made references of, and what its server has been told.

    Attributes
    ----------
    references, values
        By values, and by references.
    sources
        The data sources of the session by name, and how many values each has carried.
    """

    references: dict[str, str] = field(default_factory=dict, repr=False)
    values: dict[str, str] = field(default_factory=dict, repr=False)
    sources: dict[str, tuple[Any, int]] = field(default_factory=dict)

    def seal(self, name: str, value: Any) -> Any:
        if not isinstance(value, str) or value.startswith(MARK):
            return value
        if not is_of_store(name) and (name.lower() != "path" or safe_addresses(value) == value):
            return value
        reference = self.references.setdefault(value, f"{MARK}{uuid.uuid4()}")
        self.values[reference] = value
        return reference


_clients: WeakKeyDictionary[SparkSession, _Client] = WeakKeyDictionary()


def register_source(spark: SparkSession, source: Any) -> None:
    """Make a data source, which is `Sealed`, known to a session; one that is known is sent again."""
    client = _clients.setdefault(spark, _Client())
    carrier = source
    if client.values:
        members = {"sealed": dict(client.values), "__module__": SEALED_MODULE}
        carrier = type(source)(source.__name__, (source,), members)
    # Spark looks the name up in the active session, and refuses one that only that one has.
    with active(spark):
        spark.dataSource.register(carrier)
    client.sources[source.name()] = source, len(client.values)


def register_sources_again(spark: SparkSession) -> None:
    """Let data sources know what workers import from by now: Spark keeps what there was when they were registered."""
    # Of a server's each session has files of its own.
    context = None if is_connect(spark) else spark.sparkContext
    for session, client in list(_clients.items()):
        if session is spark or (context and not is_connect(session) and session.sparkContext is context):
            for source, _ in list(client.sources.values()):
                register_source(session, source)


def is_registered(spark: SparkSession, name: str) -> bool:
    """Whether a session knows a data source by `register_source`."""
    return spark in _clients and name in _clients[spark].sources


def seal(spark: SparkSession, options: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Options as the plan of a data source may have them.

    In a classic session under names whose values Spark hides: nobody but Spark shows plans there.

    Parameters
    ----------
    name
        Of the data source. One that `register_source` has not made known takes no references.
    """
    if not is_connect(spark):
        return {hidden_name(option): value for option, value in options.items()}
    if not is_registered(spark, name):
        return dict(options)
    client = _clients[spark]
    sealed = {option: client.seal(option, value) for option, value in options.items()}
    source, told = client.sources[name]
    if len(client.values) > told:
        register_source(spark, source)
    return sealed


def seal_argument(spark: SparkSession, value: Any) -> Any:
    """An argument of a function that a server calls, which may be options, or an address with a login.

    To be followed by `seal`, which sends the values.
    """
    client = _clients.setdefault(spark, _Client())
    if isinstance(value, SecretOptions):
        return {name: client.seal(name, one) for name, one in value.items()}
    return client.seal("path", value)
