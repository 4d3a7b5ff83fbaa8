package pydelta;

import java.util.HashMap;
import java.util.Map;
import java.util.function.Supplier;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.execution.streaming.Sink;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.sources.CreatableRelationProvider;
import org.apache.spark.sql.sources.DataSourceRegister;
import org.apache.spark.sql.sources.StreamSinkProvider;
import org.apache.spark.sql.streaming.OutputMode;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.collection.immutable.Seq;

/** The source of the name `delta`, for format("delta") and USING delta in whatever language. */
public class Provider implements TableProvider, DataSourceRegister, CreatableRelationProvider, StreamSinkProvider {
    private boolean isWritten = false;

    public String shortName() { return "delta"; }

    /**
     * Readers may give a schema. To a writer the answer is no: else it hands the partition columns over as well, which it
     * parses as SQL, so that `a b` is none. Where it is asked from is all that tells the two apart.
     */
    public boolean supportsExternalMetadata() {
        isWritten = new Throwable().getStackTrace()[1].getClassName().endsWith(".DataFrameWriter");
        return !isWritten;
    }

    public StructType inferSchema(CaseInsensitiveStringMap options) {
        // A writer looks at the capabilities of a table alone, which may not be there yet.
        if (isWritten) return new StructType();
        DeltaTable found = open(options.asCaseSensitiveMap());
        if (found == null) {
            Python.ask("no_table", new Object[] {Python.json(Secrets.values(options.asCaseSensitiveMap()))});
        }
        return found.schema();
    }

    public Table getTable(StructType schema, Transform[] partitioning, Map properties) {
        DeltaTable found = open(properties);
        // CREATE TABLE checks a schema against a table that is not there yet, and save() asks for one first.
        if (found == null) found = new DeltaTable("delta", null, null, schema.json(), new Transform[0], new HashMap());
        return found.fromSource(schema);
    }

    private static DeltaTable open(Map options) {
        Object found = Python.ask("open_source", new Object[] {Python.json(Secrets.values(options))});
        return found == null ? null : DeltaTable.of((Supplier) found);
    }

    /** df.write.format("delta").save() in all modes: a table without BATCH_WRITE is written by this interface. */
    public BaseRelation createRelation(SQLContext context, SaveMode mode, scala.collection.immutable.Map parameters,
            Dataset rows) {
        Python.ask("save", new Object[] {mode.name(), Secrets.values(Options.of(parameters)), rows});
        return new Saved(context, rows.schema());
    }

    /** df.writeStream.format("delta").start(): asked where a table has no STREAMING_WRITE, with all that was said. */
    public Sink createSink(SQLContext context, scala.collection.immutable.Map parameters, Seq partitionColumns,
            OutputMode mode) {
        String[] partitionBy = new String[partitionColumns.length()];
        for (int i = 0; i < partitionBy.length; i++) partitionBy[i] = (String) partitionColumns.apply(i);
        return new StreamSink(new StreamTable(null, mode,
            StreamTable.complete(context.sparkSession(), null, Options.of(parameters), partitionBy, mode)));
    }

    /** What createRelation has to return, and nobody looks at. */
    public static final class Saved extends BaseRelation {
        private final SQLContext context;
        private final StructType schema;

        Saved(SQLContext context, StructType schema) {
            this.context = context;
            this.schema = schema;
        }

        public SQLContext sqlContext() { return context; }
        public StructType schema() { return schema; }
    }
}
