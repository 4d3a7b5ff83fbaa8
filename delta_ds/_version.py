"""The version of this package, in a module that every other one can import.

In a checkout: which one comes next. What is built has its own here, that of the git tag (`hatch_build.py`).
"""

__version__ = "0.3.0.dev0"
