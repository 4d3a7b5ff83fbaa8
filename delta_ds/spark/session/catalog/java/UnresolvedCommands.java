package pydelta;

import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.AliasIdentifier;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.catalog.CatalogStorageFormat;
import org.apache.spark.sql.catalyst.analysis.UnresolvedIdentifier;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.analysis.UnresolvedTable;
import org.apache.spark.sql.catalyst.analysis.UnresolvedTableOrView;
import org.apache.spark.sql.catalyst.analysis.UnresolvedTableValuedFunction;
import org.apache.spark.sql.catalyst.plans.logical.DeleteFromTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.plans.logical.ShowCreateTable;
import org.apache.spark.sql.catalyst.plans.logical.ShowPartitions;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.plans.logical.TruncatePartition;
import org.apache.spark.sql.catalyst.plans.logical.UpdateTable;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import scala.Function1;
import scala.Option;
import scala.Product;
import scala.collection.immutable.Map;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractPartialFunction;

/** Commands on our tables, and table functions of ours, taken over before Spark resolves a name in them. */
public final class UnresolvedCommands extends Rule {
    private final SparkSession session;

    UnresolvedCommands(SparkSession session) {
        this.session = session;
    }

    public TreeNode apply(TreeNode whole) {
        LogicalPlan settled = Secrets.settled(session, (LogicalPlan) whole);
        TreeNode plan = (TreeNode) settled.resolveOperatorsUp(new Functions(session));
        if (plan instanceof DeleteFromTable) return taken("DELETE", plan, ((DeleteFromTable) plan).table());
        if (plan instanceof UpdateTable) return taken("UPDATE", plan, ((UpdateTable) plan).table());
        if (plan instanceof MergeIntoTable) return taken("MERGE", plan, ((MergeIntoTable) plan).targetTable());
        if (plan instanceof TruncatePartition) {
            return taken("TRUNCATE PARTITION", plan, ((TruncatePartition) plan).table());
        }
        if (plan instanceof ShowPartitions) return taken("SHOW PARTITIONS", plan, ((ShowPartitions) plan).table());
        if (plan instanceof ShowCreateTable && !((ShowCreateTable) plan).asSerde()) {
            return taken("SHOW CREATE TABLE", plan, ((ShowCreateTable) plan).child());
        }
        // Two classes, of which no version of Spark has both.
        String kind = plan.getClass().getSimpleName();
        if (kind.equals("CreateTableLike") || kind.equals("CreateTableLikeCommand")) return like((Product) plan);
        return ((LogicalPlan) plan).resolveOperatorsUp(new Paths(session));
    }

    private TreeNode taken(String kind, TreeNode plan, LogicalPlan target) {
        Object[] found = Names.target(session, target);
        if (found == null) return plan;
        String schema = (String) Python.ask("answer", session, new Object[] {kind, found[0]});
        return Command.of(kind, new Object[] {plan, found[0], found[1]}, schema);
    }

    private TreeNode like(Product plan) {
        Object target = Relations.field(plan, "name"), source = Relations.field(plan, "source");
        Option location = (Option) Relations.field(plan, "location");
        if (target == null) {
            target = Relations.field(plan, "targetTable");
            source = Relations.field(plan, "sourceTable");
            location = ((CatalogStorageFormat) Relations.field(plan, "fileFormat")).locationUri();
        }
        Option provider = (Option) Relations.field(plan, "provider");
        DeltaTable ours = Names.commanded(session, parts(source));
        if (ours == null) ours = Names.find(session, parts(source), false);
        boolean taken = provider.isDefined() ? Catalog.isOurs((String) provider.get()) : ours != null;
        if (!taken) return (TreeNode) plan;
        return Command.of("CREATE TABLE LIKE", new Object[] {parts(target), parts(source), ours,
            location.isDefined() ? stated(location.get()) : null, Options.of((Map) Relations.field(plan, "properties")),
            Relations.field(plan, "ifNotExists")}, Command.NO_COLUMNS);
    }

    /**
     * Change feeds: table_changes and table_changes_by_path, which are not in a registry, as users may empty it and
     * sessions do not share it; and reads by name whose options ask for one: Spark would give it the table's columns.
     */
    private static final class Functions extends AbstractPartialFunction {
        private final SparkSession session;

        Functions(SparkSession session) {
            this.session = session;
        }

        public boolean isDefinedAt(Object node) {
            if (node instanceof UnresolvedRelation) return feed((UnresolvedRelation) node) != null;
            if (!(node instanceof UnresolvedTableValuedFunction)) return false;
            Seq name = ((UnresolvedTableValuedFunction) node).name();
            return name.length() == 1 && ((String) name.apply(0)).toLowerCase(java.util.Locale.ROOT)
                .matches("table_changes(_by_path)?");
        }

        public Object applyOrElse(Object node, Function1 otherwise) {
            if (!isDefinedAt(node)) return otherwise.apply(node);
            if (node instanceof UnresolvedRelation) {
                UnresolvedRelation read = (UnresolvedRelation) node;
                Object feed = Python.ask("feed_of_name", session, new Object[] {feed(read).id(),
                    Python.json(Secrets.values(read.options().asCaseSensitiveMap()))});
                Seq parts = read.multipartIdentifier();
                return new SubqueryAlias(new AliasIdentifier((String) parts.last(), (Seq) parts.init()), (LogicalPlan) feed);
            }
            UnresolvedTableValuedFunction call = (UnresolvedTableValuedFunction) node;
            return Python.ask("table_function", session, new Object[] {call.name().apply(0), call.functionArgs()});
        }

        /** The table of ours whose change feed a relation is; null: none. */
        private DeltaTable feed(UnresolvedRelation read) {
            boolean asked = "true".equalsIgnoreCase(read.options().get("readChangeFeed"))
                || "true".equalsIgnoreCase(read.options().get("readChangeData"));
            return asked && !read.isStreaming() ? Names.find(session, read.multipartIdentifier(), false) : null;
        }
    }

    /** Tables that commands name by their path: what is said of a path without one is not what a read is told. */
    private static final class Paths extends AbstractPartialFunction {
        private final SparkSession session;

        Paths(SparkSession session) {
            this.session = session;
        }

        public boolean isDefinedAt(Object node) {
            return node instanceof UnresolvedTable || node instanceof UnresolvedTableOrView;
        }

        public Object applyOrElse(Object node, Function1 otherwise) {
            if (!isDefinedAt(node)) return otherwise.apply(node);
            Object found = Names.resolved(session, node instanceof UnresolvedTable
                ? ((UnresolvedTable) node).multipartIdentifier() : ((UnresolvedTableOrView) node).multipartIdentifier());
            return found == null ? node : found;
        }
    }

    /** Without escapes, which only an address has. */
    private static String stated(Object location) {
        return (location instanceof java.net.URI ? new org.apache.hadoop.fs.Path((java.net.URI) location) : location).toString();
    }

    private static Seq parts(Object name) {
        if (name instanceof UnresolvedIdentifier) return ((UnresolvedIdentifier) name).nameParts();
        if (name instanceof UnresolvedTableOrView) return ((UnresolvedTableOrView) name).multipartIdentifier();
        return (Seq) ((TableIdentifier) name).nameParts();
    }
}
