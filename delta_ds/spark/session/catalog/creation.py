"""Tables that come to be without rows, at a path or under a name: one commit, whoever asks for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_ds.api.delta_log import DeltaLog
from delta_ds.kernel.format.options.parsing import is_of_store
from delta_ds.kernel.format.options.session_facts import default_properties
from delta_ds.kernel.format.options.settings import ARBITRARY_PROPERTIES
from delta_ds.kernel.transaction.alter import create
from delta_ds.spark.base.kinds import settings
from delta_ds.spark.base.session_conf import is_set
from delta_ds.spark.engines.connect.connect_bridge import open_log
from delta_ds.spark.session.catalog.places import CREATE, CREATE_OR_REPLACE, REPLACE, Place
from delta_ds.spark.session.writes.new_table import NewTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def create_empty(spark: SparkSession, place: Place, table: NewTable) -> None:
    """Create or replace a table without rows; its entry is stored by `Place.register`.

    A new name for a table that is there takes that one as it is, which must be as described where it is described.

    Raises
    ------
    DeltaError
        What was asked for is not possible; the message names the column or property.
    """
    store = {name: text for name, text in table.options.items() if is_of_store(name)} | dict(place.store)
    log = open_log(spark, place.path, store)
    assert isinstance(log, DeltaLog)
    # A table that the catalog does not know by the name is taken over, and never replaced.
    known = place.entry is not None or place.is_there
    modes = {
        CREATE: create.CREATE if place.name is None else create.ADOPT,
        REPLACE: create.REPLACE,
        CREATE_OR_REPLACE: create.REPLACE_OR_CREATE if known else create.CREATE_OR_REPLACE,
    }
    create.create_table(
        log,
        table.schema,
        table.partitioning,
        table.properties,
        mode=modes[table.mode],
        description=table.comment,
        cluster_by=table.clustering or (),
        defaults=default_properties(settings.session_settings(spark)),
        managed=place.managed,
        without_columns=table.mode == CREATE,
        unknown=is_set(spark, ARBITRARY_PROPERTIES.full_name, False),
    )
