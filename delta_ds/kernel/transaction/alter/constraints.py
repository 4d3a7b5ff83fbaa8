"""Add and drop CHECK constraints.

Source: PROTOCOL.md, "CHECK Constraints"; protocol-checklist CON-W-03, CON-W-04.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from delta_ds.conditions.definitions import (
    CONSTRAINT_ALREADY_EXISTS,
    CONSTRAINT_DOES_NOT_EXIST,
    INVALID_CONSTRAINT_NAME,
)
from delta_ds.kernel.format.operations import ADD_CONSTRAINT, DROP_CONSTRAINT
from delta_ds.kernel.format.properties import CONSTRAINT_PREFIX
from delta_ds.kernel.transaction.alter.definitions import check_constraint
from delta_ds.kernel.transaction.alter.protocol import upgrade_protocol
from delta_ds.records import replace

if TYPE_CHECKING:
    from delta_ds.kernel.transaction.table_log import TableLog

_TOKEN = re.compile(
    r"""(?P<hidden>\s+|--[^\n]*|/\*.*?\*/)|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`(?:[^`]|``)*`"""
    r"|(?:\d+\.\d*|\.\d+|\d+(?=[eE][+-]?\d))(?:[eE][+-]?\d+)?(?:BD|[DLSYF])?|\w+"
    r"|<=>|<>|!=|<=|>=|==|!>|!<|\|\||.",
    re.DOTALL,
)


def add_constraint(log: TableLog, name: str, expression: str, verify: Callable[[str], None]) -> int:
    """Add a CHECK constraint that every row meets, those in the table and all to come.

    Parameters
    ----------
    log
        The table.
    name
        Of the constraint; case does not count.
    expression
        Spark SQL; TRUE for the rows that are allowed, so that NULL is not.
    verify
        Called with the expression before the commit; raises if a row of the table breaks it. Rows that others
        add meanwhile make the commit fail.

    Returns
    -------
    int
        The version committed.

    Raises
    ------
    SchemaError
        There is one of the name already, or the name is empty.
    PredicateError, UnsupportedFeatureError
        The expression is not a boolean one on the table's columns that can be evaluated.
    InvariantViolationError
        A row breaks it (from `verify`).
    """
    if not name.strip():
        raise INVALID_CONSTRAINT_NAME()
    txn = log.start_transaction()
    table = log.storage.url
    key = CONSTRAINT_PREFIX + name.lower()
    found = _find_constraint(txn.metadata.configuration, name)
    if found is not None:
        raise CONSTRAINT_ALREADY_EXISTS(
            table=table, constraintName=name, oldConstraint=txn.metadata.configuration[found]
        )
    check_constraint(name, expression, txn.metadata.schema, table)
    stored = normalise_expression(expression)
    new = replace(txn.metadata, configuration={**txn.metadata.configuration, key: stored})
    protocol = upgrade_protocol(txn.protocol, new)
    txn.read_whole_table()
    verify(expression)
    if protocol != txn.protocol:
        txn.set_protocol(protocol)
    txn.set_metadata(new)
    return txn.commit(ADD_CONSTRAINT, {"name": name, "expr": stored})


def normalise_expression(expression: str) -> str:
    """The expression as delta-spark keeps it: its tokens with a space between them, comments left out.

    >>> normalise_expression("length(name)<=5 /* short */ or s.a > -1.5")
    'length ( name ) <= 5 or s . a > - 1.5'

    Source: delta-spark, `DeltaSqlBase.g4` (`checkExprToken`) and `DeltaSqlAstBuilder.visitAddTableConstraint`.
    """
    return " ".join(token[0] for token in _TOKEN.finditer(expression) if token["hidden"] is None)


def drop_constraint(log: TableLog, name: str, *, if_exists: bool = False) -> int:
    """Drop a CHECK constraint.

    Parameters
    ----------
    log
        The table.
    name
        Of the constraint; case does not count.
    if_exists
        Whether it may be missing.

    Returns
    -------
    int
        The version committed, also where there was nothing to drop: the history tells, as delta-spark's does.

    Raises
    ------
    InvalidOptionError
        There is none of the name.
    """
    txn = log.start_transaction()
    configuration = dict(txn.metadata.configuration)
    key = _find_constraint(configuration, name)
    if key is None and if_exists:
        return txn.commit(DROP_CONSTRAINT, {"name": name, "existed": "false"})
    if key is None:
        there = sorted(k[len(CONSTRAINT_PREFIX) :] for k in configuration if k.startswith(CONSTRAINT_PREFIX))
        raise CONSTRAINT_DOES_NOT_EXIST(
            table=log.storage.url, constraintName=name, there=", ".join(there) or "none"
        )
    expression = configuration.pop(key)
    txn.set_metadata(replace(txn.metadata, configuration=configuration))
    return txn.commit(DROP_CONSTRAINT, {"name": name, "expr": expression, "existed": "true"})


def _find_constraint(configuration: Mapping[str, str], name: str) -> str | None:
    wanted = CONSTRAINT_PREFIX + name.lower()
    return next((key for key in configuration if key.lower() == wanted), None)
