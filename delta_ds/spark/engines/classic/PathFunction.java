import org.apache.spark.QueryContext;
import org.apache.spark.SparkException;
import org.apache.spark.sql.AnalysisException;
import org.apache.spark.sql.catalyst.trees.Origin;

// A function for Spark's analyzer whose body is elsewhere.
public class PathFunction {
    // An exception that the body returns is thrown: a Java proxy could not throw Spark's own, which are checked and
    // not declared by Function1.
    public scala.Function1 of(final java.util.function.Function body) {
        return new scala.runtime.AbstractFunction1() {
            public Object apply(Object arguments) {
                Object found = body.apply(arguments);
                if (found instanceof Throwable) org.apache.spark.unsafe.Platform.throwException((Throwable) found);
                return found;
            }
        };
    }

    // Without a query context: where there is one, pyspark looks the condition up among Spark's own and fails.
    public AnalysisException error(String text, String condition, scala.collection.immutable.Map parameters) {
        scala.Option none = scala.Option.empty();
        return new AnalysisException(
                text, none, none, none, new scala.Some(condition), parameters, new QueryContext[0]) {
            public AnalysisException withPosition(Origin origin) {
                return this;
            }
        };
    }

    // Clients that know nothing of this package see its condition by Spark's own means. Spark would look the SQLSTATE up.
    public SparkException failure(
            String text, String condition, final String state, scala.collection.immutable.Map parameters) {
        return new SparkException(text, null, new scala.Some(condition), parameters, new QueryContext[0]) {
            public String getSqlState() {
                return state;
            }
        };
    }
}
