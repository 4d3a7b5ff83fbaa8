import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.execution.SQLExecution;
import org.apache.spark.storage.RDDInfo;
import org.apache.spark.storage.StorageLevel;
import scala.Option;
import scala.runtime.AbstractFunction0;

/** Computes the rows of a query once, as Arrow data that stays where it was made until it is known how much it is. */
public class ArrowRows {
    /** Messages of Arrow's format, one a batch, in the order of the rows; whoever asks gives the storage back. */
    public JavaRDD computed(final Dataset rows) {
        return (JavaRDD) SQLExecution.withNewExecutionId(
            rows.queryExecution(), Option.apply("collectAsArrow"), new AbstractFunction0() {
                public Object apply() {
                    RDD batches = rows.toArrowBatchRdd().persist(StorageLevel.MEMORY_AND_DISK());
                    boolean done = false;
                    try {
                        batches.count();
                        done = true;
                        return batches.toJavaRDD();
                    } finally {
                        if (!done) batches.unpersist(false);
                    }
                }
            });
    }

    /** How many bytes the memory of the executors holds of them; -1 where it does not hold all. */
    public long bytes(JavaRDD batches) {
        RDDInfo[] kept = batches.context().getRDDStorageInfo();
        for (int i = 0; i < kept.length; i++) {
            if (kept[i].id() != batches.id()) continue;
            boolean whole = kept[i].numCachedPartitions() == kept[i].numPartitions() && kept[i].diskSize() == 0;
            return whole ? kept[i].memSize() : -1;
        }
        return batches.getNumPartitions() == 0 ? 0 : -1;
    }
}
