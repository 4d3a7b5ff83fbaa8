import com.fasterxml.jackson.databind.ObjectMapper;
import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Coalesce;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.Not;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.Count;
import org.apache.spark.sql.catalyst.expressions.aggregate.Max;
import org.apache.spark.sql.catalyst.expressions.aggregate.Min;
import org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.catalyst.trees.TreePattern;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.unsafe.types.UTF8String;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.collection.immutable.VectorBuilder;

/**
 * Puts the values of counts, minima and maxima of a whole table in place of the aggregate that would scan it.
 *
 * Only an aggregate without grouping, over columns as the scan gives them, over one of our relations, is asked
 * about; every other plan is returned as it is, without a call out of the JVM. The answer comes from a function of
 * texts: {"index", "deletions", "aggregates": [{"function", "path", "type"}]} to an array of texts, or null.
 *
 * Compiled by Janino: no lambdas, no generic type arguments.
 */
public final class LogAggregates extends Rule {
    private static final Logger LOGGER = LoggerFactory.getLogger("delta_ds");
    private static final ObjectMapper JSON = new ObjectMapper();

    private Function answers = null;

    /** The rule, asking this function; without one it changes no plan. */
    public LogAggregates asking(Function answers) {
        this.answers = answers;
        return this;
    }

    public TreeNode apply(TreeNode plan) {
        if (!plan.containsPattern(TreePattern.AGGREGATE()) || ((LogicalPlan) plan).isStreaming()) {
            return plan;
        }
        if (answers == null) {
            return plan;
        }
        try {
            return rewritten((LogicalPlan) plan);
        } catch (Exception error) {
            LOGGER.warn("aggregates_not_answered action=scan reason=" + error);
        } catch (LinkageError error) {
            LOGGER.warn("aggregates_not_answered action=scan reason=" + error);
        }
        return plan;
    }

    private LogicalPlan rewritten(LogicalPlan plan) throws Exception {
        if (!plan.containsPattern(TreePattern.AGGREGATE())) {
            return plan;
        }
        if (plan instanceof Aggregate) {
            LogicalPlan answered = answered((Aggregate) plan);
            if (answered != null) {
                return answered;
            }
        }
        Seq children = plan.children();
        VectorBuilder replaced = new VectorBuilder();
        boolean changed = false;
        for (int i = 0; i < children.length(); i++) {
            LogicalPlan child = (LogicalPlan) children.apply(i);
            LogicalPlan other = rewritten(child);
            changed = changed || other != child;
            replaced.addOne(other);
        }
        return changed ? (LogicalPlan) plan.withNewChildren((Seq) replaced.result()) : plan;
    }

    private LogicalPlan answered(Aggregate aggregate) throws Exception {
        Source source = aggregate.groupingExpressions().isEmpty() ? source(aggregate.child()) : null;
        if (source == null) {
            return null;
        }
        List found = new ArrayList();
        Seq outputs = aggregate.aggregateExpressions();
        for (int i = 0; i < outputs.length(); i++) {
            if (!collect((Expression) outputs.apply(i), found)) {
                return null;
            }
        }
        List requests = new ArrayList();
        for (int i = 0; i < found.size(); i++) {
            Map request = request((AggregateExpression) found.get(i), source);
            if (request == null) {
                return null;
            }
            requests.add(request);
        }
        String index = requests.isEmpty() ? null : source.index();
        if (index == null) {
            return null;
        }
        Map question = new LinkedHashMap();
        question.put("index", index);
        question.put("deletions", Boolean.valueOf(source.deletions));
        question.put("aggregates", requests);
        String reply = (String) answers.apply(JSON.writeValueAsString(question));
        if (reply == null) {
            return null;
        }
        String[] values = (String[]) JSON.readValue(reply, String[].class);
        if (values.length != found.size()) {
            throw new IllegalArgumentException(values.length + " answers to " + found.size() + " questions");
        }
        return relation(outputs, found, values);
    }

    /** What an aggregate reads: a relation, below columns that are renamed and rows that are deleted. */
    private static final class Source {
        LogicalRelation relation;
        boolean deletions = false;
        final Map renamed = new HashMap();

        /** The identity of our file index; null for another one, whose own text might be long. */
        String index() {
            Object location = ((HadoopFsRelation) relation.relation()).location();
            String text = java.lang.reflect.Proxy.isProxyClass(location.getClass()) ? location.toString() : "";
            return text.startsWith("pydelta[") ? text : null;
        }

        /** The path of a column as the relation names it; null for any other expression. */
        List path(Expression expression) {
            if (expression instanceof Alias) {
                return path((Expression) expression.children().apply(0));
            }
            if (expression instanceof GetStructField) {
                GetStructField field = (GetStructField) expression;
                List path = path((Expression) field.children().apply(0));
                if (path != null) {
                    path.add(field.childSchema().fields()[field.ordinal()].name());
                }
                return path;
            }
            if (!(expression instanceof AttributeReference)) {
                return null;
            }
            AttributeReference attribute = (AttributeReference) expression;
            if (renamed.containsKey(attribute.exprId())) {
                return path((Expression) renamed.get(attribute.exprId()));
            }
            if (!relation.outputSet().contains(attribute)) {
                return null;
            }
            List path = new ArrayList();
            path.add(attribute.name());
            return path;
        }
    }

    private static Source source(LogicalPlan plan) {
        Source source = new Source();
        List projections = new ArrayList();
        Filter filter = null;
        while (!(plan instanceof LogicalRelation)) {
            if (plan instanceof Project) {
                projections.add(((Project) plan).projectList());
            } else if (plan instanceof Filter && filter == null) {
                filter = (Filter) plan;
            } else {
                return null;
            }
            plan = (LogicalPlan) plan.children().apply(0);
        }
        source.relation = (LogicalRelation) plan;
        if (!(source.relation.relation() instanceof HadoopFsRelation)) {
            return null;
        }
        for (int i = projections.size() - 1; i >= 0; i--) {
            if (!rename((Seq) projections.get(i), source)) {
                return null;
            }
        }
        source.deletions = filter != null;
        return filter == null || keepsWhatIsNotDeleted(filter.condition(), source) ? source : null;
    }

    private static boolean rename(Seq projection, Source source) {
        for (int i = 0; i < projection.length(); i++) {
            NamedExpression column = (NamedExpression) projection.apply(i);
            if (source.path((Expression) column) == null) {
                return false;
            }
            if (column instanceof Alias) {
                source.renamed.put(column.exprId(), ((Expression) column).children().apply(0));
            }
        }
        return true;
    }

    /**
     * Whether a condition is `NOT coalesce(..., false)` over the bitmap of deleted rows and the number of the row.
     *
     * Nobody else can name the bitmap: the scan's own projection hides it.
     */
    private static boolean keepsWhatIsNotDeleted(Expression condition, Source source) {
        Expression either = condition instanceof Not ? (Expression) condition.children().apply(0) : null;
        if (!(either instanceof Coalesce) || either.children().length() != 2) {
            return false;
        }
        Expression otherwise = (Expression) either.children().apply(1);
        if (!(otherwise instanceof Literal) || !Boolean.FALSE.equals(((Literal) otherwise).value())) {
            return false;
        }
        Seq references = condition.references().toSeq();
        boolean bitmap = false;
        for (int i = 0; i < references.length(); i++) {
            List path = source.path((Expression) references.apply(i));
            boolean deleted = path != null && path.size() == 1 && path.get(0).equals("__pydelta_dv");
            if (!deleted && (path == null || !path.get(0).equals("_metadata"))) {
                return false;
            }
            bitmap = bitmap || deleted;
        }
        return bitmap && looksUpBits((Expression) either.children().apply(0));
    }

    private static boolean looksUpBits(Expression expression) {
        boolean found = expression instanceof StaticInvoke
            && ((StaticInvoke) expression).functionName().equals("isSet");
        for (int i = 0; i < expression.children().length() && !found; i++) {
            found = looksUpBits((Expression) expression.children().apply(i));
        }
        return found;
    }

    /** Adds the aggregates in an expression; false where something in it cannot be kept above their values. */
    private static boolean collect(Expression expression, List found) {
        if (expression instanceof AggregateExpression) {
            found.add(expression);
            return true;
        }
        if (!expression.deterministic() || expression.containsPattern(TreePattern.OUTER_REFERENCE())
            || expression instanceof Attribute) {
            return false;
        }
        for (int i = 0; i < expression.children().length(); i++) {
            if (!collect((Expression) expression.children().apply(i), found)) {
                return false;
            }
        }
        return true;
    }

    private static Map request(AggregateExpression aggregate, Source source) {
        if (aggregate.isDistinct() || aggregate.filter().isDefined()) {
            return null;
        }
        Expression function = (Expression) aggregate.aggregateFunction();
        String name = function instanceof Count ? "count" : function instanceof Min ? "min" : function instanceof Max ? "max" : null;
        if (name == null || function.children().length() != 1) {
            return null;
        }
        Expression argument = (Expression) function.children().apply(0);
        List path = source.path(argument);
        if (path == null && name.equals("count") && argument instanceof Literal && ((Literal) argument).value() != null) {
            path = new ArrayList();
        }
        if (path == null || (!name.equals("count") && !readable(function.dataType()))) {
            return null;
        }
        Map request = new LinkedHashMap();
        request.put("function", name);
        request.put("path", path);
        request.put("type", argument.dataType().typeName());
        return request;
    }

    private static LogicalPlan relation(Seq outputs, List found, String[] texts) {
        Object[] values = new Object[texts.length];
        VectorBuilder attributes = new VectorBuilder();
        boolean plain = outputs.length() == found.size();
        for (int i = 0; i < texts.length; i++) {
            AggregateExpression aggregate = (AggregateExpression) found.get(i);
            values[i] = texts[i] == null ? null : value(texts[i], aggregate.dataType());
            plain = plain && outputs.apply(i) instanceof Alias
                && ((Alias) outputs.apply(i)).children().apply(0) == aggregate;
            attributes.addOne(aggregate.resultAttribute());
        }
        VectorBuilder columns = new VectorBuilder();
        for (int i = 0; i < outputs.length(); i++) {
            columns.addOne(plain ? (Object) ((Alias) outputs.apply(i)).toAttribute() : above((Expression) outputs.apply(i)));
        }
        VectorBuilder rows = new VectorBuilder();
        rows.addOne(new GenericInternalRow(values));
        Seq output = (Seq) (plain ? columns : attributes).result();
        LogicalPlan relation = new LocalRelation(output, (Seq) rows.result(), false, Option.empty());
        return plain ? relation : new Project((Seq) columns.result(), relation);
    }

    /** The expression with the results of its aggregates as columns. */
    private static Expression above(Expression expression) {
        if (expression instanceof AggregateExpression) {
            return (Expression) ((AggregateExpression) expression).resultAttribute();
        }
        VectorBuilder children = new VectorBuilder();
        for (int i = 0; i < expression.children().length(); i++) {
            children.addOne(above((Expression) expression.children().apply(i)));
        }
        return (Expression) expression.withNewChildren((Seq) children.result());
    }

    private static boolean readable(DataType type) {
        return type instanceof DecimalType || type.equals(DataTypes.ByteType) || type.equals(DataTypes.ShortType)
            || type.equals(DataTypes.IntegerType) || type.equals(DataTypes.LongType)
            || type.equals(DataTypes.FloatType) || type.equals(DataTypes.DoubleType)
            || type.equals(DataTypes.BooleanType) || type.equals(DataTypes.StringType)
            || type.equals(DataTypes.DateType) || type.equals(DataTypes.TimestampType)
            || type.equals(DataTypes.TimestampNTZType);
    }

    /** A value as Catalyst holds it: dates in days, timestamps in microseconds since 1970. */
    private static Object value(String text, DataType type) {
        if (type instanceof DecimalType) {
            DecimalType decimal = (DecimalType) type;
            return Decimal.apply(new BigDecimal(text), decimal.precision(), decimal.scale());
        }
        if (type.equals(DataTypes.ByteType)) {
            return Byte.valueOf(text);
        }
        if (type.equals(DataTypes.ShortType)) {
            return Short.valueOf(text);
        }
        if (type.equals(DataTypes.IntegerType) || type.equals(DataTypes.DateType)) {
            return Integer.valueOf(text);
        }
        if (type.equals(DataTypes.FloatType)) {
            return Float.valueOf(text);
        }
        if (type.equals(DataTypes.DoubleType)) {
            return Double.valueOf(text);
        }
        if (type.equals(DataTypes.BooleanType)) {
            return Boolean.valueOf(text);
        }
        if (type.equals(DataTypes.StringType)) {
            return UTF8String.fromString(text);
        }
        return Long.valueOf(text);
    }
}
