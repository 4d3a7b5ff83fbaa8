package pydelta;

import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.execution.streaming.Sink;

/** What a query is started with by a path, until the rule Streams puts the table in its place. */
public final class StreamSink implements Sink {
    final StreamTable table;

    StreamSink(StreamTable table) {
        this.table = table;
    }

    public void addBatch(long batch, Dataset rows) {
        throw new IllegalStateException("a stream into " + table + " was not taken over: the rule pydelta.Streams did not run");
    }

    public String toString() { return table.toString(); }
}
