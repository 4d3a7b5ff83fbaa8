import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.Collections;
import java.util.HashSet;
import org.apache.spark.SparkEnv;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.execution.SQLExecution;
import org.apache.spark.storage.BlockManager;
import org.apache.spark.storage.BlockStatus;
import org.apache.spark.storage.RDDBlockId;
import org.apache.spark.storage.StorageLevel;
import org.apache.spark.storage.StorageStatus;
import scala.Option;
import scala.Tuple2;
import scala.collection.Iterator;
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
    public long bytes(JavaRDD batches) throws Throwable {
        // What blocks there are is known when a task ends; `getRDDStorageInfo` says it later.
        // A compiler that asks `SparkEnv` for its methods fails where a class of theirs is not there.
        MethodType blocksOf = MethodType.methodType(BlockManager.class);
        BlockManager manager = (BlockManager) MethodHandles.publicLookup()
            .findVirtual(SparkEnv.class, "blockManager", blocksOf)
            .invokeWithArguments(Collections.singletonList(batches.context().env()));
        StorageStatus[] managers = manager.master().getStorageStatus();
        HashSet held = new HashSet();
        long bytes = 0;
        for (int i = 0; i < managers.length; i++) {
            Iterator blocks = managers[i].rddBlocks().iterator();
            while (blocks.hasNext()) {
                Tuple2 block = (Tuple2) blocks.next();
                RDDBlockId id = (RDDBlockId) block._1();
                if (id.rddId() != batches.id()) continue;
                BlockStatus status = (BlockStatus) block._2();
                if (status.diskSize() != 0) return -1;
                bytes += status.memSize();
                held.add(Integer.valueOf(id.splitIndex()));
            }
        }
        return held.size() == batches.getNumPartitions() ? bytes : -1;
    }
}
