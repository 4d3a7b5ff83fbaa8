import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.catalyst.analysis.FunctionRegistry$;
import org.apache.spark.sql.catalyst.analysis.UnresolvedFunction;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.CaseWhen;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.CheckOverflowInTableInsert;
import org.apache.spark.sql.catalyst.expressions.EvalMode$;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.classic.Dataset$;
import org.apache.spark.sql.classic.ExpressionUtils$;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Metadata$;
import scala.Some;
import scala.Tuple2;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;
import scala.collection.immutable.VectorBuilder;

/** Selects any number of columns in one call from Python, where each of them would be tens of calls. */
public class Projection {
    /**
     * A Dataset of the plan's columns by their positions, under other names, and of others.
     *
     * @param plan analyzed
     * @param columns JSON: for each column its position in the plan's output, its name and its metadata as JSON again;
     *     without a name it stays what it is; position -1: the next of `others`, a Column that has a name; position -2:
     *     the next of `others`, an Expression, cast to the type that stands as JSON in place of the metadata; position
     *     -3: a column behind checks, its position in place of the name and the rest in place of the metadata: for each
     *     check whether a row breaks it, and what raises then, as SQL text, or null for the next of `others`; position
     *     -4: a column cast as INSERT casts it, its position in place of the name and in place of the metadata its name,
     *     the type as JSON and whether values that do not fit are errors whatever the session says
     */
    public Object select(SparkSession session, LogicalPlan plan, String columns, List others) throws Exception {
        Object[][] wanted = (Object[][]) new ObjectMapper().readValue(columns, Object[][].class);
        Expression[] output = new Expression[plan.output().size()];
        Iterator attributes = plan.output().iterator();
        for (int i = 0; i < output.length; i++) output[i] = (Expression) attributes.next();
        Seq none = (Seq) scala.collection.immutable.Nil$.MODULE$;
        VectorBuilder selected = new VectorBuilder();
        int other = 0;
        for (int i = 0; i < wanted.length; i++) {
            int position = ((Integer) wanted[i][0]).intValue();
            if (position == -1) {
                selected.addOne((NamedExpression) session.expression((Column) others.get(other++)));
            } else if (position == -2) {
                Column value = ExpressionUtils$.MODULE$.column((Expression) others.get(other++));
                value = value.cast(DataType.fromJson((String) wanted[i][2]));
                selected.addOne(named(session.expression(value), (String) wanted[i][1]));
            } else if (position == -3) {
                VectorBuilder branches = new VectorBuilder();
                for (java.util.Iterator checks = ((List) wanted[i][2]).iterator(); checks.hasNext();) {
                    List check = (List) checks.next();
                    Expression[] parts = new Expression[2];
                    for (int n = 0; n < 2; n++) {
                        String text = (String) check.get(n);
                        parts[n] = text == null ? session.expression((Column) others.get(other++))
                            : session.sessionState().sqlParser().parseExpression(text);
                    }
                    branches.addOne(new Tuple2(parts[0], parts[1]));
                }
                Expression carrier = output[((Integer) wanted[i][1]).intValue()];
                CaseWhen guarded = new CaseWhen((Seq) branches.result(), new Some(carrier));
                selected.addOne(named(guarded, ((NamedExpression) carrier).name()));
            } else if (position == -4) {
                List said = (List) wanted[i][2];
                Expression from = output[((Integer) wanted[i][1]).intValue()];
                DataType to = DataType.fromJson((String) said.get(1));
                Some zone = new Some(session.sessionState().conf().sessionLocalTimeZone());
                String name = (String) said.get(0);
                if (Boolean.TRUE.equals(said.get(2))) {
                    Expression cast = new Cast(from, to, zone, EvalMode$.MODULE$.ANSI());
                    selected.addOne(named(new CheckOverflowInTableInsert(cast, name), name));
                } else {
                    selected.addOne(named(new Cast(from, to, zone, EvalMode$.MODULE$.LEGACY()), name));
                }
            } else if (wanted[i][1] == null) {
                selected.addOne(output[position]);
            } else {
                selected.addOne(new Alias(output[position], (String) wanted[i][1], NamedExpression$.MODULE$.newExprId(),
                    none, new Some(Metadata$.MODULE$.fromJson((String) wanted[i][2])), none));
            }
        }
        return Dataset$.MODULE$.ofRows(session, new Project((Seq) selected.result(), plan));
    }

    private static Alias named(Expression value, String name) {
        Seq none = (Seq) scala.collection.immutable.Nil$.MODULE$;
        return new Alias(value, name, NamedExpression$.MODULE$.newExprId(), none, new Some(Metadata$.MODULE$.empty()), none);
    }

    /**
     * The expressions of SQL texts over the columns of an analyzed plan, if all can be had and each is for one row and
     * the same each time; null: one is not, or is no expression, and who asks has to find which.
     *
     * @return a list of Expression
     */
    public Object resolve(SparkSession session, LogicalPlan plan, List texts) {
        VectorBuilder selected = new VectorBuilder();
        try {
            for (int i = 0; i < texts.size(); i++) {
                Expression parsed = session.sessionState().sqlParser().parseExpression((String) texts.get(i));
                if (!isBuiltin(parsed)) return null;
                selected.addOne(named(parsed, "value" + i));
            }
            LogicalPlan found = Dataset$.MODULE$.ofRows(session, new Project((Seq) selected.result(), plan)).queryExecution().analyzed();
            if (!(found instanceof Project) || !((Project) found).child().fastEquals(plan)) return null;
            List out = new ArrayList();
            Seq resolved = ((Project) found).projectList();
            for (int i = 0; i < resolved.size(); i++) {
                Expression one = ((Alias) resolved.apply(i)).child();
                if (SubqueryExpression$.MODULE$.hasSubquery(one) || !one.deterministic()) return null;
                out.add(one);
            }
            return out;
        } catch (Exception anything) {
            return null; // told by whoever looks at them one by one
        }
    }

    private static boolean isBuiltin(Expression parsed) {
        if (parsed instanceof UnresolvedFunction) {
            Seq name = ((UnresolvedFunction) parsed).nameParts();
            String function = ((String) name.last()).toLowerCase(Locale.ROOT);
            if (name.size() != 1 || !FunctionRegistry$.MODULE$.expressions().contains(function)) return false;
        }
        Seq children = parsed.children();
        for (int i = 0; i < children.size(); i++) {
            if (!isBuiltin((Expression) children.apply(i))) return false;
        }
        return true;
    }
}
