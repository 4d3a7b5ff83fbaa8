package pydelta;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.streaming.StreamingRelationV2;
import org.apache.spark.sql.catalyst.streaming.WriteToStream;
import org.apache.spark.sql.catalyst.streaming.WriteToStreamStatement;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.catalyst.types.DataTypeUtils;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.execution.datasources.DataSource;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Utils;
import org.apache.spark.sql.streaming.OutputMode;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.Function1;
import scala.Option;
import scala.Product;
import scala.collection.immutable.Seq;
import scala.collection.immutable.VectorBuilder;
import scala.runtime.AbstractPartialFunction;

/** Streams of our tables, whatever named them: they are read and written by the data source in Python. */
public final class Streams extends Rule {
    static final String SOURCE = "pydelta";
    private final SparkSession session;

    Streams(SparkSession session) {
        this.session = session;
    }

    public TreeNode apply(TreeNode whole) {
        LogicalPlan plan = (LogicalPlan) ((LogicalPlan) whole).resolveOperatorsUp(new Sources(session));
        if (plan instanceof WriteToStream) checkSources((WriteToStream) plan);
        return plan instanceof WriteToStream || plan instanceof WriteToStreamStatement ? sink(plan) : plan;
    }

    /** Refuse what the sources of a query ask for together with its checkpoint, which nobody else knows both of. */
    private void checkSources(WriteToStream plan) {
        List found = new ArrayList();
        Seq leaves = plan.collectLeaves();
        for (int i = 0; i < leaves.length(); i++) {
            if (!(leaves.apply(i) instanceof StreamingRelationV2) || found.contains(leaves.apply(i))) continue;
            if (isTracked((StreamingRelationV2) leaves.apply(i))) found.add(leaves.apply(i));
        }
        if (found.isEmpty()) return;
        List options = new ArrayList();
        for (int i = 0; i < found.size(); i++) {
            options.add(Secrets.values(((StreamingRelationV2) found.get(i)).extraOptions().asCaseSensitiveMap()));
        }
        Python.ask("stream_locations", session, new Object[] {plan.resolvedCheckpointLocation(), Python.json(options)});
    }

    private static boolean isTracked(StreamingRelationV2 relation) {
        String name = relation.sourceName();
        CaseInsensitiveStringMap options = relation.extraOptions();
        return (name.equalsIgnoreCase(SOURCE) || name.equals(PortableProvider.class.getName()))
            && (options.containsKey("schemaTrackingLocation") || options.containsKey("schemaLocation"));
    }

    /** A table that a query is started for, by the data source. */
    private TreeNode sink(LogicalPlan plan) {
        Object sink = Relations.field((Product) plan, "sink");
        OutputMode mode = (OutputMode) Relations.field((Product) plan, "outputMode");
        StreamTable found = null;
        if (sink instanceof StreamSink) {
            found = ((StreamSink) sink).table;
        } else if (sink instanceof DeltaTable) {
            // What else a query asks for shows with its first batch.
            Python.ask("stream_mode", session, new Object[] {mode.toString()});
            found = new StreamTable((DeltaTable) sink, mode, null);
        }
        return found == null ? plan : changed(plan, new String[] {"sink"}, new Object[] {found});
    }

    /** By their names, as the number of the fields differs between versions of Spark. */
    static TreeNode changed(LogicalPlan plan, String[] names, Object[] values) {
        Product fields = (Product) plan;
        Object[] all = new Object[fields.productArity()];
        for (int i = 0; i < all.length; i++) {
            all[i] = fields.productElement(i);
            for (int k = 0; k < names.length; k++) {
                if (fields.productElementName(i).equals(names[k])) all[i] = values[k];
            }
        }
        return plan.makeCopy(all);
    }

    /** The data source in Python, as a session knows it: Spark looks for it in the session that is active. */
    static TableProvider source(SparkSession session) {
        Option before = org.apache.spark.sql.classic.SparkSession.getActiveSession();
        org.apache.spark.sql.classic.SparkSession own = (org.apache.spark.sql.classic.SparkSession) session;
        org.apache.spark.sql.classic.SparkSession.setActiveSession(own);
        try {
            return (TableProvider) DataSource.lookupDataSourceV2(PortableProvider.class.getName(),
                own.sessionState().conf()).get();
        } finally {
            if (before.isDefined()) {
                org.apache.spark.sql.classic.SparkSession.setActiveSession(
                    (org.apache.spark.sql.classic.SparkSession) before.get());
            } else {
                org.apache.spark.sql.classic.SparkSession.clearActiveSession();
            }
        }
    }

    private static final class Sources extends AbstractPartialFunction {
        private final SparkSession session;

        Sources(SparkSession session) {
            this.session = session;
        }

        public boolean isDefinedAt(Object node) {
            return node instanceof StreamingRelationV2 && ((StreamingRelationV2) node).table() instanceof DeltaTable;
        }

        public Object applyOrElse(Object node, Function1 otherwise) {
            if (!isDefinedAt(node)) return otherwise.apply(node);
            StreamingRelationV2 relation = (StreamingRelationV2) node;
            DeltaTable named = (DeltaTable) relation.table();
            Map options = Python.map((String) Python.ask("stream_source", session, new Object[] {
                named.id(), Python.json(relation.extraOptions().asCaseSensitiveMap()),
                named.asked() == null ? null : named.asked().json()}));
            TableProvider source = source(session);
            CaseInsensitiveStringMap complete = new CaseInsensitiveStringMap(options);
            Table table = DataSourceV2Utils.getTableFromProvider(source, complete, Option.apply(named.asked()));
            Option none = Option.empty();
            return changed(relation,
                new String[] {"source", "sourceName", "table", "extraOptions", "output", "catalog", "identifier",
                    "v1Relation"},
                new Object[] {Option.apply(source), SOURCE, table, complete, output(table, relation.output()), none,
                    none, none});
        }

        /** The columns of a table, those that the rest of the query may know already by the ids that it knows. */
        private static Seq output(Table table, Seq known) {
            Seq found = (Seq) DataTypeUtils.toAttributes(table.schema());
            VectorBuilder columns = new VectorBuilder();
            for (int i = 0; i < found.length(); i++) {
                AttributeReference column = (AttributeReference) found.apply(i);
                for (int k = 0; k < known.length(); k++) {
                    AttributeReference before = (AttributeReference) known.apply(k);
                    if (before.name().equals(column.name())) {
                        column = (AttributeReference) column.withExprId(before.exprId());
                    }
                }
                columns.addOne(column);
            }
            return (Seq) columns.result();
        }
    }
}
