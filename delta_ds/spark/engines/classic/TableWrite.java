import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.lib.output.NullOutputFormat;
import org.apache.spark.Success$;
import org.apache.spark.scheduler.LiveListenerBus;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.apache.spark.scheduler.SparkListenerJobStart;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.CommandExecutionMode;
import org.apache.spark.sql.execution.datasources.InsertIntoHadoopFsRelationCommand;
import org.apache.spark.sql.execution.datasources.OutputWriterFactory;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.collection.immutable.VectorBuilder;

/**
 * Writes a plan into a fresh folder as `DataFrameWriter.parquet` does, but with settings of the files that are not the
 * session's. A copy of the session with other settings would not do: observations and listeners belong to the session.
 *
 * Every attempt of a task writes its files where they stay, under names of its own: nothing is renamed, which object
 * stores do by copying. Which attempts count is known from the events of the scheduler.
 */
public class TableWrite {
    private static final String PROTOCOL =
        "org.apache.spark.sql.execution.datasources.SQLHadoopMapReduceCommitProtocol";

    /**
     * The last columns of the plan, as many as said, are those of partitions. Settings are by name; those of a task
     * are looked up by tasks in their own properties, the others in Hadoop's configuration of the job. What names of
     * columns begin with is taken off in the files where it is `copy`.
     *
     * @return how many rows were written, and the attempts whose files count, each as stage, task and the number that the
     *     names of its files hold, with a blank behind each; null where the session has a commit protocol of its own, which sees to it that no other files are there
     */
    public String write(org.apache.spark.sql.classic.SparkSession session, LogicalPlan query, String folder, int partitions,
            scala.collection.immutable.Map options, Map ofJob, Map ofTasks, String copy)
            throws InterruptedException {
        Seq output = query.output();
        VectorBuilder names = new VectorBuilder();
        for (int i = 0; i < output.size(); i++) {
            names.addOne(((Attribute) output.apply(i)).name());
        }
        boolean direct = session.sessionState().conf().fileCommitProtocolClass().equals(PROTOCOL);
        InsertIntoHadoopFsRelationCommand command = new InsertIntoHadoopFsRelationCommand(new Path(folder),
                (scala.collection.immutable.Map) scala.collection.immutable.Map$.MODULE$.empty(), false,
                (Seq) output.takeRight(partitions), Option.empty(), new Format(direct, ofJob, ofTasks, copy), options, query,
                SaveMode.ErrorIfExists, Option.empty(), Option.empty(), names.result());
        if (!direct) {
            session.sessionState().executePlan(command, CommandExecutionMode.ALL()).assertCommandExecuted();
            return null;
        }
        Attempts attempts = new Attempts();
        // A queue of its own: no listener of the user's can hold it up.
        session.sparkContext().listenerBus().addToQueue(attempts, "pydelta");
        session.sparkContext().setLocalProperty(Attempts.MARK, attempts.mark);
        try {
            session.sessionState().executePlan(command, CommandExecutionMode.ALL()).assertCommandExecuted();
            // Behind the events of the write, as each queue keeps their order.
            session.sparkContext().listenerBus().post(attempts.end);
            return attempts.successful();
        } finally {
            session.sparkContext().setLocalProperty(Attempts.MARK, null);
            attempts.leave(session.sparkContext().listenerBus());
        }
    }

    /** The attempts of tasks that the scheduler took: of each task the first that succeeded. */
    public static class Attempts extends SparkListener {
        private static final long MOST_SECONDS = 60;
        static final String MARK = "pydelta.write";
        final String mark = UUID.randomUUID().toString();
        private final Set stages = new HashSet();
        private final Map winners = new HashMap();
        private long rows;
        private final CountDownLatch ended = new CountDownLatch(1);
        final End end = new End();

        public synchronized void onJobStart(SparkListenerJobStart event) {
            if (event.properties() == null || !mark.equals(event.properties().getProperty(MARK))) return;
            for (scala.collection.Iterator all = event.stageIds().iterator(); all.hasNext();) stages.add(all.next());
        }

        public synchronized void onTaskEnd(SparkListenerTaskEnd event) {
            if (event.reason() != Success$.MODULE$ || !stages.contains(Integer.valueOf(event.stageId()))) return;
            String task = event.stageId() + "_" + event.taskInfo().partitionId();
            if (winners.containsKey(task)) return;
            winners.put(task, Integer.valueOf((int) event.taskInfo().taskId() & Integer.MAX_VALUE));
            rows += event.taskMetrics().outputMetrics().recordsWritten();
        }

        public void onOtherEvent(SparkListenerEvent event) {
            if (event == end) ended.countDown();
        }

        /**
         * In a thread that nobody interrupts, as a stream does that is stopped: in Spark 4.1 the queue would stay,
         * hear nothing of the next write, and hold up whoever wants to remove a listener.
         */
        public void leave(final LiveListenerBus bus) {
            final Attempts leaving = this;
            Thread thread = new Thread("pydelta-listener") {
                public void run() {
                    bus.removeListener(leaving);
                }
            };
            thread.setDaemon(true);
            thread.start();
        }

        String successful() throws InterruptedException {
            if (!ended.await(MOST_SECONDS, TimeUnit.SECONDS)) {
                throw new IllegalStateException("Spark's scheduler has not told which tasks succeeded");
            }
            StringBuilder out = new StringBuilder();
            synchronized (this) {
                out.append(rows).append(' ');
                for (Iterator all = winners.entrySet().iterator(); all.hasNext();) {
                    Map.Entry one = (Map.Entry) all.next();
                    out.append(one.getKey()).append('_').append(one.getValue()).append(' ');
                }
            }
            return out.toString();
        }
    }

    /** Tells a listener that what it was made for is over; nobody else looks at it. */
    public static class End implements SparkListenerEvent {
        public boolean logEvent() {
            return false;
        }
    }

    public static class Format extends ParquetFileFormat {
        private final boolean direct;
        private final Map ofJob;
        private final Map ofTasks;
        private final String copy;

        public Format(boolean direct, Map ofJob, Map ofTasks, String copy) {
            this.direct = direct;
            this.copy = copy;
            this.ofJob = ofJob;
            this.ofTasks = ofTasks;
        }

        private StructType named(StructType schema) {
            StructField[] fields = (StructField[]) schema.fields().clone();
            for (int i = 0; i < fields.length; i++) {
                StructField field = fields[i];
                if (!field.name().startsWith(copy)) continue;
                fields[i] = new StructField(field.name().substring(copy.length()), field.dataType(), field.nullable(), field.metadata());
            }
            return new StructType(fields);
        }

        public OutputWriterFactory prepareWrite(SparkSession session, Job job, scala.collection.immutable.Map options,
                StructType schema) {
            OutputWriterFactory made = super.prepareWrite(session, job, options, named(schema));
            Configuration configuration = job.getConfiguration();
            for (Iterator all = ofJob.entrySet().iterator(); all.hasNext();) {
                Map.Entry one = (Map.Entry) all.next();
                configuration.set((String) one.getKey(), (String) one.getValue());
            }
            if (direct) {
                // A committer that does nothing: what Spark's protocol writes for it lies where it stays.
                configuration.unset("spark.sql.sources.outputCommitterClass");
                job.setOutputFormatClass(NullOutputFormat.class);
                // Without it all attempts of a task would write one and the same name. Tasks put in what it stands for.
                configuration.set("mapreduce.output.basename", "part-${mapreduce.task.attempt.id}");
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
