package pydelta;

import java.util.Map;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.expressions.Transform;

/** A table that comes to be with its rows: CREATE and REPLACE ... AS SELECT, and REPLACE without rows. */
public final class NewTable extends DeltaTable implements StagedTable {
    private final Definition definition;
    private boolean done = false;

    NewTable(Definition definition) {
        super(definition.ident.toString(), null, null, definition.schema, new Transform[0], definition.properties);
        this.definition = definition;
    }

    public Definition definition() { return definition; }

    /** Told by the command that has written the rows, and made the table with them. */
    public void done() { done = true; }

    public void commitStagedChanges() {
        if (!done) {
            Python.ask("create", new Object[] {definition, null});
        }
    }

    // Nothing is there before the one commit.
    public void abortStagedChanges() {}
}
