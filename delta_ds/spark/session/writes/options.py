"""The options of a write, completed: by its call, by the settings of the session, by what processes need of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from delta_ds.conditions.options import REPLACE_WHERE_IN_OVERWRITE
from delta_ds.events.reading import OPTION_PASSED_OVER
from delta_ds.kernel.format.options.session_facts import CONFLICT_DETECTION, SessionFacts, conflict_detection
from delta_ds.kernel.format.options.write import (
    DEFINITION_OPTION,
    ERROR,
    IGNORE,
    WRITE,
    with_call,
    with_settings,
)
from delta_ds.spark.base.schema import quoted_list
from delta_ds.spark.session.writes.request import WriteRequest

_EVERYTHING = "true"


def complete_options(request: WriteRequest, facts: SessionFacts) -> dict[str, str]:
    """All options of a write, as the data source and the native writer take them.

    Raises
    ------
    InvalidOptionError
        An option contradicts the call, or a setting has a value that it does not take.
    """
    options = with_layout(request.options, request.partition_by, request.cluster_by)
    if request.mode in (ERROR, IGNORE):
        options = with_call(options, "ifExists", request.mode)
    if request.replaces_table:
        options = with_call(options, "replaceTable", "true")
    if request.by_partition:
        options = _with_dynamic_overwrite(options)
    elif request.replaced is not None and request.replaced != _EVERYTHING:
        if given(options, "replaceWhere") is not None:
            raise REPLACE_WHERE_IN_OVERWRITE()
        options["replaceWhere"] = request.replaced
    if request.definition is not None:
        options = with_call(options, DEFINITION_OPTION, request.definition.text())
    return with_facts(options, facts)


def with_facts(options: Mapping[str, str], facts: SessionFacts, *, streaming: bool = False) -> dict[str, str]:
    """Options completed by the session, see `with_settings`.

    Raises
    ------
    InvalidOptionError
        A value that a setting does not take.
    """
    from delta_ds.kernel.commands.optimize.auto_compact import auto_compaction_of

    # Refused here, and not after the commit.
    auto_compaction_of(facts.settings)
    conflict_detection(facts.settings.get(CONFLICT_DETECTION))
    return with_settings(options, facts, streaming=streaming)


def with_layout(
    options: Mapping[str, str], partition_by: Sequence[str], cluster_by: Sequence[str]
) -> dict[str, str]:
    """Options with the partitioning and clustering that calls have said; each may be said once."""
    complete = dict(options)
    if partition_by:
        complete = with_call(complete, "partitionBy", quoted_list(partition_by))
    if cluster_by:
        complete = with_call(complete, "clusterBy", quoted_list(cluster_by))
    return complete


def given(options: Mapping[str, str], name: str) -> str | None:
    """The text of an option, in any case of its name; None where it is not given."""
    return next((text for known, text in options.items() if known.lower() == name.lower()), None)


def _with_dynamic_overwrite(options: Mapping[str, str]) -> dict[str, str]:
    """Options of a call that replaces partitions, whatever they say of it themselves, as in delta-spark."""
    name = "partitionOverwriteMode"
    text = given(options, name)
    if text is not None and not WRITE.parse({name: text}, "UTC").values["dynamic_partitions"]:
        hint = "the call replaces the partitions that it writes to"
        OPTION_PASSED_OVER.log(option=name, kind="write", hint=hint)
    others = {known: text for known, text in options.items() if known.lower() != name.lower()}
    return {**others, name: "dynamic"}
