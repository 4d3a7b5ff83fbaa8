package pydelta;

import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.AppendData;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.OverwriteByExpression;
import org.apache.spark.sql.catalyst.plans.logical.OverwritePartitionsDynamic;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.V2CreateTablePlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.catalyst.trees.TreeNodeTag;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import scala.Function1;
import scala.Option;
import scala.Product;
import scala.collection.immutable.Seq;
import scala.collection.immutable.VectorBuilder;
import scala.runtime.AbstractPartialFunction;

/** Our tables in analysed queries: a read becomes a scan, a write becomes a command. */
public final class Relations extends Rule {
    static final TreeNodeTag TABLE = new TreeNodeTag("pydelta.table");
    private final SparkSession session;

    Relations(SparkSession session) {
        this.session = session;
    }

    public TreeNode apply(TreeNode plan) {
        if (plan instanceof V2CreateTablePlan) Layout.check(session, (V2CreateTablePlan) plan);
        // Writes below a union: a statement that inserts into several tables.
        return ((LogicalPlan) ((LogicalPlan) plan).resolveOperatorsUp(new Scans(session))).resolveOperatorsUp(new Writes());
    }

    private static final class Writes extends AbstractPartialFunction {
        public boolean isDefinedAt(Object node) {
            if (!(node instanceof AppendData || node instanceof OverwriteByExpression
                    || node instanceof OverwritePartitionsDynamic)) return false;
            Object target = ((Product) node).productElement(0);
            return target instanceof DataSourceV2Relation
                && ((DataSourceV2Relation) target).table() instanceof DeltaTable
                && ((LogicalPlan) field((Product) node, "query")).resolved() && replacedIsResolved(node);
        }

        public Object applyOrElse(Object node, Function1 otherwise) {
            if (!isDefinedAt(node)) return otherwise.apply(node);
            Product plan = (Product) node;
            return write(plan, (DataSourceV2Relation) plan.productElement(0), (LogicalPlan) field(plan, "query"));
        }

        private static boolean replacedIsResolved(Object plan) {
            return !(plan instanceof OverwriteByExpression)
                || ((Expression) field((Product) plan, "deleteExpr")).resolved();
        }
    }

    private static Command write(Product plan, DataSourceV2Relation target, LogicalPlan query) {
        Map details = new HashMap();
        details.put("byName", field(plan, "isByName"));
        // The text of a statement has types of its own, which are those of the table after it.
        details.put("sql", Boolean.valueOf(((LogicalPlan) plan).origin().sqlText().isDefined()));
        details.put("listed", Boolean.valueOf(isListed((LogicalPlan) plan, query)));
        details.put("evolve", field(plan, "withSchemaEvolution"));
        details.put("dynamic", Boolean.valueOf(plan instanceof OverwritePartitionsDynamic));
        Map options = Options.of((scala.collection.immutable.Map) field(plan, "writeOptions"));
        options.putAll(target.options().asCaseSensitiveMap());
        Object replaced = plan instanceof OverwriteByExpression ? field(plan, "deleteExpr") : null;
        return Command.of(plan instanceof AppendData ? "INSERT" : "INSERT OVERWRITE",
            new Object[] {target.table(), query, replaced, Python.json(details), Python.json(Secrets.values(options))},
            Command.NO_COLUMNS);
    }

    /** Whether the names of the rows are those of a list in the statement: Spark then puts them where the statement is. */
    private static boolean isListed(LogicalPlan plan, LogicalPlan query) {
        if (!(query instanceof Project) || !plan.origin().startIndex().isDefined()) return false;
        Seq shown = ((Project) query).projectList();
        for (int i = 0; i < shown.length(); i++) {
            if (!(shown.apply(i) instanceof Alias)) return false;
            Option at = ((Alias) shown.apply(i)).origin().startIndex();
            if (!at.isDefined() || !at.equals(plan.origin().startIndex())) return false;
        }
        return true;
    }

    /** By its name, as the places of fields differ between versions of Spark; null where a version has none. */
    static Object field(Product plan, String name) {
        for (int i = 0; i < plan.productArity(); i++) {
            if (plan.productElementName(i).equals(name)) return plan.productElement(i);
        }
        return null;
    }

    private static final class Scans extends AbstractPartialFunction {
        private final SparkSession session;

        Scans(SparkSession session) {
            this.session = session;
        }

        public boolean isDefinedAt(Object node) {
            return node instanceof DataSourceV2Relation && ((DataSourceV2Relation) node).table() instanceof DeltaTable;
        }

        public Object applyOrElse(Object node, Function1 otherwise) {
            if (!isDefinedAt(node)) return otherwise.apply(node);
            DataSourceV2Relation relation = (DataSourceV2Relation) node;
            Map options = relation.options().asCaseSensitiveMap();
            LogicalPlan scan = (LogicalPlan) Python.ask("scan", session, new Object[] {
                ((DeltaTable) relation.table()).id(), options.isEmpty() ? null : Python.json(Secrets.values(options))});
            LogicalPlan found = underIds(entered(scan, ((DeltaTable) relation.table()).entry()), relation.output());
            found.setTagValue(TABLE, relation.table());
            return found;
        }

        /** A plan whose relations tell the entry of their table, as refreshTable and DROP TABLE ask for. */
        private static LogicalPlan entered(LogicalPlan plan, Option entry) {
            if (entry.isEmpty()) return plan;
            if (plan instanceof LogicalRelation) {
                LogicalRelation leaf = (LogicalRelation) plan;
                return new LogicalRelation(leaf.relation(), leaf.output(), entry, leaf.isStreaming(), leaf.stream());
            }
            VectorBuilder children = new VectorBuilder();
            for (int i = 0; i < plan.children().length(); i++) {
                children.addOne(entered((LogicalPlan) plan.children().apply(i), entry));
            }
            return plan.children().isEmpty() ? plan : (LogicalPlan) plan.withNewChildren((Seq) children.result());
        }

        /** A plan whose columns are those that the rest of the query knows. */
        private static LogicalPlan underIds(LogicalPlan scan, Seq wanted) {
            if (scan instanceof LogicalRelation) {
                LogicalRelation leaf = (LogicalRelation) scan;
                return new LogicalRelation(leaf.relation(), wanted, leaf.catalogTable(), false, leaf.stream());
            }
            VectorBuilder columns = new VectorBuilder();
            for (int i = 0; i < wanted.length(); i++) {
                Attribute want = (Attribute) wanted.apply(i);
                columns.addOne(new Alias((Expression) scan.output().apply(i), want.name(), want.exprId(),
                    want.qualifier(), Option.apply(want.metadata()), (Seq) new VectorBuilder().result()));
            }
            return new Project((Seq) columns.result(), scan);
        }
    }
}
