"""The session integration: what `spark.read` and `df.write` cannot tell a Python data source."""

from delta_ds.spark.base.session_conf import NATIVE_SCAN_CONF, NATIVE_WRITE_CONF, is_off
from delta_ds.spark.session.integration import install, is_installed, uninstall

__all__ = ["NATIVE_SCAN_CONF", "NATIVE_WRITE_CONF", "install", "is_installed", "is_off", "uninstall"]
