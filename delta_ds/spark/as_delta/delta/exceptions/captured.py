"""`delta.exceptions.captured`: the conflicts of concurrent commits of classic sessions, which are the same here."""

from delta_ds.spark.as_delta.delta.exceptions import *  # noqa: F403
from delta_ds.spark.as_delta.delta.exceptions import __all__ as __all__
