package pydelta;

import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.catalyst.types.DataTypeUtils;
import org.apache.spark.sql.connector.ExternalCommandRunner;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.collection.immutable.Seq;

/** What a command runs, in one object, as Spark copies commands by the constructor of their case class. */
public final class Statement implements ExternalCommandRunner {
    private static final List CHANGES = Arrays.asList(new String[] {"DELETE", "UPDATE", "MERGE"});
    private static final String EXPLAIN = "org.apache.spark.sql.execution.command.ExplainCommand";
    private String explanation;
    final Object what;
    final Seq columns;

    Statement(Object what, String schema) {
        this.what = what;
        this.columns = (Seq) DataTypeUtils.toAttributes((StructType) StructType.fromJson(schema));
    }

    /** What EXPLAIN tells of a change of rows; null for other statements, and where nobody explains. */
    synchronized String explained(String command) {
        // Spark shows a plan for itself too: every statement that runs is told to listeners with its text.
        if (explanation == null && CHANGES.contains(command) && Calls.areWithin(EXPLAIN)) {
            explanation = (String) Python.ask("explain", new Object[] {command, what});
        }
        return explanation;
    }

    public String[] executeCommand(String command, CaseInsensitiveStringMap options) {
        throw new UnsupportedOperationException(command);
    }
}
