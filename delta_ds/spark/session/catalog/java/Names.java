package pydelta;

import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.analysis.ResolvedTable;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.analysis.UnresolvedTable;
import org.apache.spark.sql.catalyst.analysis.UnresolvedTableOrView;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.connector.catalog.CatalogManager;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.collection.immutable.VectorBuilder;

/** From names to tables of ours. */
public final class Names {
    /**
     * The table that a relation of a statement names, or that a view shows as it is.
     *
     * @return the table and its alias, null for none; or null: no table of ours
     */
    static Object[] target(SparkSession session, LogicalPlan relation) {
        String alias = null;
        LogicalPlan plan = relation;
        while (plan instanceof SubqueryAlias) {
            if (alias == null) alias = ((SubqueryAlias) plan).alias();
            plan = ((SubqueryAlias) plan).child();
        }
        Seq name = plan instanceof UnresolvedRelation ? ((UnresolvedRelation) plan).multipartIdentifier()
            : plan instanceof UnresolvedTable ? ((UnresolvedTable) plan).multipartIdentifier()
            : plan instanceof UnresolvedTableOrView ? ((UnresolvedTableOrView) plan).multipartIdentifier() : null;
        if (name == null) return null;
        boolean rows = plan instanceof UnresolvedRelation;
        DeltaTable found = rows ? null : commanded(session, name);
        if (found == null) found = find(session, name, rows);
        return found == null ? null : new Object[] {found, alias};
    }

    /**
     * The table of a name; null: none of ours. Temporary views come first, as everywhere in Spark.
     *
     * @param views whether the name of a view stands for the table that it shows as it is
     */
    public static DeltaTable find(SparkSession any, Seq parts, boolean views) {
        org.apache.spark.sql.classic.SparkSession session = (org.apache.spark.sql.classic.SparkSession) any;
        if (session.sessionState().catalog().isTempView(parts)) {
            return views ? Views.table(session, parts) : null;
        }
        Table found = load(session, parts);
        if (found instanceof DeltaTable) return (DeltaTable) found;
        return views && found != null && isView(found) ? Views.table(session, parts) : null;
    }

    /** The table of a name that is a path, for a command which reads no rows; null: the name is none. */
    static DeltaTable commanded(SparkSession session, Seq parts) {
        ResolvedTable found = resolved(session, parts);
        return found == null ? null : (DeltaTable) found.table();
    }

    /** A table that a command names by its path, as Spark resolves it; null: it names none so. */
    static ResolvedTable resolved(SparkSession any, Seq parts) {
        CatalogManager catalogs = ((org.apache.spark.sql.classic.SparkSession) any).sessionState().catalogManager();
        boolean full = parts.length() == 3 && "spark_catalog".equalsIgnoreCase((String) parts.apply(0));
        CatalogPlugin catalog = full ? catalogs.catalog("spark_catalog") : catalogs.currentCatalog();
        Identifier ident = ident(parts, full ? 1 : 0);
        if (!(catalog instanceof Catalog) || Catalog.path(ident) == null) return null;
        return ResolvedTable.create((Catalog) catalog, ident, Catalog.commanded(any, ident));
    }

    private static Identifier ident(Seq parts, int from) {
        String[] namespace = new String[parts.length() - 1 - from];
        for (int i = 0; i < namespace.length; i++) namespace[i] = (String) parts.apply(from + i);
        return Identifier.of(namespace, (String) parts.last());
    }

    /** Whether a name is that of a table which is there, and none of ours. */
    static boolean isOfOthers(SparkSession any, Seq parts) {
        org.apache.spark.sql.classic.SparkSession session = (org.apache.spark.sql.classic.SparkSession) any;
        if (session.sessionState().catalog().isTempView(parts)) return false;
        try {
            Table found = load(session, parts);
            return found != null && !(found instanceof DeltaTable);
        } catch (RuntimeException error) {
            return false; // Spark will say it.
        }
    }

    /**
     * What may stand in front of the last part of a table's name: its catalog and schema, whether it says them or not. A
     * temporary view has but what it says.
     */
    public static Seq qualifier(SparkSession any, Seq parts) {
        org.apache.spark.sql.classic.SparkSession session = (org.apache.spark.sql.classic.SparkSession) any;
        if (session.sessionState().catalog().isTempView(parts)) return (Seq) parts.init();
        Object[] place = place(session, parts);
        VectorBuilder names = new VectorBuilder();
        names.addOne(((CatalogPlugin) place[0]).name());
        String[] namespace = ((Identifier) place[1]).namespace();
        for (int i = 0; i < namespace.length; i++) names.addOne(namespace[i]);
        return (Seq) names.result();
    }

    /** The catalog and the identifier that a name stands for. */
    private static Object[] place(org.apache.spark.sql.classic.SparkSession session, Seq parts) {
        CatalogManager catalogs = session.sessionState().catalogManager();
        CatalogPlugin catalog = catalogs.currentCatalog();
        if (parts.length() == 1) {
            return new Object[] {catalog, Identifier.of(catalogs.currentNamespace(), (String) parts.last())};
        }
        String first = (String) parts.apply(0);
        boolean named = catalogs.isCatalogRegistered(first) && !Catalog.isOurs(first)
            && (parts.length() > 2 || !"spark_catalog".equalsIgnoreCase(first));
        return new Object[] {named ? catalogs.catalog(first) : catalog, ident(parts, named ? 1 : 0)};
    }

    private static Table load(org.apache.spark.sql.classic.SparkSession session, Seq parts) {
        Object[] place = place(session, parts);
        if (!(place[0] instanceof TableCatalog)) return null;
        try {
            return ((TableCatalog) place[0]).loadTable((Identifier) place[1]);
        } catch (NoSuchTableException missing) {
            return null;
        } catch (Exception error) {
            org.apache.spark.unsafe.Platform.throwException(error);
            return null;
        }
    }

    private static boolean isView(Table found) {
        return found instanceof org.apache.spark.sql.connector.catalog.V1Table
            && "VIEW".equals(((org.apache.spark.sql.connector.catalog.V1Table) found).v1Table().tableType().name());
    }
}
