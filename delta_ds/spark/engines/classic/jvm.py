"""The Spark internals that the native path uses, bound once per session.

None of this is public API of Spark: signatures were the same on 4.1, 4.2 and 4.3. Whatever is missing on another
version is found when they are bound, and the portable path serves instead.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.resources import files
from typing import TYPE_CHECKING, Any, ClassVar
from weakref import WeakKeyDictionary

from delta_ds.exceptions import DeltaError
from delta_ds.redaction import redacted
from delta_ds.spark.base.kinds.frames import frame_of
from delta_ds.spark.base.kinds.java_object import JavaNames
from delta_ds.spark.base.kinds.kind import jvm_problem
from delta_ds.spark.engines.classic.class_cache import compiled
from delta_ds.spark.errors.translation import report_text

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructType

    from delta_ds.spark.base.kinds.java_object import JavaObject, JavaValue

_CATALYST = "org.apache.spark.sql.catalyst"
_EXECUTION = "org.apache.spark.sql.execution"

# Once a JVM: py4j finds methods by the name of a class, and takes two classes of one name for the same.
_compiled: WeakKeyDictionary[JavaObject, dict[str, JavaObject]] = WeakKeyDictionary()
_compiling = threading.Lock()


class NotNative(Exception):  # noqa: N818 - not an error: the portable path is taken
    """The native path cannot serve here; the portable one does.

    Attributes
    ----------
    reason
        Why, in words for `explain` and `Registration`.
    """

    def __init__(self, reason: str) -> None:
        # What Hadoop says may quote what it was given.
        self.reason = redacted(reason)
        super().__init__(self.reason)


class GeneratesNumbers(NotNative):
    """The values of identity columns are to be generated."""


class _Internals:
    """What is the same for all sessions of a JVM."""

    _of_gateway: ClassVar[WeakKeyDictionary[JavaObject, _Internals]] = WeakKeyDictionary()
    _lock = threading.Lock()

    def __init__(self, context: Any) -> None:
        from pyspark.java_gateway import ensure_callback_server_started

        self.gateway: JavaObject = context._gateway
        self.jvm: JavaObject = JavaNames(context._jvm)
        self._modules: dict[str, JavaValue] = {}
        ensure_callback_server_started(self.gateway)  # type: ignore[no-untyped-call]
        # Without this every error inside a callback reaches the user as an anonymous Py4JException.
        context._gateway.python_parameters.propagate_java_exceptions = True
        sql = self.jvm.org.apache.spark.sql
        self.ParquetFileFormat = _class(sql.execution.datasources.parquet.ParquetFileFormat)
        self.LogicalRelation = self.module(f"{_EXECUTION}.datasources.LogicalRelation$")
        self.Dataset = self.module("org.apache.spark.sql.classic.Dataset$")
        self.ExpressionUtils = self.module("org.apache.spark.sql.classic.ExpressionUtils$")
        self.DataTypeUtils = self.module(f"{_CATALYST}.types.DataTypeUtils$")
        self.StaticInvoke = _class(sql.catalyst.expressions.objects.StaticInvoke)
        self.DataType = _class(sql.types.DataType)
        self.Path = _class(self.jvm.org.apache.hadoop.fs.Path)
        self.none = self.module("scala.None$")
        self.TableIdentifier = _class(sql.catalyst.TableIdentifier)
        self.CatalogTable = _class(sql.catalyst.catalog.CatalogTable)
        self.CatalogTableModule = self.module(f"{_CATALYST}.catalog.CatalogTable$")
        self.CatalogTableType = self.module(f"{_CATALYST}.catalog.CatalogTableType$")
        self.CatalogStorageFormat = self.module(f"{_CATALYST}.catalog.CatalogStorageFormat$")
        constructors = self._class_named(f"{_CATALYST}.catalog.CatalogTable").getConstructors()
        self.catalog_table_parameters = int(constructors[0].getParameterCount())
        self.listing = compile_class(self.jvm, self.gateway, "TableFiles")
        self.relations = compile_class(self.jvm, self.gateway, "TableRelation")
        self.projections = compile_class(self.jvm, self.gateway, "Projection")
        self.writes = compile_class(self.jvm, self.gateway, "TableWrite")
        self.byte_array_offset = int(self.jvm.org.apache.spark.unsafe.Platform.BYTE_ARRAY_OFFSET)
        self.bit_set_methods = self._class_named("org.apache.spark.unsafe.bitset.BitSetMethods")
        self.empty_row = _class(sql.catalyst.InternalRow).empty()

    @classmethod
    def of(cls, context: Any) -> _Internals:
        with cls._lock:
            internals = cls._of_gateway.get(context._gateway)
            if internals is None:
                internals = cls._of_gateway[context._gateway] = cls(context)
        return internals

    def _class_named(self, name: str) -> JavaValue:
        return self.jvm.org.apache.spark.util.Utils.classForName(name, True, False)

    def module(self, name: str) -> JavaValue:
        """The single instance of a Scala object, by the name of its class (ending in `$`)."""
        found = self._modules.get(name)
        if found is None:
            found = self._modules[name] = self._class_named(name).getField("MODULE$").get(None)
        return found


def _class(package_member: JavaObject) -> JavaValue:
    if isinstance(package_member, JavaNames):
        raise AttributeError(f"there are only {package_member!r} where a class was looked for")
    return package_member


class Jvm(_Internals):
    """Spark's internals as one session sees them; made by `Jvm.of`.

    Attributes
    ----------
    spark
        The session as the user has it. A handle of our own would take over `RDD.toDF`, as pyspark's constructor does.
    """

    @classmethod
    def of(cls, spark: SparkSession) -> Jvm:
        """The bindings of a session.

        Raises
        ------
        NotNative
            A session of Spark Connect, or a Spark without what is needed.
        """
        return cls(spark)

    def __init__(self, spark: SparkSession) -> None:
        if (problem := jvm_problem(spark)) is not None:
            raise NotNative(problem)
        from py4j.protocol import Py4JError

        try:
            self.__dict__.update(vars(_Internals.of(spark.sparkContext)))
        except (Py4JError, AttributeError, TypeError) as error:
            text = str(error).strip().splitlines()
            raise NotNative(
                f"Spark {spark.version} lacks internals that the native path needs: {text[0] if text else error!r}"
            ) from error
        self.spark = spark

    @property
    def default_size(self) -> int:
        """The bytes that Spark takes a relation for of which it knows no size: more than it ever broadcasts."""
        return int(self.spark._jsparkSession.sessionState().conf().defaultSizeInBytes())

    # --- values

    def seq(self, items: Iterable[object]) -> JavaValue:
        """A `scala.collection.immutable.Seq` of Java objects."""
        builder = self.jvm.scala.collection.immutable.VectorBuilder()
        for item in items:
            builder.addOne(item)
        return builder.result()

    def map(self, items: Mapping[str, str]) -> JavaValue:
        """A `scala.collection.immutable.Map`."""
        return self.jvm.org.apache.spark.api.python.PythonUtils.toScalaMap(dict(items))

    def some(self, value: object) -> JavaValue:
        """`scala.Some` of a Java object."""
        return self.jvm.scala.Some(value)

    def struct(self, schema: StructType | str) -> JavaValue:
        """The JVM's data type of a schema, or of its JSON text."""
        return self.DataType.fromJson(schema if isinstance(schema, str) else schema.json())

    def internal_rows(self, table: pa.Table, schema: StructType) -> JavaValue:
        """`InternalRow[]` of an Arrow table, without a job: Spark converts every type itself."""
        frame = frame_of(self.spark, table, schema)
        return frame._jdf.queryExecution().executedPlan().executeCollect()

    def row_array(self, rows: Sequence[object]) -> JavaValue:
        """`InternalRow[]` of single rows."""
        array = self.gateway.new_array(self.jvm.org.apache.spark.sql.catalyst.InternalRow, len(rows))
        for position, row in enumerate(rows):
            array[position] = row
        return array

    # --- between Python and Catalyst

    def column(self, expression: JavaObject) -> Column:
        """A Catalyst expression as a `Column`."""
        from pyspark.sql import Column

        return Column(self.ExpressionUtils.column(expression))

    def expression(self, column: Column) -> JavaValue:
        """The Catalyst expression of a `Column`."""
        return self.ExpressionUtils.expression(column._jc)

    def cast_without_ansi(self, value: Column, kind: DataType) -> Column:
        """A value cast by the rules of sessions that are not ANSI."""
        expression = self.spark._jsparkSession.expression(value._jc)
        zone = self.some(self.spark._jsparkSession.sessionState().conf().sessionLocalTimeZone())
        mode = self.module(f"{_CATALYST}.expressions.EvalMode$").LEGACY()
        wanted = self.DataType.fromJson(kind.json())
        return self.column(
            self.jvm.org.apache.spark.sql.catalyst.expressions.Cast(expression, wanted, zone, mode)
        )

    def data_frame(self, plan: JavaObject) -> DataFrame:
        """A `DataFrame` of a logical plan."""
        from pyspark.sql import DataFrame

        return DataFrame(self.Dataset.ofRows(self.spark._jsparkSession, plan), self.spark)

    def logical_plan(self, frame: DataFrame) -> JavaValue:
        """The analyzed plan of a `DataFrame`."""
        return frame._jdf.queryExecution().analyzed()

    def is_set(self, bitmap: Column, index: Column) -> Column:
        """Whether bit `index` (int) of `bitmap` (binary of little-endian 64-bit words) is set; null of null."""
        from pyspark.sql import functions as F

        base = F.lit(self.byte_array_offset).cast("bigint")
        arguments = self.seq([self.expression(c) for c in (bitmap, base, index)])
        # Class, result type, method, arguments, input types, propagateNull, returnNullable, isDeterministic, function.
        return self.column(
            self.StaticInvoke(
                self.bit_set_methods,
                self.struct('"boolean"'),
                "isSet",
                arguments,
                self.seq([]),
                True,
                True,
                True,
                self.none,
            )
        )


@contextmanager
def errors_to_jvm(jvm: Jvm) -> Iterator[None]:
    """Errors of a callback in the form that the JVM passes on: its own unchanged, ours by name and text."""
    from py4j.protocol import Py4JJavaError

    try:
        yield
    except DeltaError as error:
        raise Py4JJavaError("", reported(jvm, error)) from error
    except Exception as error:
        raise java_error(error) from error


def reported(jvm: Jvm, error: DeltaError) -> JavaValue:
    """An error of this package as an exception of Spark: its text is that by which `as_delta_error` knows it again."""
    functions = compile_class(jvm.jvm, jvm.gateway, "PathFunction")
    return functions.failure(report_text(error), error.condition, error.sql_state, _parameters(jvm, error))


def _parameters(jvm: Jvm, error: DeltaError) -> JavaValue:
    return jvm.map({name: str(value) for name, value in error.parameters.items()})


def java_error(error: BaseException) -> BaseException:
    """An error in the form that py4j hands back to the JVM unchanged: pyspark wraps those that it knows."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors.exceptions.captured import CapturedException

    origin = getattr(error, "_origin", None)
    if isinstance(error, CapturedException) and origin is not None:
        wrapped: BaseException = Py4JJavaError("", origin)
        return wrapped
    return error


def java_exception(jvm: Jvm, error: Exception) -> JavaValue:
    """An error of a callback as the exception that the Java class of this package which called it throws.

    Returns
    -------
    py4j.java_gateway.JavaObject
        With condition and parameters for an error of this package, the original for one that came from the JVM.

    Raises
    ------
    Exception
        The error, if it is of Python alone: py4j makes an exception of it.
    """
    from py4j.protocol import Py4JJavaError

    if isinstance(error, DeltaError):
        functions = compile_class(jvm.jvm, jvm.gateway, "PathFunction")
        return functions.error(str(error), error.condition, _parameters(jvm, error))
    java = java_error(error)
    if isinstance(java, Py4JJavaError):
        return java.java_exception
    raise error


# --- Java classes of this package


def compile_class(jvm: JavaObject, gateway: JavaObject, name: str) -> JavaValue:
    """The one instance in the JVM of a Java class, compiled on first use by the compiler of Spark's generated code.

    That is Janino. The class exists in the driver only: an executor never sees it.

    Parameters
    ----------
    jvm, gateway
        See `Jvm`.
    name
        Of the class, which stands in a file of its name beside this module. It is public, in no package, and has a
        constructor without arguments. Janino knows generics only as far as it erases them.

    Returns
    -------
    py4j.java_gateway.JavaObject
        The instance.

    Raises
    ------
    NotNative
        This Spark has no such compiler, or other classes than the text speaks of.
    """
    with _compiling:
        instances = _compiled.setdefault(gateway, {})
        if name not in instances:
            instances[name] = _compile(jvm, gateway, name)
        return instances[name]


def _compile(jvm: JavaObject, gateway: JavaObject, name: str) -> JavaValue:
    from py4j.protocol import Py4JError

    source = files("delta_ds.spark.engines.classic").joinpath(f"{name}.java").read_text("utf-8")
    try:
        above = jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader()

        def compile_it() -> Mapping[str, bytes]:
            compiler = jvm.org.codehaus.janino.SimpleCompiler()
            compiler.setParentClassLoader(above)
            compiler.cook(source)
            code: Mapping[str, bytes] = compiler.getBytecodes()
            return code

        code = jvm.java.util.HashMap()
        for made, its_code in compiled(jvm, gateway, {name: source}, compile_it).items():
            code.put(made, its_code)
        loaders = jvm.org.codehaus.commons.compiler.util.reflect
        java_class = loaders.ByteArrayClassLoader(code, above).loadClass(name)
        none = gateway.new_array(jvm.java.lang.Object, 0)
        return java_class.getConstructor(gateway.new_array(jvm.java.lang.Class, 0)).newInstance(none)
    except (Py4JError, TypeError) as error:
        cause = getattr(error, "java_exception", None)
        text = cause.getMessage() if cause is not None else str(error)
        raise NotNative(f"this Spark cannot compile {name}: {text}") from error
