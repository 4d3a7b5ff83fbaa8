package pydelta;

import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Supplier;
import org.apache.spark.SparkUnsupportedOperationException;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.SupportsRowLevelOperations;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TruncatableTable;
import org.apache.spark.sql.connector.expressions.ClusterByTransform;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.RowLevelOperationBuilder;
import org.apache.spark.sql.connector.write.RowLevelOperationInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.collection.immutable.VectorBuilder;

/**
 * A table of ours as a catalog hands it to Spark. It only describes: the rule Relations puts a scan in the place of each
 * read, and a command in the place of each write, before Spark plans either; the rule Streams does so for streams.
 */
public class DeltaTable implements SupportsRead, SupportsWrite, SupportsRowLevelOperations, TruncatableTable {
    private final String name;
    private final Object opened;
    private final String id;
    private final StructType schema;
    private final Transform[] partitioning;
    private final Map properties;
    // The columns that a reader asks for, and whether Spark has looked for the table by a path: null and false but there.
    private StructType asked = null;
    private boolean bySource = false;
    private CatalogTable entry = null;

    /**
     * @param opened the table in Python, which lives as long as this does
     * @param id the name of `opened` there
     */
    public DeltaTable(String name, Object opened, String id, String schema, Transform[] partitioning, Map properties) {
        this.name = name;
        this.opened = opened;
        this.id = id;
        this.schema = (StructType) StructType.fromJson(schema);
        this.partitioning = partitioning;
        this.properties = properties;
    }

    /** The table that Python has opened, as it describes itself in JSON. */
    static DeltaTable of(Supplier opened) {
        Map said = Python.map((String) opened.get());
        return new DeltaTable((String) said.get("name"), opened, (String) said.get("id"), (String) said.get("schema"),
            layout((List) said.get("partitions"), (List) said.get("clusteredBy")), (Map) said.get("properties"));
    }

    /** Partition columns by their names; clustering columns as SQL has them, `s`.`a` for a field. */
    private static Transform[] layout(List partitions, List clustering) {
        int count = partitions.size();
        Transform[] found = new Transform[count + (clustering.isEmpty() ? 0 : 1)];
        for (int i = 0; i < count; i++) {
            found[i] = Expressions.identity("`" + ((String) partitions.get(i)).replace("`", "``") + "`");
        }
        if (!clustering.isEmpty()) {
            VectorBuilder columns = new VectorBuilder();
            for (int i = 0; i < clustering.size(); i++) columns.addOne(Expressions.column((String) clustering.get(i)));
            found[count] = new ClusterByTransform((Seq) columns.result());
        }
        return found;
    }

    /** As a source hands it out, which was given a schema: the table's own, or what its user wants to read. */
    DeltaTable fromSource(StructType given) {
        bySource = true;
        asked = given.equals(schema) ? null : given;
        return this;
    }

    /** The same, with its entry in the metastore. What was counted of its rows once is no estimate of a version. */
    DeltaTable under(CatalogTable known) {
        Map changes = new HashMap();
        changes.put("stats", Option.empty());
        entry = ServedEntries.changed(known, changes);
        return this;
    }

    /** Of the metastore, where it has one: by it Spark finds plans that read the table. */
    Option entry() { return Option.apply(entry); }

    /** The columns to read; null: all. */
    StructType asked() { return asked; }

    public String id() { return id; }
    public String name() { return name; }
    public StructType schema() { return schema; }
    public Transform[] partitioning() { return partitioning; }
    public Map properties() { return properties; }

    public Set capabilities() {
        Set found = new HashSet();
        found.add(TableCapability.BATCH_READ);
        found.add(TableCapability.V1_BATCH_WRITE);
        found.add(TableCapability.OVERWRITE_BY_FILTER);
        found.add(TableCapability.OVERWRITE_DYNAMIC);
        found.add(TableCapability.TRUNCATE);
        // Which columns rows may have is decided where they are written.
        found.add(TableCapability.ACCEPT_ANY_SCHEMA);
        found.add(TableCapability.MICRO_BATCH_READ);
        // Without it Spark tells the source all that a query into a path says, see Provider.
        if (!bySource) found.add(TableCapability.STREAMING_WRITE);
        return found;
    }

    public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
        return new Description(schema);
    }

    public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
        throw new IllegalStateException("a write of " + name + " was not taken over: the rule pydelta.Relations did not run");
    }

    /**
     * Spark's pipelines merge changes only into tables that have it; UnresolvedCommands takes all commands on rows over. In
     * a session that was given back nobody does, and Spark's own words for tables without it are said.
     */
    public RowLevelOperationBuilder newRowLevelOperationBuilder(RowLevelOperationInfo info) {
        throw new SparkUnsupportedOperationException(
            "UNSUPPORTED_FEATURE.TABLE_OPERATION", Map.of("tableName", name, "operation", info.command().toString()));
    }

    public boolean truncateTable() {
        Python.ask("truncate", new Object[] {this});
        return true;
    }

    // Two interfaces of Spark have a default for these, so that the JVM wants one to be chosen.
    public CustomTaskMetric[] reportDriverMetrics() { return new CustomTaskMetric[0]; }
    public CustomMetric[] supportedCustomMetrics() { return new CustomMetric[0]; }

    public String toString() { return "DeltaTable(" + name + ")"; }
}
