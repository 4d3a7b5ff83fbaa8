import java.util.Collections;
import java.util.HashMap;
import java.util.Map;
import java.util.WeakHashMap;
import java.util.function.BiFunction;
import java.util.function.Supplier;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.QueryPlanningTracker$;
import org.apache.spark.sql.catalyst.analysis.MultiInstanceRelation;
import org.apache.spark.sql.catalyst.expressions.Add;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Coalesce;
import org.apache.spark.sql.catalyst.expressions.CreateNamedStruct;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.Literal$;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.datasources.FileFormat;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.sources.InsertableRelation;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Metadata$;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.Tuple2;
import scala.collection.immutable.Seq;
import scala.collection.immutable.VectorBuilder;
import scala.runtime.AbstractFunction1;

/**
 * Relations that stand for a table, whatever its version, and the optimiser rule that puts the scan of one version in
 * the place of each, the same version for all relations of a table in one execution of a query.
 *
 * A relation has the columns of the table and nothing else, so that Spark takes INSERT INTO for every table; it is
 * never scanned itself.
 *
 * Compiled by Janino: no lambdas, no generic type arguments.
 */
public final class ResolveLatestVersion extends Rule {
    /** From the tracker of an execution to the versions, by table, that it reads. */
    private static final Map EXECUTIONS = Collections.synchronizedMap(new WeakHashMap());
    private static final Map INJECTED = Collections.synchronizedMap(new WeakHashMap());

    /**
     * A relation.
     *
     * @param versions from a version's name, or that of the command that runs the query, null for neither, and the name
     *     of the last answer, null for none, to the same name, to a Tuple2 of a name and a plan with the relation's
     *     columns, or to the exception to throw
     * @param tracked whether `_metadata` has the fields of row tracking; a name after "tracked " asks for a plan that ends
     *     with the columns that they are made of: kept id, kept version, first id of the file, version of the file
     * @param insert takes rows and whether to overwrite
     * @param reading the options of a read of the table, in JSON
     */
    public Object of(String identity, String table, String root, long bytes, StructType schema, boolean tracked,
            scala.collection.immutable.Map options, SparkSession session, BiFunction versions, BiFunction insert,
            String reading) {
        FileFormat format = tracked ? new Tracked() : new ParquetFileFormat();
        return new Table(new Place(identity, root, bytes), schema, format, options, session, table, versions, insert,
            reading);
    }

    /** Let the optimisers of a session, and of those that share its extensions, apply the rule; once. */
    public void install(SparkSession session) throws Exception {
        org.apache.spark.sql.classic.SparkSession classic = (org.apache.spark.sql.classic.SparkSession) session;
        if (INJECTED.put(classic.extensions(), Boolean.TRUE) == null) {
            classic.extensions().injectOptimizerRule(new Builder(this));
            classic.extensions().injectPlanNormalizationRule(new Builder(new Early()));
        }
        // A session that runs already has made its list of these.
        Seq early = classic.sessionState().planNormalizationRules();
        for (int i = 0; i < early.length(); i++) {
            if (early.apply(i) instanceof Early) {
                return;
            }
        }
        java.lang.reflect.Field field =
            org.apache.spark.sql.internal.SessionState.class.getDeclaredField("planNormalizationRules");
        field.setAccessible(true);
        field.set(classic.sessionState(), early.appended(new Early()));
    }

    private static final class Builder extends AbstractFunction1 {
        private final Rule rule;

        Builder(Rule rule) {
            this.rule = rule;
        }

        public Object apply(Object session) {
            return rule;
        }
    }

    /**
     * Settles the versions before anything is optimised, and changes nothing: what contradicts the columns of a
     * relation is told before Spark draws conclusions from them, as of a column that had no nulls once.
     */
    public static final class Early extends Rule {
        public TreeNode apply(TreeNode plan) {
            look((LogicalPlan) plan, null);
            return plan;
        }

        private static Map look(LogicalPlan plan, Map execution) {
            if (isTable(plan) && table(plan).promises) {
                execution = execution == null ? execution() : execution;
                synchronized (execution) {
                    table(plan).resolve(execution);
                }
            }
            for (int i = 0; i < plan.children().length(); i++) {
                execution = look((LogicalPlan) plan.children().apply(i), execution);
            }
            for (int i = 0; i < plan.subqueries().length(); i++) {
                execution = look((LogicalPlan) plan.subqueries().apply(i), execution);
            }
            return execution;
        }
    }

    public static class Place implements FileIndex {
        private final String identity;
        private final String root;
        private final long bytes;

        Place(String identity, String root, long bytes) {
            this.identity = identity;
            this.root = root;
            this.bytes = bytes;
        }

        public Seq rootPaths() {
            VectorBuilder paths = new VectorBuilder();
            paths.addOne(new Path(root));
            return (Seq) paths.result();
        }

        public Seq listFiles(Seq partitionFilters, Seq dataFilters) {
            throw new IllegalStateException(
                "the optimiser rule ResolveLatestVersion did not run (is it in spark.sql.optimizer.excludedRules?), so no "
                + "version of " + root + " is settled; read it with the option versionAsOf");
        }

        public String[] inputFiles() {
            listFiles(null, null);
            return null;
        }

        public void refresh() {}

        public long sizeInBytes() {
            return bytes;
        }

        public StructType partitionSchema() {
            return new StructType();
        }

        public String toString() {
            return identity;
        }

        public int hashCode() {
            return identity.hashCode();
        }

        public boolean equals(Object other) {
            return other instanceof Place && ((Place) other).identity.equals(identity);
        }
    }

    /** What rows of tables with row tracking have in `_metadata`, as delta-spark names it. */
    public static final class Tracked extends ParquetFileFormat {
        static final String[] FIELDS = {"row_id", "base_row_id", "default_row_commit_version", "row_commit_version"};

        public Seq metadataSchemaFields() {
            Seq fields = super.metadataSchemaFields();
            for (int i = 0; i < FIELDS.length; i++) {
                fields = (Seq) fields.appended(new StructField(FIELDS[i], DataTypes.LongType, true, Metadata$.MODULE$.empty()));
            }
            return fields;
        }
    }

    /** Tells, as a supplier, the options of a read of its table: what statements on a view of it are about. */
    public static class Table extends HadoopFsRelation implements InsertableRelation, Supplier {
        private final transient String table;
        private final transient BiFunction versions;
        private final transient BiFunction insert;
        private final transient String reading;
        private transient Tuple2 last = null;
        private transient Tuple2 lastTracked = null;
        /** Whether a column, or a part of one, is said to have no nulls. */
        final transient boolean promises;

        Table(FileIndex place, StructType schema, FileFormat format, scala.collection.immutable.Map options,
                SparkSession session, String table, BiFunction versions, BiFunction insert, String reading) {
            super(place, new StructType(), schema, Option.empty(), format, options, session);
            this.table = table;
            this.versions = versions;
            this.insert = insert;
            this.reading = reading;
            this.promises = !schema.equals(schema.asNullable());
        }

        public Object get() {
            return reading;
        }

        public void insert(Dataset rows, boolean overwrite) {
            insert.apply(rows, overwrite ? Boolean.TRUE : Boolean.FALSE);
        }

        /** The plan of one version, which is settled here if the execution has none yet. */
        synchronized LogicalPlan resolve(Map execution) {
            Object known = last == null ? null : last._1();
            Object command = sparkSession().sparkContext().getLocalProperty("spark.pydelta.command");
            Object wanted = execution.get(table);
            Object found = versions.apply(wanted == null && command != null ? "command " + command : wanted, known);
            if (found instanceof Throwable) {
                org.apache.spark.unsafe.Platform.throwException((Throwable) found);
            }
            if (found instanceof Tuple2) {
                last = (Tuple2) found;
            }
            execution.put(table, last._1());
            return (LogicalPlan) last._2();
        }

        /** The same with the columns of row tracking. */
        synchronized LogicalPlan tracked(Map execution) {
            resolve(execution);
            Object found = versions.apply("tracked " + last._1(), lastTracked == null ? null : lastTracked._1());
            if (found instanceof Throwable) {
                org.apache.spark.unsafe.Platform.throwException((Throwable) found);
            }
            if (found instanceof Tuple2) {
                lastTracked = (Tuple2) found;
            }
            return (LogicalPlan) lastTracked._2();
        }
    }

    public TreeNode apply(TreeNode plan) {
        return names((LogicalPlan) plan) ? resolve((LogicalPlan) plan, execution()) : plan;
    }

    private static boolean isTable(LogicalPlan plan) {
        return plan instanceof LogicalRelation && ((LogicalRelation) plan).relation() instanceof Table;
    }

    private static Table table(LogicalPlan plan) {
        return (Table) ((LogicalRelation) plan).relation();
    }

    private static boolean names(LogicalPlan plan) {
        boolean found = isTable(plan);
        for (int i = 0; !found && i < plan.children().length(); i++) {
            found = names((LogicalPlan) plan.children().apply(i));
        }
        return found;
    }

    private static LogicalPlan resolve(LogicalPlan plan, Map execution) {
        if (isTable(plan)) {
            LogicalRelation relation = (LogicalRelation) plan;
            Table table = table(plan);
            int own = table.schema().length();
            boolean tracked = relation.output().length() > own && table.fileFormat() instanceof Tracked;
            synchronized (execution) {
                LogicalPlan template = tracked ? table.tracked(execution) : table.resolve(execution);
                return new Instance(relation, template, own, tracked).plan();
            }
        }
        VectorBuilder children = new VectorBuilder();
        boolean changed = false;
        for (int i = 0; i < plan.children().length(); i++) {
            LogicalPlan child = (LogicalPlan) plan.children().apply(i);
            LogicalPlan other = resolve(child, execution);
            changed = changed || other != child;
            children.addOne(other);
        }
        return changed ? (LogicalPlan) plan.withNewChildren((Seq) children.result()) : plan;
    }

    private static Map execution() {
        Option tracker = QueryPlanningTracker$.MODULE$.get();
        if (tracker.isEmpty()) {
            return new HashMap();
        }
        synchronized (EXECUTIONS) {
            Map known = (Map) EXECUTIONS.get(tracker.get());
            if (known == null) {
                known = new HashMap();
                EXECUTIONS.put(tracker.get(), known);
            }
            return known;
        }
    }

    /** The plan of a version in the place of one use of a relation: with its columns, under its expression ids. */
    private static final class Instance {
        private final LogicalRelation use;
        private final LogicalPlan template;
        private final int own;
        private final boolean tracked;
        private final Map attributes = new HashMap();
        private Attribute metadata = null;

        Instance(LogicalRelation use, LogicalPlan template, int own, boolean tracked) {
            this.use = use;
            this.template = template;
            this.own = own;
            this.tracked = tracked;
        }

        LogicalPlan plan() {
            Seq wanted = use.output();
            LogicalPlan found = renewed(template, wanted.length() > own);
            VectorBuilder columns = new VectorBuilder();
            for (int i = 0; i < wanted.length(); i++) {
                Attribute name = (Attribute) wanted.apply(i);
                Expression column = i < own ? (Expression) found.output().apply(i) : hidden(name, found);
                columns.addOne(new Alias(column, name.name(), name.exprId(), name.qualifier(),
                    new scala.Some(name.metadata()), (Seq) new VectorBuilder().result()));
            }
            return new Project((Seq) columns.result(), found);
        }

        /** Spark's hidden column, with the fields of row tracking where the relation has them. */
        private Expression hidden(Attribute use, LogicalPlan found) {
            if (!tracked) {
                return (Expression) metadata;
            }
            Expression[] columns = new Expression[4];
            for (int i = 0; i < 4; i++) {
                columns[i] = (Expression) found.output().apply(own + i);
            }
            StructType known = (StructType) metadata.dataType();
            Expression row = null;
            VectorBuilder fields = new VectorBuilder();
            for (int i = 0; i < known.length(); i++) {
                Expression field = new GetStructField((Expression) metadata, i, Option.empty());
                row = "row_index".equals(known.fields()[i].name()) ? field : row;
                fields.addOne(Literal$.MODULE$.apply(known.fields()[i].name())).addOne(field);
            }
            Expression[] values = {
                either(columns[0], new Add(columns[2], row)), columns[2], columns[3],
                either(columns[1], columns[3])
            };
            for (int i = 0; i < 4; i++) {
                fields.addOne(Literal$.MODULE$.apply(Tracked.FIELDS[i])).addOne(values[i]);
            }
            return new CreateNamedStruct((Seq) fields.result());
        }

        private static Expression either(Expression first, Expression second) {
            return new Coalesce((Seq) new VectorBuilder().addOne(first).addOne(second).result());
        }

        /** The same plan with other expression ids, as one query may use it several times. */
        private LogicalPlan renewed(LogicalPlan plan, boolean withMetadata) {
            if (plan instanceof Filter) {
                LogicalPlan child = renewed(((Filter) plan).child(), withMetadata);
                return new Filter(rewritten(((Filter) plan).condition()), child);
            }
            if (plan instanceof Project) {
                LogicalPlan child = renewed(((Project) plan).child(), withMetadata);
                Seq projection = ((Project) plan).projectList();
                VectorBuilder columns = new VectorBuilder();
                for (int i = 0; i < projection.length(); i++) {
                    NamedExpression column = (NamedExpression) projection.apply(i);
                    NamedExpression other = (NamedExpression) rewritten((Expression) column);
                    if (other instanceof Alias) {
                        other = ((Alias) other).newInstance();
                        attributes.put(column.exprId(), other.toAttribute());
                    }
                    columns.addOne(other);
                }
                if (withMetadata) {
                    columns.addOne(metadata);
                }
                return new Project((Seq) columns.result(), child);
            }
            return leaf(plan, withMetadata);
        }

        private LogicalPlan leaf(LogicalPlan plan, boolean withMetadata) {
            LogicalPlan fresh = (LogicalPlan) ((MultiInstanceRelation) plan).newInstance();
            for (int i = 0; i < plan.output().length(); i++) {
                attributes.put(((Attribute) plan.output().apply(i)).exprId(), fresh.output().apply(i));
            }
            if (withMetadata) {
                metadata = metadataOf(fresh);
            }
            if (withMetadata && metadata == null) {
                fresh = ((LogicalRelation) fresh).withMetadataColumns();
                metadata = metadataOf(fresh);
            }
            return fresh;
        }

        /** Spark's hidden column of a scan; null where nothing has asked for it yet. */
        private static Attribute metadataOf(LogicalPlan scan) {
            for (int i = 0; i < scan.output().length(); i++) {
                Attribute column = (Attribute) scan.output().apply(i);
                if (column.metadata().contains("__metadata_col")) {
                    return column;
                }
            }
            return null;
        }

        private Expression rewritten(Expression expression) {
            if (expression instanceof AttributeReference) {
                Object other = attributes.get(((AttributeReference) expression).exprId());
                return other == null ? expression : (Expression) other;
            }
            VectorBuilder children = new VectorBuilder();
            boolean changed = false;
            for (int i = 0; i < expression.children().length(); i++) {
                Expression child = (Expression) expression.children().apply(i);
                Expression other = rewritten(child);
                changed = changed || other != child;
                children.addOne(other);
            }
            return changed ? (Expression) expression.withNewChildren((Seq) children.result()) : expression;
        }
    }
}
