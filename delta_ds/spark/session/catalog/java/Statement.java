package pydelta;

import org.apache.spark.sql.catalyst.types.DataTypeUtils;
import org.apache.spark.sql.connector.ExternalCommandRunner;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.collection.immutable.Seq;

/** What a command runs, in one object, as Spark copies commands by the constructor of their case class. */
public final class Statement implements ExternalCommandRunner {
    final Object what;
    final Seq columns;

    Statement(Object what, String schema) {
        this.what = what;
        this.columns = (Seq) DataTypeUtils.toAttributes((StructType) StructType.fromJson(schema));
    }

    public String[] executeCommand(String command, CaseInsensitiveStringMap options) {
        throw new UnsupportedOperationException(command);
    }
}
