package pydelta;

import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.ExternalCatalog;
import org.apache.spark.sql.catalyst.catalog.ExternalCatalogWithListener;
import org.apache.spark.sql.catalyst.catalog.SessionCatalog;
import org.apache.spark.sql.types.StructType;
import scala.Some;
import scala.collection.immutable.Seq;
import scala.collection.immutable.VectorBuilder;

/**
 * The metastore of a Thrift server: clients that ask for tables and their columns are told what the logs of our tables
 * say, as their entries hold no columns. Only these questions ask for entries by the list.
 */
public class ServedEntries extends ExternalCatalogWithListener {
    private final ExternalCatalogWithListener behind;
    private final SparkSession session;

    public ServedEntries(ExternalCatalogWithListener behind, SparkSession session) {
        super(behind);
        this.behind = behind;
        this.session = session;
    }

    /** Into a session and those that are made from now on. */
    public static void into(SparkSession any) throws Exception {
        org.apache.spark.sql.classic.SparkSession session = (org.apache.spark.sql.classic.SparkSession) any;
        ExternalCatalogWithListener there = session.sharedState().externalCatalog();
        if (there instanceof ServedEntries) return;
        ExternalCatalog served = new ServedEntries(there, session);
        SessionCatalog own = session.sessionState().catalog();
        own.externalCatalog();
        Field field = Install.field(SessionCatalog.class, "externalCatalog");
        field.set(own, served);
        Install.field(session.sharedState().getClass(), "externalCatalog").set(session.sharedState(), served);
    }

    public ExternalCatalog unwrapped() { return behind.unwrapped(); }

    public Seq getTablesByName(String schema, Seq names) {
        Seq entries = behind.getTablesByName(schema, names);
        StringBuilder ours = new StringBuilder();
        for (int i = 0; i < entries.length(); i++) {
            CatalogTable entry = (CatalogTable) entries.apply(i);
            if (Catalog.isOurs(entry)) ours.append(ours.length() == 0 ? "[" : ",").append(Catalog.entry(entry));
        }
        if (ours.length() == 0) return entries;
        Object told = Python.ask("entry_columns", session, new Object[] {ours.append("]").toString()});
        Iterator columns = ((List) Python.map((String) told).get("entries")).iterator();
        VectorBuilder found = new VectorBuilder();
        for (int i = 0; i < entries.length(); i++) {
            CatalogTable entry = (CatalogTable) entries.apply(i);
            Map known = Catalog.isOurs(entry) ? (Map) columns.next() : null;
            found.addOne(known == null ? entry : described(entry, known));
        }
        return (Seq) found.result();
    }

    /** An entry with the columns and the comment of its log. */
    private static CatalogTable described(CatalogTable entry, Map columns) {
        Map changes = new HashMap();
        changes.put("schema", StructType.fromJson((String) columns.get("schema")));
        if (columns.get("comment") != null) changes.put("comment", new Some(columns.get("comment")));
        return changed(entry, changes);
    }

    /** An entry with other values in some fields: each Spark has others. */
    static CatalogTable changed(CatalogTable entry, Map changes) {
        Object[] values = new Object[entry.productArity()];
        for (int i = 0; i < values.length; i++) {
            String name = entry.productElementName(i);
            values[i] = changes.containsKey(name) ? changes.get(name) : entry.productElement(i);
        }
        Method[] methods = CatalogTable.class.getMethods();
        for (int i = 0; i < methods.length; i++) {
            if (methods[i].getName().equals("copy") && methods[i].getParameterTypes().length == values.length) {
                try {
                    return (CatalogTable) methods[i].invoke(entry, values);
                } catch (Exception error) {
                    throw new IllegalStateException(error);
                }
            }
        }
        throw new IllegalStateException("an entry cannot be copied");
    }
}
