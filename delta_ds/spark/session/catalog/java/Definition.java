package pydelta;

import java.util.ArrayList;
import java.util.HashMap;
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

    /** The same, of a catalog beside the session's. */
    Definition in(String catalog) {
        this.catalog = catalog;
        return this;
    }

    /**
     * All of it as JSON, so that Python asks once:
     * `mode`; `catalog` beside the session's, null for that one; `path` that the table is named by, null for a name;
     * `namespace`, `name`; `schema`; `properties`;
     * `partitions`: of a partition column its quoted name, of anything else its description with a leading NUL;
     * `clustering`: quoted names, null for no CLUSTER BY;
     * `generated`: column and expression, which a schema does not hold before Spark 4.3;
     * `identities`: column, start, step, whether values may be given; `checks`: name and predicate;
     * `is_save_as_table`: whether `df.write.saveAsTable` makes it, which in mode overwrite replaces the rows of a table, and
     * not the table.
     */
    public String text() {
        Map all = new HashMap();
        all.put("mode", mode);
        all.put("catalog", catalog);
        all.put("path", path);
        all.put("namespace", ident.namespace());
        all.put("name", ident.name());
        all.put("schema", schema);
        all.put("properties", properties);
        all.put("partitions", partitions);
        all.put("clustering", clustering);
        all.put("generated", generated);
        all.put("identities", identities);
        all.put("checks", checks);
        all.put("is_save_as_table", Boolean.valueOf(saveAsTable));
        return Python.json(all);
    }
}
