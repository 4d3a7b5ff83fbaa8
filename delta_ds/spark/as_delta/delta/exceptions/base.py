"""`delta.exceptions.base`: the conflicts of concurrent commits without a kind of session, which are the same here."""

from delta_ds.spark.as_delta.delta.exceptions import *  # noqa: F403
from delta_ds.spark.as_delta.delta.exceptions import __all__ as __all__
