package pydelta;

import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import scala.collection.immutable.Seq;
import scala.collection.immutable.VectorBuilder;

/** Columns under the full name of their table, in expressions that are not resolved. */
public final class Qualifiers {
    /** `schema`.`table`.`column` as `table`.`column`, by which a target without alias is known. */
    public static Expression shortened(Expression expression, Seq qualifier, String table) {
        if (expression instanceof UnresolvedAttribute) {
            Seq parts = ((UnresolvedAttribute) expression).nameParts();
            for (int start = 0; start < qualifier.length(); start++) {
                int depth = qualifier.length() - start;
                if (parts.length() > depth + 1 && matches(parts, qualifier, start, table)) {
                    return new UnresolvedAttribute((Seq) parts.drop(depth));
                }
            }
            return expression;
        }
        VectorBuilder children = new VectorBuilder();
        boolean changed = false;
        for (int i = 0; i < expression.children().length(); i++) {
            Expression child = (Expression) expression.children().apply(i);
            Expression other = shortened(child, qualifier, table);
            changed = changed || other != child;
            children.addOne(other);
        }
        return changed ? (Expression) expression.withNewChildren((Seq) children.result()) : expression;
    }

    private static boolean matches(Seq parts, Seq qualifier, int start, String table) {
        int depth = qualifier.length() - start;
        for (int i = 0; i < depth; i++) {
            if (!((String) parts.apply(i)).equalsIgnoreCase((String) qualifier.apply(start + i))) return false;
        }
        return ((String) parts.apply(depth)).equalsIgnoreCase(table);
    }
}
