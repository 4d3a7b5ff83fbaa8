"""Session settings that commands use, and checks of their arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_ds.conditions.options import INVALID_CONF_VALUE, INVALID_IDEMPOTENT_WRITES_SETTINGS
from delta_ds.kernel.options import values
from delta_ds.spark.settings import TXN_APP_ID, TXN_VERSION

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TIME_ZONE = "spark.sql.session.timeZone"


def is_set(spark: SparkSession, name: str, default: bool) -> bool:
    """Whether a setting of the session is true.

    Raises
    ------
    InvalidOptionError
        It is neither `true` nor `false`.
    """
    text = str(spark.conf.get(name, str(default).lower()))
    try:
        return values.boolean(text, values.zone_by_name("UTC"))
    except ValueError as error:
        raise INVALID_CONF_VALUE(setting=name, value=text, reason=error) from error


def time_zone(spark: SparkSession) -> str:
    """The session time zone: that of timestamps which users write without one."""
    return str(spark.conf.get(_TIME_ZONE))


if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def session_transaction(spark: SparkSession) -> tuple[str, int] | None:
    """The application and version that the session names for its writes; None: none.

    Raises
    ------
    InvalidOptionError
        One of the two is missing, or the version is no number.
    """
    app_id, version = (spark.conf.get(name, None) for name in (TXN_APP_ID, TXN_VERSION))
    if app_id is None and version is None:
        return None
    if app_id is None or version is None or not str(version).strip().isdecimal():
        raise INVALID_IDEMPOTENT_WRITES_SETTINGS(app_id=app_id, version=version)
    return app_id, int(version)
