"""The version of this package; kept by itself, so that any module can name it without the public names."""

__version__ = "0.1.0"
