import java.util.function.Supplier;
import org.apache.spark.SparkException;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.execution.datasources.FileFormat;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.sources.InsertableRelation;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.Platform;
import scala.Option;
import scala.collection.immutable.Map;

/**
 * Makes relations over the files of one version, which refuse INSERT INTO. Spark would write into the folder of any other
 * relation over files, past the log, and empty it first for INSERT OVERWRITE.
 */
public class TableRelation {
    /** The last arguments are what the refusal says, and the options of a read of the version, in JSON. */
    public Object of(FileIndex location, StructType partitionSchema, StructType dataSchema, FileFormat format,
            Map options, SparkSession session, String refusal, String reading) {
        return new Version(location, partitionSchema, dataSchema, format, options, session, refusal, reading);
    }

    public static class Version extends HadoopFsRelation implements InsertableRelation, Supplier {
        private final transient String refusal;
        private final transient String reading;

        public Version(FileIndex location, StructType partitionSchema, StructType dataSchema, FileFormat format,
                Map options, SparkSession session, String refusal, String reading) {
            super(location, partitionSchema, dataSchema, Option.empty(), format, options, session);
            this.refusal = refusal;
            this.reading = reading;
        }

        public Object get() {
            return reading;
        }

        public void insert(Dataset rows, boolean overwrite) {
            Platform.throwException(new SparkException(refusal));
        }
    }
}
