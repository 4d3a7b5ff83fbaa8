package pydelta;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.connector.catalog.CatalogV2Util;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.catalog.constraints.Check;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;
import scala.collection.immutable.VectorBuilder;

/** The changes of ALTER TABLE as maps of texts, which Python reads without asking back. */
final class Changes {
    static List told(TableChange[] changes) {
        List found = new ArrayList();
        TableChange[] ordered = ordered(changes);
        for (int i = 0; i < ordered.length; i++) {
            if (!repeatsProvider(ordered[i])) found.add(told(ordered[i]));
        }
        return found;
    }

    /** Up to Spark 4.2 each run of a pipeline sets the provider that its table has. */
    private static boolean repeatsProvider(TableChange change) {
        if (!(change instanceof TableChange.SetProperty)) return false;
        TableChange.SetProperty set = (TableChange.SetProperty) change;
        return "provider".equals(set.property()) && Catalog.isOurs(set.value()) && isPipeline();
    }

    /**
     * All columns as JSON once a pipeline of Spark has made changes that rows stand in the way of; null for other changes.
     * It truncates a table before, and asks for what the table's new definition needs.
     */
    static String ofPipeline(StructType columns, TableChange[] changes) {
        boolean replaces = false;
        VectorBuilder made = new VectorBuilder();
        for (int i = 0; i < changes.length; i++) {
            if (!(changes[i] instanceof TableChange.ColumnChange)) continue;
            made.addOne(changes[i]);
            replaces |= changes[i] instanceof TableChange.DeleteColumn
                || changes[i] instanceof TableChange.UpdateColumnType
                || changes[i] instanceof TableChange.UpdateColumnNullability;
        }
        if (!replaces || !isPipeline()) return null;
        return CatalogV2Util.applySchemaChanges(columns, (Seq) made.result(), Option.empty(), "ALTER TABLE").json();
    }

    private static boolean isPipeline() { return Calls.areWithin("org.apache.spark.sql.pipelines."); }

    /** Changes of columns that are there: those of a column together, columns in the order that delta-spark's hash map
     * has, as it counts for their places and shows in the history. All others as they come. */
    private static TableChange[] ordered(TableChange[] changes) {
        scala.collection.mutable.HashMap columns = new scala.collection.mutable.HashMap();
        for (int i = 0; i < changes.length; i++) {
            if (!(changes[i] instanceof TableChange.ColumnChange) || changes[i] instanceof TableChange.AddColumn
                    || changes[i] instanceof TableChange.DeleteColumn) {
                return changes;
            }
            columns.put(column(changes[i]), null);
        }
        TableChange[] found = new TableChange[changes.length];
        int at = 0;
        for (Iterator names = columns.keysIterator(); names.hasNext();) {
            Object name = names.next();
            for (int i = 0; i < changes.length; i++) {
                if (column(changes[i]).equals(name)) found[at++] = changes[i];
            }
        }
        return found;
    }

    private static Object column(TableChange change) {
        VectorBuilder name = new VectorBuilder();
        String[] parts = ((TableChange.ColumnChange) change).fieldNames();
        for (int i = 0; i < parts.length; i++) name.addOne(parts[i]);
        return name.result();
    }

    private static Map told(TableChange change) {
        Map found = new HashMap();
        found.put("kind", change.getClass().getSimpleName());
        if (change instanceof TableChange.SetProperty) {
            found.put("property", ((TableChange.SetProperty) change).property());
            found.put("value", ((TableChange.SetProperty) change).value());
        } else if (change instanceof TableChange.RemoveProperty) {
            found.put("property", ((TableChange.RemoveProperty) change).property());
        } else if (change instanceof TableChange.ColumnChange) {
            found.put("column", ((TableChange.ColumnChange) change).fieldNames());
            column(found, change);
        } else if (change instanceof TableChange.ClusterBy) {
            List columns = new ArrayList();
            NamedReference[] names = ((TableChange.ClusterBy) change).clusteringColumns();
            for (int k = 0; k < names.length; k++) columns.add(names[k].describe());
            found.put("columns", columns);
        } else if (change instanceof TableChange.AddConstraint) {
            TableChange.AddConstraint added = (TableChange.AddConstraint) change;
            found.put("name", added.constraint().name());
            found.put("check", added.constraint() instanceof Check ? ((Check) added.constraint()).predicateSql() : null);
            found.put("ddl", added.constraint().toDDL());
        } else if (change instanceof TableChange.DropConstraint) {
            found.put("name", ((TableChange.DropConstraint) change).name());
            found.put("if_exists", Boolean.valueOf(((TableChange.DropConstraint) change).ifExists()));
        }
        return found;
    }

    private static void column(Map found, TableChange change) {
        if (change instanceof TableChange.AddColumn) {
            TableChange.AddColumn added = (TableChange.AddColumn) change;
            found.put("type", added.dataType().json());
            found.put("nullable", Boolean.valueOf(added.isNullable()));
            found.put("comment", added.comment());
            found.put("default", added.defaultValue() == null ? null : sql(added.defaultValue()));
            position(found, added.position());
        } else if (change instanceof TableChange.RenameColumn) {
            found.put("new", ((TableChange.RenameColumn) change).newName());
        } else if (change instanceof TableChange.UpdateColumnType) {
            found.put("type", ((TableChange.UpdateColumnType) change).newDataType().json());
        } else if (change instanceof TableChange.UpdateColumnNullability) {
            found.put("nullable", Boolean.valueOf(((TableChange.UpdateColumnNullability) change).nullable()));
        } else if (change instanceof TableChange.UpdateColumnComment) {
            found.put("comment", ((TableChange.UpdateColumnComment) change).newComment());
        } else if (change instanceof TableChange.UpdateColumnPosition) {
            position(found, ((TableChange.UpdateColumnPosition) change).position());
        } else if (change instanceof TableChange.UpdateColumnDefaultValue) {
            found.put("default", ((TableChange.UpdateColumnDefaultValue) change).newDefaultValue());
        } else if (change instanceof TableChange.DeleteColumn) {
            found.put("if_exists", ((TableChange.DeleteColumn) change).ifExists());
        }
    }

    /** By reflection, as the class that has the method is not public in Spark 4.3. */
    private static Object sql(Object value) {
        try {
            java.lang.reflect.Method getter = value.getClass().getMethod("getSql", new Class[0]);
            getter.setAccessible(true);
            return getter.invoke(value, new Object[0]);
        } catch (Exception error) {
            throw new IllegalStateException(error);
        }
    }

    private static void position(Map found, TableChange.ColumnPosition position) {
        if (position instanceof TableChange.After) {
            found.put("after", ((TableChange.After) position).column());
        } else if (position != null) {
            found.put("first", Boolean.TRUE);
        }
    }
}
