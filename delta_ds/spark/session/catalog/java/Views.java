package pydelta;

import java.util.HashMap;
import java.util.HashSet;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.function.Supplier;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.plans.logical.View;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.Option;
import scala.collection.immutable.Seq;

/** Views, and the tables that stand behind them. */
final class Views {
    /**
     * The table that a view shows as it is: all of its rows and columns, each under its own name, in any order.
     *
     * @return null for a view of other things; one that shows a part of our tables, or more, is refused
     */
    static DeltaTable table(org.apache.spark.sql.classic.SparkSession session, Seq parts) {
        LogicalPlan plan = session.sessionState().executePlan(
            new UnresolvedRelation(parts, CaseInsensitiveStringMap.empty(), false),
            org.apache.spark.sql.execution.CommandExecutionMode.SKIP()).analyzed();
        String name = parts.mkString(".");
        LogicalPlan leaf = leaf(plan);
        if (leaf != null && isWhole(plan, leaf)) {
            Option tagged = leaf.getTagValue(Relations.TABLE);
            DeltaTable table = tagged.isDefined() ? (DeltaTable) tagged.get()
                : DeltaTable.of((Supplier) Python.ask("open_view", session, new Object[] {reading(leaf)}));
            if (tagged.isDefined() || hasColumns(leaf.output(), table.schema())) return table;
        }
        if (isOfTables(plan)) Python.ask("refuse_view", session, new Object[] {name, readings(plan)});
        return null;
    }

    /** The table below projections, of which an analysed plan has all rows; null where there is none. */
    private static LogicalPlan leaf(LogicalPlan plan) {
        LogicalPlan at = plan;
        while (!isTable(at)) {
            if (at instanceof SubqueryAlias) {
                at = ((SubqueryAlias) at).child();
            } else if (at instanceof View) {
                at = ((View) at).child();
            } else if (at instanceof Project) {
                at = ((Project) at).child();
            } else {
                return null;
            }
        }
        return at;
    }

    /** Whether a plan over a leaf has each of its columns once, as it is and under its own name. */
    private static boolean isWhole(LogicalPlan plan, LogicalPlan leaf) {
        Map columns = columns(plan, leaf);
        Seq shown = plan.output();
        Set seen = new HashSet();
        for (int i = 0; i < shown.length(); i++) {
            Attribute column = (Attribute) shown.apply(i);
            String own = (String) columns.get(column.exprId());
            if (own == null || !own.equalsIgnoreCase(column.name()) || !seen.add(own)) return false;
        }
        return seen.size() == leaf.output().length();
    }

    /** From the ids of columns that are those of the leaf, whatever they are called, to their names there. */
    private static Map columns(LogicalPlan plan, LogicalPlan leaf) {
        Map found = new HashMap();
        if (plan == leaf) {
            for (int i = 0; i < leaf.output().length(); i++) {
                Attribute column = (Attribute) leaf.output().apply(i);
                found.put(column.exprId(), column.name());
            }
            return found;
        }
        Map below = columns((LogicalPlan) plan.children().apply(0), leaf);
        if (!(plan instanceof Project)) return below;
        Seq projection = ((Project) plan).projectList();
        for (int i = 0; i < projection.length(); i++) {
            NamedExpression column = (NamedExpression) projection.apply(i);
            Object value = column instanceof Alias ? ((Alias) column).child() : column;
            if (value instanceof Cast && ((Cast) value).child().dataType().equals(((Cast) value).dataType())) {
                value = ((Cast) value).child();
            }
            if (value instanceof Attribute) found.put(column.exprId(), below.get(((Attribute) value).exprId()));
        }
        return found;
    }

    private static boolean isTable(LogicalPlan plan) {
        return plan.getTagValue(Relations.TABLE).isDefined() || reading(plan) != null;
    }

    /** Whether one of our tables is in an analysed plan. */
    private static boolean isOfTables(LogicalPlan plan) {
        if (isTable(plan)) return true;
        for (int i = 0; i < plan.children().length(); i++) {
            if (isOfTables((LogicalPlan) plan.children().apply(i))) return true;
        }
        return false;
    }

    /** The options of all reads in a plan, one a line. */
    private static String readings(LogicalPlan plan) {
        String own = reading(plan);
        StringBuilder found = new StringBuilder(own == null ? "" : own + "\n");
        for (int i = 0; i < plan.children().length(); i++) {
            found.append(readings((LogicalPlan) plan.children().apply(i)));
        }
        return found.toString();
    }

    /** The options of the read that a leaf is, as of spark.read.load(), in JSON; null for other plans. */
    private static String reading(LogicalPlan plan) {
        if (plan instanceof LogicalRelation && ((LogicalRelation) plan).relation() instanceof Supplier) {
            return (String) ((Supplier) ((LogicalRelation) plan).relation()).get();
        }
        if (plan instanceof DataSourceV2Relation) {
            DataSourceV2Relation relation = (DataSourceV2Relation) plan;
            if (!(relation.table() instanceof DeltaTable) && Catalog.isOurs(relation.table().name())) {
                return Python.json(relation.options().asCaseSensitiveMap());
            }
        }
        return null;
    }

    /** Whether the columns of a read are all that its table has now. */
    private static boolean hasColumns(Seq columns, StructType table) {
        Set names = new HashSet();
        for (int i = 0; i < columns.length(); i++) names.add(((Attribute) columns.apply(i)).name().toLowerCase(Locale.ROOT));
        String[] wanted = table.fieldNames();
        for (int i = 0; i < wanted.length; i++) {
            if (!names.contains(wanted[i].toLowerCase(Locale.ROOT))) return false;
        }
        return columns.length() == wanted.length;
    }
}
