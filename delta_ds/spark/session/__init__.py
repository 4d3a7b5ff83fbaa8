"""What `spark.read` and `df.write` cannot say to a Python data source, said for them."""

from delta_ds.spark.session.integration import install, is_installed, uninstall
from delta_ds.spark.session.reading import NATIVE_SCAN_CONF, is_off
from delta_ds.spark.session.writing import NATIVE_WRITE_CONF

__all__ = ["NATIVE_SCAN_CONF", "NATIVE_WRITE_CONF", "install", "is_installed", "is_off", "uninstall"]
