"""The version of delta-spark whose names these are."""

__version__ = "4.4.0"
