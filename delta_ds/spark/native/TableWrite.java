import java.util.Iterator;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.mapreduce.Job;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.CommandExecutionMode;
import org.apache.spark.sql.execution.datasources.InsertIntoHadoopFsRelationCommand;
import org.apache.spark.sql.execution.datasources.OutputWriterFactory;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.collection.immutable.VectorBuilder;

/**
 * Writes a plan into a fresh folder as `DataFrameWriter.parquet` does, but with settings of the files that are not the
 * session's. A copy of the session with other settings would not do: observations and listeners belong to the session.
 */
public class TableWrite {
    /**
     * The last columns of the plan, as many as said, are those of partitions. Settings are by name; those of a task
     * are looked up by tasks in their own properties, the others in Hadoop's configuration of the job.
     */
    public void write(org.apache.spark.sql.classic.SparkSession session, LogicalPlan query, String folder, int partitions,
            scala.collection.immutable.Map options, Map ofJob, Map ofTasks) {
        Seq output = query.output();
        VectorBuilder names = new VectorBuilder();
        for (int i = 0; i < output.size(); i++) {
            names.addOne(((Attribute) output.apply(i)).name());
        }
        InsertIntoHadoopFsRelationCommand command = new InsertIntoHadoopFsRelationCommand(new Path(folder),
                (scala.collection.immutable.Map) scala.collection.immutable.Map$.MODULE$.empty(), false,
                (Seq) output.takeRight(partitions), Option.empty(), new Format(ofJob, ofTasks), options, query,
                SaveMode.ErrorIfExists, Option.empty(), Option.empty(), names.result());
        session.sessionState().executePlan(command, CommandExecutionMode.ALL()).assertCommandExecuted();
    }

    public static class Format extends ParquetFileFormat {
        private final Map ofJob;
        private final Map ofTasks;

        public Format(Map ofJob, Map ofTasks) {
            this.ofJob = ofJob;
            this.ofTasks = ofTasks;
        }

        public OutputWriterFactory prepareWrite(SparkSession session, Job job, scala.collection.immutable.Map options,
                StructType schema) {
            OutputWriterFactory made = super.prepareWrite(session, job, options, schema);
            Configuration configuration = job.getConfiguration();
            for (Iterator all = ofJob.entrySet().iterator(); all.hasNext();) {
                Map.Entry one = (Map.Entry) all.next();
                configuration.set((String) one.getKey(), (String) one.getValue());
            }
            // Spark has put the session's settings there for this query, and puts back what was before.
            for (Iterator all = ofTasks.entrySet().iterator(); all.hasNext();) {
                Map.Entry one = (Map.Entry) all.next();
                session.sparkContext().setLocalProperty((String) one.getKey(), (String) one.getValue());
            }
            return made;
        }
    }
}
