import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.util.List;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.classic.Dataset$;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.types.Metadata$;
import scala.Some;
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
     *     without a name it stays what it is; position -1: the next of `others`, which has a name
     */
    public Object select(SparkSession session, LogicalPlan plan, String columns, List others) throws IOException {
        Object[][] wanted = (Object[][]) new ObjectMapper().readValue(columns, Object[][].class);
        Expression[] output = new Expression[plan.output().size()];
        Iterator attributes = plan.output().iterator();
        for (int i = 0; i < output.length; i++) output[i] = (Expression) attributes.next();
        Seq none = (Seq) scala.collection.immutable.Nil$.MODULE$;
        VectorBuilder selected = new VectorBuilder();
        int other = 0;
        for (int i = 0; i < wanted.length; i++) {
            int position = ((Integer) wanted[i][0]).intValue();
            if (position < 0) {
                selected.addOne((NamedExpression) session.expression((Column) others.get(other++)));
            } else if (wanted[i][1] == null) {
                selected.addOne(output[position]);
            } else {
                selected.addOne(new Alias(output[position], (String) wanted[i][1], NamedExpression$.MODULE$.newExprId(),
                    none, new Some(Metadata$.MODULE$.fromJson((String) wanted[i][2])), none));
            }
        }
        return Dataset$.MODULE$.ofRows(session, new Project((Seq) selected.result(), plan));
    }
}
