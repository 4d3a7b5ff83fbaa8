"""The options of a write, completed: by its call, by the settings of the session, by what processes need of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from delta_ds.conditions.options import REPLACE_WHERE_IN_OVERWRITE
from delta_ds.exceptions import InvalidOptionError
from delta_ds.kernel.options.session_facts import CODEC, RECORDS_PER_FILE, SessionFacts
from delta_ds.kernel.options.session_settings import CONFLICT_DETECTION, SETTINGS_OPTION, conflict_detection
from delta_ds.kernel.options.settings import (
    AUTO_MERGE,
    OPTIMIZE_WRITE,
    TXN_APP_ID,
    TXN_VERSION,
    USER_METADATA,
)
from delta_ds.kernel.options.write import DEFINITION_OPTION, ERROR, IGNORE
from delta_ds.spark.schema import quoted_list
from delta_ds.spark.writes.request import WriteRequest

# Settings of a session that stand for an option, as in delta-spark: of every write, and of batches only.
OF_EVERY_WRITE = {
    "userMetadata": USER_METADATA.full_name,
    "mergeSchema": AUTO_MERGE.full_name,
    "optimizeWrite": OPTIMIZE_WRITE.full_name,
    "compression": CODEC,
    "maxRecordsPerFile": RECORDS_PER_FILE,
}
_OF_BATCHES = {**OF_EVERY_WRITE, "txnAppId": TXN_APP_ID.full_name, "txnVersion": TXN_VERSION.full_name}

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
        _put(options, "ifExists", request.mode)
    if request.replaces_table:
        options["replaceTable"] = "true"
    if request.by_partition:
        options = _without(options, "partitionOverwriteMode") | {"partitionOverwriteMode": "dynamic"}
    elif request.replaced is not None and request.replaced != _EVERYTHING:
        if given(options, "replaceWhere") is not None:
            raise REPLACE_WHERE_IN_OVERWRITE()
        options["replaceWhere"] = request.replaced
    if request.definition is not None:
        options[DEFINITION_OPTION] = request.definition.text()
    return with_settings(options, facts, _OF_BATCHES)


def with_settings(
    options: Mapping[str, str], facts: SessionFacts, stand_for: Mapping[str, str]
) -> dict[str, str]:
    """Options completed by the session's settings for all writes.

    Parameters
    ----------
    stand_for
        The settings of a session by the name of the option that they stand for.

    Raises
    ------
    InvalidOptionError
        A value that a setting does not take.
    """
    from delta_ds.kernel.commands.optimize.auto_compact import auto_compaction_of

    # Refused here, and not after the commit.
    auto_compaction_of(facts.settings)
    conflict_detection(facts.settings.get(CONFLICT_DETECTION))
    found = {name: facts.settings[key] for name, key in stand_for.items() if key in facts.settings}
    found[SETTINGS_OPTION] = facts.text()
    names = {name.lower() for name in options}
    return {**options, **{name: text for name, text in found.items() if name.lower() not in names}}


def with_layout(
    options: Mapping[str, str], partition_by: Sequence[str], cluster_by: Sequence[str]
) -> dict[str, str]:
    """Options with the partitioning and clustering that calls have said; each may be said once."""
    complete = dict(options)
    if partition_by:
        _put(complete, "partitionBy", quoted_list(partition_by))
    if cluster_by:
        _put(complete, "clusterBy", quoted_list(cluster_by))
    return complete


def given(options: Mapping[str, str], name: str) -> str | None:
    """The text of an option, in any case of its name; None where it is not given."""
    return next((text for known, text in options.items() if known.lower() == name.lower()), None)


def is_true(options: Mapping[str, str], name: str) -> bool:
    """Whether an option is `true`; what is no truth value is refused by whoever parses all options."""
    return (given(options, name) or "").strip().lower() == "true"


def _without(options: Mapping[str, str], name: str) -> dict[str, str]:
    return {known: text for known, text in options.items() if known.lower() != name.lower()}


def _put(options: dict[str, str], name: str, text: str) -> None:
    """Add the value of a method call to the options, which must not have it too."""
    if given(options, name) is not None:
        raise InvalidOptionError(
            f"{name} is given twice, by the option and by the call (.partitionBy, .clusterBy, .mode); give it once",
            parameters={"option": name},
        )
    options[name] = text
