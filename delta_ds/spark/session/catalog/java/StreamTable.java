package pydelta;

import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.streaming.OutputMode;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** The table that the batches of one query are written to, by the data source in Python. */
public final class StreamTable implements SupportsWrite {
    private final DeltaTable named;
    private final OutputMode mode;
    private Map options;
    private SupportsWrite written = null;

    /**
     * @param named the table of a catalog; null for one that the options name by its path
     * @param options complete; null: those of the query are to be completed with its first batch
     */
    StreamTable(DeltaTable named, OutputMode mode, Map options) {
        this.named = named;
        this.mode = mode;
        this.options = options;
    }

    public String name() { return named == null ? Streams.SOURCE + ".`" + options.get("path") + "`" : named.name(); }
    public StructType schema() { return named == null ? new StructType() : named.schema(); }

    public Set capabilities() {
        Set found = new HashSet();
        found.add(TableCapability.STREAMING_WRITE);
        found.add(TableCapability.TRUNCATE);
        found.add(TableCapability.ACCEPT_ANY_SCHEMA);
        return found;
    }

    /** Asked for each batch of the one query. */
    public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
        if (options == null) {
            options = complete(SparkSession.active(), named.id(), info.options().asCaseSensitiveMap(), new String[0], mode);
        }
        if (written == null) {
            written = (SupportsWrite) Streams.source(SparkSession.active()).getTable(info.schema(), new Transform[0],
                options);
        }
        return written.newWriteBuilder(new Info(info, new CaseInsensitiveStringMap(options)));
    }

    /** The options of a query with all that its session and its other calls say. */
    static Map complete(SparkSession session, String id, Map given, String[] partitionBy, OutputMode mode) {
        return Python.map((String) Python.ask("stream_sink", session, new Object[] {
            id, Python.json(given), Python.json(partitionBy), mode.toString()}));
    }

    // Two interfaces of Spark have a default for these, so that the JVM wants one to be chosen.
    public CustomTaskMetric[] reportDriverMetrics() { return new CustomTaskMetric[0]; }
    public CustomMetric[] supportedCustomMetrics() { return new CustomMetric[0]; }

    public String toString() { return name(); }

    private static final class Info implements LogicalWriteInfo {
        private final LogicalWriteInfo info;
        private final CaseInsensitiveStringMap options;

        Info(LogicalWriteInfo info, CaseInsensitiveStringMap options) {
            this.info = info;
            this.options = options;
        }

        public CaseInsensitiveStringMap options() { return options; }
        public String queryId() { return info.queryId(); }
        public StructType schema() { return info.schema(); }
    }
}
