package pydelta;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.connector.catalog.CatalogV2Util;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.IdentityColumnSpec;
import org.apache.spark.sql.connector.catalog.constraints.Check;
import org.apache.spark.sql.connector.catalog.constraints.Constraint;
import org.apache.spark.sql.connector.expressions.ClusterByTransform;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.Transform;

/** What CREATE TABLE and its like say of a table, in types that Python reads. */
public final class Definition {
    private final String mode;
    final Identifier ident;
    private final String path;
    final String schema;
    private final List partitions = new ArrayList();
    private List clustering = null;
    private final List generated = new ArrayList();
    private final List identities = new ArrayList();
    private final List checks = new ArrayList();
    private final List others = new ArrayList();
    final Map properties;
    private String catalog = null;
    // Spark says it to no catalog, as delta-spark found as well.
    private final boolean saveAsTable = isCalledBy("DataFrameWriter", "saveAsTable");

    Definition(String mode, Identifier ident, String path, Column[] columns, Transform[] transforms, Map properties,
            Constraint[] constraints) {
        this.mode = mode;
        this.ident = ident;
        this.path = path;
        this.schema = CatalogV2Util.v2ColumnsToStructType(columns).json();
        this.properties = Secrets.values(properties);
        for (int i = 0; i < columns.length; i++) {
            if (columns[i].generationExpression() != null) {
                generated.add(new String[] {columns[i].name(), columns[i].generationExpression()});
            }
            IdentityColumnSpec spec = columns[i].identityColumnSpec();
            if (spec != null) {
                identities.add(new String[] {columns[i].name(), Long.toString(spec.getStart()),
                    Long.toString(spec.getStep()), Boolean.toString(spec.isAllowExplicitInsert())});
            }
        }
        for (int i = 0; i < transforms.length; i++) {
            if (transforms[i] instanceof ClusterByTransform) {
                clustering = new ArrayList();
                NamedReference[] columnNames = transforms[i].references();
                for (int k = 0; k < columnNames.length; k++) clustering.add(columnNames[k].describe());
            } else if ("identity".equals(transforms[i].name())) {
                partitions.add(transforms[i].references()[0].describe());
            } else {
                partitions.add("\0" + transforms[i].describe());
            }
        }
        for (int i = 0; i < constraints.length; i++) {
            if (constraints[i] instanceof Check) {
                checks.add(new String[] {constraints[i].name(), ((Check) constraints[i]).predicateSql()});
            } else {
                others.add(constraints[i].toDDL());
            }
        }
    }

    private static boolean isCalledBy(String of, String method) {
        StackTraceElement[] frames = Thread.currentThread().getStackTrace();
        for (int i = 0; i < frames.length; i++) {
            String name = frames[i].getClassName();
            if (frames[i].getMethodName().equals(method) && name.substring(name.lastIndexOf('.') + 1).equals(of)) return true;
        }
        return false;
    }

    /** Whether `df.write.saveAsTable` makes it: in mode overwrite it replaces the rows of a table, and not the table. */
    public boolean isSaveAsTable() { return saveAsTable; }

    /** The same, of a catalog beside the session's. */
    Definition in(String catalog) {
        this.catalog = catalog;
        return this;
    }

    public String mode() { return mode; }
    /** The catalog beside the session's that the table is to be in; null: it is in the session's. */
    public String catalog() { return catalog; }
    /** The path that the table is named by; null for a name. */
    public String path() { return path; }
    public String schema() { return schema; }
    public Map properties() { return properties; }
    /** Of a partition column its quoted name, of anything else its description with a leading NUL. */
    public List partitions() { return partitions; }
    /** Quoted names; null: no CLUSTER BY. */
    public List clustering() { return clustering; }
    /** Two texts each: column, expression. Before Spark 4.3 a schema does not hold them. */
    public List generated() { return generated; }
    /** Four texts each: column, start, step, whether values may be given. */
    public List identities() { return identities; }
    /** Two texts each: name, predicate. */
    public List checks() { return checks; }
    /** Constraints that are no CHECK, as they were written. */
    public List others() { return others; }
    public String[] namespace() { return ident.namespace(); }
    public String name() { return ident.name(); }
}
