"""SQL expressions of a table's metadata, resolved by Spark in a separate session.

What constraints, defaults and generated columns mean must not depend on the user's session: there, temporary
functions and variables could take over names, and settings turn errors into nulls. A private session per time zone
parses and analyses them, always in ANSI mode; the resolved expressions keep that in any session. It exists in the JVM
only, runs nothing, and is one for all sessions of the user: making a session in Python would change the user's.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from delta_ds.conditions.record import PREDICATE_NOT_BOOLEAN
from delta_ds.exceptions import DeltaError, PredicateError, UnsupportedFeatureError
from delta_ds.kernel.files.rows.plan import ColumnsOf, is_foreign
from delta_ds.records import dataclass
from delta_ds.spark.engines.classic.jvm import Jvm
from delta_ds.spark.engines.classic.projection import Projected, project

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from delta_ds.kernel.files.rows.expressions import RowExpression
    from delta_ds.kernel.format.schema.types import StructType
    from delta_ds.spark.base.kinds.java_object import JavaObject, JavaValue

# The defaults of Spark 4, whatever the machine's or the application's configuration says.
_SETTINGS = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.ansi.enforceReservedKeywords": "false",
    "spark.sql.caseSensitive": "false",
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
    "spark.sql.mapKeyDedupPolicy": "EXCEPTION",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.parser.quotedRegexColumnNames": "false",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
}
_BUILTIN: tuple[list[str], ...] = ([], ["builtin"], ["system", "builtin"])
_lock = threading.Lock()
# Sessions of the JVM, by gateway and time zone.
_private: WeakKeyDictionary[JavaObject, dict[str, Any]] = WeakKeyDictionary()


@dataclass(frozen=True)
class Analyst:
    """Resolves the SQL clauses of one table in a private session; made by `Analyst.of`.

    Attributes
    ----------
    jvm
        The internals of the user's session.
    private
        The JVM's session that expressions are resolved in.
    timezone
        The session time zone of the rows.
    table
        The table's schema.
    """

    jvm: Jvm
    private: JavaObject
    timezone: str
    table: StructType

    @classmethod
    def of(cls, spark: SparkSession, timezone: str, table: StructType) -> Analyst:
        """The analyst of a session.

        Raises
        ------
        NotNative
            See `Jvm.of`.
        """
        jvm = Jvm.of(spark)
        return cls(jvm, _session(jvm, timezone), timezone, table)

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Make the private session the active one of this thread, whose settings Spark reads."""
        with _active(self.jvm, self.private):
            yield

    def frame(self, plan: JavaObject) -> DataFrame:
        """A DataFrame of the private session over an analysed plan."""
        from pyspark.sql import DataFrame

        return DataFrame(self.jvm.Dataset.ofRows(self.private, plan), self.jvm.spark)

    def project(self, frame: DataFrame, columns: Sequence[Projected]) -> DataFrame:
        """Columns of a frame of the private session; see `projection.project`."""
        return project(self.jvm, frame, columns, self.private)

    def no_columns(self) -> DataFrame:
        """A DataFrame of the private session without columns, for constants."""
        from pyspark.sql import DataFrame

        return DataFrame(self.private.emptyDataFrame(), self.jvm.spark)

    def resolve(
        self, frame: DataFrame, clause: RowExpression, text: str, *, predicate: bool = False
    ) -> JavaValue:
        """The Catalyst expression of a clause over the columns of a frame of the private session.

        Parameters
        ----------
        frame
            Its columns have the table's names.
        clause
            For messages.
        text
            The SQL: the clause's, or the part of it that SQL has to say.
        predicate
            Whether the result has to be boolean.

        Raises
        ------
        PredicateError
            It names an unknown column, its types do not fit, or it is no predicate.
        UnsupportedFeatureError
            It cannot be evaluated row by row: an aggregate, a window, a subquery, a random number, a user's
            function, ...
        """
        from pyspark.errors import PySparkException

        try:
            parsed = _parse(self.private, text)
            self._refuse_functions(parsed, clause, predicate)
            resolved = self.jvm.logical_plan(frame.select(self.jvm.column(parsed).alias("value")))
        except (DeltaError, PySparkException) as error:
            raise self._failure(clause, error, predicate) from error
        if resolved.nodeName() != "Project" or not resolved.child().fastEquals(self.jvm.logical_plan(frame)):
            raise self._refusal(clause, predicate, "an aggregate, a window function or a generator")
        expression = resolved.projectList().head().child()
        if self._has_subquery(expression):
            raise self._refusal(clause, predicate, "a subquery")
        if not expression.deterministic():
            raise self._refusal(clause, predicate, "what is not the same each time")
        kind = expression.dataType().typeName()
        if predicate and kind not in ("boolean", "void"):
            mismatch = PREDICATE_NOT_BOOLEAN(predicate=text, type=kind)
            raise self._failure(clause, mismatch, predicate)
        return expression

    def resolve_all(self, frame: DataFrame, clauses: Sequence[RowExpression]) -> list[JavaObject]:
        """The Catalyst expressions of some clauses; otherwise as `resolve`, in one call where nothing is wrong."""
        if len(clauses) > 1:
            plan, texts = self.jvm.logical_plan(frame), [clause.text for clause in clauses]
            found = self.jvm.projections.resolve(self.private, plan, texts)
            if found is not None:
                return list(found)
        return [self.resolve(frame, clause, clause.text) for clause in clauses]

    def _refuse_functions(self, node: JavaObject, clause: RowExpression, predicate: bool) -> None:
        builtin = self.jvm.module("org.apache.spark.sql.catalyst.analysis.FunctionRegistry$").expressions()
        for found in walk(node):
            if _kind(found) == "UnresolvedFunction":
                *qualifier, name = (part.lower() for part in _strings(found.nameParts()))
                if qualifier not in _BUILTIN or not builtin.contains(name):
                    raise self._refusal(clause, predicate, f"{'.'.join([*qualifier, name])}()")

    def _has_subquery(self, expression: JavaObject) -> bool:
        module = self.jvm.module("org.apache.spark.sql.catalyst.expressions.SubqueryExpression$")
        return bool(module.hasSubquery(expression))

    # --- errors

    def _check_in_kernel(self, clause: RowExpression, predicate: bool) -> None:
        """Raise the kernel's error for a clause where it has one, so that both paths report the same."""
        if not is_foreign(clause):
            clause.bound(self.table, self.timezone, predicate=predicate)

    def _failure(self, clause: RowExpression, error: Exception, predicate: bool) -> DeltaError:
        try:
            self._check_in_kernel(clause, predicate)
        except DeltaError as known:
            return known
        if isinstance(error, UnsupportedFeatureError):
            return error
        condition = getattr(error, "getCondition", lambda: None)() or getattr(error, "condition", None)
        text = error.text if isinstance(error, DeltaError) else _first_paragraph(error)
        return clause.failure(PredicateError(text, condition=condition))

    def _refusal(self, clause: RowExpression, predicate: bool, part: str) -> DeltaError:
        try:
            self._check_in_kernel(clause, predicate)
        except DeltaError as known:
            return known
        return clause.refusal(part)


def columns_of(spark: SparkSession) -> ColumnsOf:
    """The `columns_of` of `plan_write` for a session in which Spark evaluates the expressions.

    Raises
    ------
    NotNative
        See `Jvm.of`.
    """
    from pyspark.errors import PySparkException

    jvm = Jvm.of(spark)
    private = _session(jvm, "UTC")

    def find(text: str) -> Sequence[tuple[str, ...]]:
        with _active(jvm, private):
            try:
                parsed = _parse(private, text)
            except PySparkException as error:
                raise PredicateError(_first_paragraph(error)) from error
            return list(dict.fromkeys(_columns(parsed, frozenset())))

    return find


# --- sessions


def _session(jvm: Jvm, timezone: str) -> JavaValue:
    with _lock:
        sessions = _private.setdefault(jvm.gateway, {})
        found = sessions.get(timezone)
        if found is None or found.sparkContext().isStopped():
            found = jvm.spark._jsparkSession.newSession()
            for key, value in {**_SETTINGS, "spark.sql.session.timeZone": timezone}.items():
                found.conf().set(key, value)
            sessions[timezone] = found
        return found


@contextmanager
def _active(jvm: Jvm, session: JavaObject) -> Iterator[None]:
    """Spark looks up settings in the active session of the thread; the one before is put back."""
    sessions = jvm.module("org.apache.spark.sql.classic.SparkSession$")
    before = sessions.getActiveSession()
    try:
        sessions.setActiveSession(session)
        yield
    finally:
        if before.isDefined():
            sessions.setActiveSession(before.get())
        else:
            sessions.clearActiveSession()


def _first_paragraph(error: Exception) -> str:
    """Spark's message without the query plan below it."""
    text = str(error).split("\n\nJVM stacktrace")[0]
    for cut in (";\n", "\n\n== SQL", "\n== SQL", " SQLSTATE:"):
        text = text.split(cut)[0]
    return text.strip()


# --- parsed trees


def _parse(session: JavaObject, text: str) -> JavaValue:
    return session.sessionState().sqlParser().parseExpression(text)


def walk(node: JavaObject) -> Iterator[JavaObject]:
    """A Catalyst expression and all below it."""
    yield node
    for child in _items(node.children()):
        yield from walk(child)


def _columns(node: JavaObject, variables: frozenset[str]) -> Iterator[tuple[str, ...]]:
    """The columns that a parsed expression names; inside a lambda the parser takes them for its variables."""
    kind = _kind(node)
    if kind in ("UnresolvedAttribute", "UnresolvedNamedLambdaVariable"):
        path = tuple(_strings(node.nameParts()))
        if kind == "UnresolvedAttribute" or path[0].lower() not in variables:
            yield path
        return
    if kind == "LambdaFunction":
        arguments = {_strings(a.nameParts())[0].lower() for a in _items(node.arguments())}
        yield from _columns(node.function(), variables | arguments)
        return
    for child in _items(node.children()):
        yield from _columns(child, variables)


def _kind(node: JavaObject) -> str:
    return str(node.getClass().getSimpleName())


def _items(sequence: JavaObject) -> list[JavaObject]:
    return [sequence.apply(i) for i in range(sequence.size())]


def _strings(sequence: JavaObject) -> list[str]:
    return [str(text) for text in _items(sequence)]
