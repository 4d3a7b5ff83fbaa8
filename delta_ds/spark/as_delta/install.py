"""`install_as_delta()`: code written for delta-spark runs in this process."""

from __future__ import annotations

from delta_ds.spark.as_delta.auto_register import install_auto_register
from delta_ds.spark.as_delta.settings import install_package, other_package


def install_as_delta() -> str | None:
    """Let code written for delta-spark run in this process as it is.

    `from delta.tables import DeltaTable` and the other imports of delta-spark give what this package has. Every session
    that is made from now on is registered, and the one that there is. Settings by which programs ask for delta-spark's
    jar are left out where there is no such jar. Doing so again is harmless.

    Returns
    -------
    str or None
        Why imports of `delta` go elsewhere: there is another package of that name, such as delta-spark's. It stays,
        and so do packages with its jar that a program asks for. None: they come here.

    Examples
    --------
    >>> import delta_ds
    >>> delta_ds.install_as_delta()
    >>> from delta.tables import DeltaTable
    >>> DeltaTable is delta_ds.DeltaTable
    True
    """
    install_package()
    install_auto_register()
    other = other_package()
    return None if other is None else f"there is a package 'delta' at {other}, which stays"
