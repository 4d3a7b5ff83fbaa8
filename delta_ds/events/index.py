"""All events by name, for documentation and tests."""

from __future__ import annotations

from types import ModuleType

from delta_ds.events import commands, log, spark, storage
from delta_ds.events.record import Event

# What each of the modules is about, in the order of the documentation.
SUBJECTS: dict[str, ModuleType] = {
    "The log, commits and commit coordinators": log,
    "Storage": storage,
    "Reading, streams, commands and their listeners": commands,
    "Spark": spark,
}


def events_of(module: ModuleType) -> list[Event]:
    """The events of a module, by name."""
    found = [value for value in vars(module).values() if isinstance(value, Event)]
    return sorted(found, key=lambda event: event.name)


EVENTS: dict[str, Event] = {event.name: event for module in SUBJECTS.values() for event in events_of(module)}
