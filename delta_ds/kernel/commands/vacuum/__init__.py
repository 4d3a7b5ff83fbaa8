"""VACUUM: delete the files below a table's folder that no version within the retention needs."""

from delta_ds.kernel.commands.vacuum.command import VacuumResult, vacuum

__all__ = ["VacuumResult", "vacuum"]
