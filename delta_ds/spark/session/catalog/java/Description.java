package pydelta;

import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.types.StructType;

/** What DESCRIBE EXTENDED asks a table for: a scan that tells its columns, and is never run. */
public final class Description implements ScanBuilder, Scan {
    private final StructType schema;

    Description(StructType schema) {
        this.schema = schema;
    }

    public Scan build() { return this; }
    public StructType readSchema() { return schema; }

    public Batch toBatch() {
        throw new IllegalStateException(
            "tables of Delta are read in sessions that delta_ds.register(spark) has prepared, and this is none");
    }
}
