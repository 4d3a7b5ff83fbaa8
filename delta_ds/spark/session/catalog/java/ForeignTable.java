package pydelta;

import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.catalog.V1Table;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.execution.datasources.DataSource;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.Option;

/** A new table of another source: made first, then written, and dropped if that fails, as where nothing is staged. */
final class ForeignTable implements StagedTable, SupportsWrite {
    private final TableCatalog catalog;
    private final Identifier ident;
    private final Table table;

    ForeignTable(TableCatalog catalog, Identifier ident, Table made) {
        this.catalog = catalog;
        this.ident = ident;
        try {
            this.table = made == null ? catalog.loadTable(ident) : made;
        } catch (org.apache.spark.sql.catalyst.analysis.NoSuchTableException gone) {
            throw new IllegalStateException(gone);
        }
    }

    /**
     * The table of a source of Spark's newer kind, which Spark does not look up where the session catalog is not its own;
     * any other as it is.
     */
    static Table ofSource(V1Table entry) {
        CatalogTable known = entry.v1Table();
        if (known.provider().isEmpty()) return entry;
        Option found = DataSource.lookupDataSourceV2((String) known.provider().get(), SQLConf.get());
        if (found.isEmpty()) return entry;
        TableProvider source = (TableProvider) found.get();
        Map options = Options.of(known.storage().properties());
        if (known.storage().locationUri().isDefined()) {
            options.put("path", known.location().toString());
        }
        StructType schema = source.supportsExternalMetadata() ? known.schema()
            : source.inferSchema(new CaseInsensitiveStringMap(options));
        return source.getTable(schema, entry.partitioning(), options);
    }

    public String name() { return table.name(); }
    public StructType schema() { return table.schema(); }
    public Column[] columns() { return table.columns(); }
    public Transform[] partitioning() { return table.partitioning(); }
    public Map properties() { return table.properties(); }
    public Set capabilities() { return table.capabilities(); }

    public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
        return ((SupportsWrite) table).newWriteBuilder(info);
    }

    public void commitStagedChanges() {}
    public void abortStagedChanges() { catalog.dropTable(ident); }
    public CustomTaskMetric[] reportDriverMetrics() { return new CustomTaskMetric[0]; }
    public CustomMetric[] supportedCustomMetrics() { return new CustomMetric[0]; }
}
