import java.lang.reflect.Field;
import java.util.Optional;
import org.apache.spark.connect.proto.Project;
import org.apache.spark.sql.connect.planner.SparkConnectPlanner;
import org.apache.spark.sql.connect.plugin.RelationPlugin;
import org.sparkproject.connect.protobuf.Any;
import scala.collection.immutable.Seq;
import scala.collection.immutable.VectorBuilder;

/**
 * Calls of clients of Spark Connect: a relation of our own, which becomes a command that Python runs once, in the session
 * of the client. Its content is a projection: a literal that says what is called, the expressions that it speaks of by
 * their numbers, and above what they stand, if anything.
 */
public class ClientCalls implements RelationPlugin {
    private static final String TYPE = "type.googleapis.com/delta_ds.Call";
    private static final String COLUMNS = "{\"type\":\"struct\",\"fields\":[{\"name\":\"answer\",\"type\":\"string\","
        + "\"nullable\":true,\"metadata\":{}}]}";

    /** Have the server of this JVM ask here: Spark reads the setting for that once, before there is such a class. */
    public void serve() throws Exception {
        Class registry = Class.forName("org.apache.spark.sql.connect.plugin.SparkConnectPluginRegistry$", true,
            RelationPlugin.class.getClassLoader());
        Object instance = registry.getField("MODULE$").get(null);
        registry.getMethod("relationRegistry", new Class[0]).invoke(instance, new Object[0]);
        Field known = registry.getDeclaredField("relationRegistryCache");
        known.setAccessible(true);
        VectorBuilder all = new VectorBuilder();
        Seq before = (Seq) known.get(instance);
        for (int i = 0; i < before.length(); i++) {
            if (before.apply(i) == this) return;
            all.addOne(before.apply(i));
        }
        all.addOne(this);
        known.set(instance, all.result());
    }

    public Optional transform(byte[] relation, SparkConnectPlanner planner) {
        Any call;
        Project content;
        try {
            call = Any.parseFrom(relation);
            if (!TYPE.equals(call.getTypeUrl())) return Optional.empty();
            content = Project.parseFrom(call.getValue());
        } catch (Exception error) {
            throw new IllegalArgumentException(error);
        }
        Object[] expressions = new Object[content.getExpressionsCount() - 1];
        for (int i = 0; i < expressions.length; i++) {
            expressions[i] = planner.transformExpression(content.getExpressions(i + 1));
        }
        Object rows = content.hasInput() ? planner.transformRelation(content.getInput()) : null;
        String what = content.getExpressions(0).getLiteral().getString();
        return Optional.of(pydelta.Command.of("CALL", new Object[] {what, expressions, rows}, COLUMNS));
    }
}
