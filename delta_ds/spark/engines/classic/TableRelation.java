import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.function.Supplier;
import org.apache.spark.SparkException;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.plans.logical.CTERelationDef;
import org.apache.spark.sql.catalyst.plans.logical.CTERelationRef;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.WithCTE;
import org.apache.spark.sql.execution.datasources.FileFormat;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.python.PythonTable;
import org.apache.spark.sql.sources.InsertableRelation;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.Platform;
import scala.Option;
import scala.collection.immutable.Map;
import scala.collection.immutable.Seq;

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

    /**
     * The options of the reads of our tables in a query, in JSON: of those that Spark reads itself, and of those that the
     * data source in Python reads. What is cached is not read, nor what only an unused part of a WITH clause names.
     */
    public String[] readings(LogicalPlan plan) throws Exception {
        List found = new ArrayList();
        collect(plan, found, new HashMap());
        return (String[]) found.toArray(new String[0]);
    }

    private static void collect(LogicalPlan plan, List found, java.util.Map defined) throws Exception {
        if (plan instanceof WithCTE) {
            Seq definitions = ((WithCTE) plan).cteDefs();
            for (int i = 0; i < definitions.length(); i++) {
                CTERelationDef one = (CTERelationDef) definitions.apply(i);
                defined.put(Long.valueOf(one.id()), one.child());
            }
            collect(((WithCTE) plan).plan(), found, defined);
            return;
        }
        if (plan instanceof CTERelationRef) {
            LogicalPlan used = (LogicalPlan) defined.remove(Long.valueOf(((CTERelationRef) plan).cteId()));
            if (used != null) collect(used, found, defined);
        } else if (plan instanceof LogicalRelation && ((LogicalRelation) plan).relation() instanceof Supplier) {
            Object reading = ((Supplier) ((LogicalRelation) plan).relation()).get();
            if (reading instanceof String) found.add(reading);
        } else if (plan instanceof DataSourceV2Relation && ((DataSourceV2Relation) plan).table() instanceof PythonTable) {
            DataSourceV2Relation relation = (DataSourceV2Relation) plan;
            if (relation.table().name().equalsIgnoreCase("pydelta")) {
                found.add(new ObjectMapper().writeValueAsString(relation.options().asCaseSensitiveMap()));
            }
        }
        for (int i = 0; i < plan.children().length(); i++) {
            collect((LogicalPlan) plan.children().apply(i), found, defined);
        }
        for (int i = 0; i < plan.subqueries().length(); i++) {
            collect((LogicalPlan) plan.subqueries().apply(i), found, defined);
        }
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
