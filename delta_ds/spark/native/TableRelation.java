import java.util.function.BiFunction;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.catalog.BucketSpec;
import org.apache.spark.sql.execution.datasources.FileFormat;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.sources.InsertableRelation;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.collection.immutable.Map;

/**
 * Makes relations over files that take INSERT INTO by a function of their own. Spark would write into the folder of any
 * other relation over files, past the log, and empty it first for INSERT OVERWRITE.
 */
public class TableRelation {
    public Object of(FileIndex location, StructType partitionSchema, StructType dataSchema, FileFormat format,
            Map options, SparkSession session, BiFunction insert) {
        return new Insertable(location, partitionSchema, dataSchema, format, options, session, insert);
    }

    public static class Insertable extends HadoopFsRelation implements InsertableRelation {
        private final transient BiFunction insert;

        public Insertable(FileIndex location, StructType partitionSchema, StructType dataSchema, FileFormat format,
                Map options, SparkSession session, BiFunction insert) {
            super(location, partitionSchema, dataSchema, Option.empty(), format, options, session);
            this.insert = insert;
        }

        public void insert(Dataset rows, boolean overwrite) {
            insert.apply(rows, overwrite ? Boolean.TRUE : Boolean.FALSE);
        }
    }
}
