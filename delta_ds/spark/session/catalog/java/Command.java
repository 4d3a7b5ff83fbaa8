package pydelta;

import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connector.ExternalCommandRunner;
import org.apache.spark.sql.execution.command.ExternalCommandExecutor;
import scala.collection.Iterator;
import scala.collection.immutable.Map;
import scala.collection.immutable.Map$;
import scala.collection.immutable.Seq;
import scala.collection.immutable.VectorBuilder;

/** A statement that Python runs, once, when Spark runs commands; EXPLAIN shows it and runs nothing. */
public final class Command extends ExternalCommandExecutor {
    static final String NO_COLUMNS = "{\"type\":\"struct\",\"fields\":[]}";

    public Command(ExternalCommandRunner statement, String kind, Map options) {
        super(statement, kind, options);
    }

    /** @param schema of the answer, in JSON */
    public static Command of(String kind, Object what, String schema) {
        return new Command(new Statement(what, schema), kind, (Map) Map$.MODULE$.empty());
    }

    public Seq output() { return ((Statement) runner()).columns; }

    public Seq run(SparkSession session) {
        Object answer = Python.ask("run", session, new Object[] {command(), ((Statement) runner()).what});
        VectorBuilder rows = new VectorBuilder();
        if (answer instanceof String) {
            rows.addOne(RowFactory.create(new Object[] {answer}));
        } else if (answer != null) {
            Object[] found = (Object[]) ((Dataset) answer).collect();
            for (int i = 0; i < found.length; i++) rows.addOne(found[i]);
        }
        return (Seq) rows.result();
    }

    public String nodeName() { return "Delta " + command(); }

    public Iterator stringArgs() {
        VectorBuilder texts = new VectorBuilder();
        String explanation = ((Statement) runner()).explained(command());
        if (explanation != null) texts.addOne(explanation);
        return ((Seq) texts.result()).iterator();
    }
}
