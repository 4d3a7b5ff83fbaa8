package io.delta.tables;

import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.util.QuotingUtils;

/**
 * What programs in Python ask of delta-spark's class of this name through the JVM: a table by path or by name, and what
 * is known of it. Each is a statement of SQL in the session that is given.
 */
public final class DeltaTable {
    private final SparkSession session;
    private final String name;

    private DeltaTable(SparkSession session, String name) {
        this.session = session;
        this.name = name;
        history(1); // It fails where there is no Delta table.
    }

    public static DeltaTable forPath(SparkSession session, String path) {
        return new DeltaTable(session, "delta." + QuotingUtils.quoteIdentifier(path));
    }

    public static DeltaTable forName(SparkSession any, String name) throws Exception {
        org.apache.spark.sql.classic.SparkSession session = (org.apache.spark.sql.classic.SparkSession) any;
        return new DeltaTable(any, QuotingUtils.quoteNameParts(
            session.sessionState().sqlParser().parseMultipartIdentifier(name)));
    }

    public Dataset history() { return session.sql("DESCRIBE HISTORY " + name); }

    public Dataset history(int limit) { return session.sql("DESCRIBE HISTORY " + name + " LIMIT " + limit); }

    public Dataset detail() { return session.sql("DESCRIBE DETAIL " + name); }

    public Dataset toDF() { return session.sql("SELECT * FROM " + name); }
}
