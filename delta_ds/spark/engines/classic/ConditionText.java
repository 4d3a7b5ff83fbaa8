import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.PrettyAttribute;
import scala.collection.immutable.VectorBuilder;

/** Resolved conditions as SQL that reads back as the same. */
public class ConditionText {
    /** Names are quoted, all of them: Spark leaves words bare, also a column called `true` or `null`. */
    public String sql(Expression condition) {
        return quoted(condition).sql();
    }

    private static Expression quoted(Expression expression) {
        if (expression instanceof AttributeReference) {
            String name = "`" + ((AttributeReference) expression).name().replace("`", "``") + "`";
            return new PrettyAttribute(name, expression.dataType());
        }
        if (expression.children().isEmpty()) return expression;
        VectorBuilder children = new VectorBuilder();
        for (int i = 0; i < expression.children().length(); i++) {
            children.addOne(quoted((Expression) expression.children().apply(i)));
        }
        return (Expression) expression.withNewChildren((scala.collection.immutable.Seq) children.result());
    }
}
