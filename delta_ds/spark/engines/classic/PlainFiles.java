import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.plans.logical.View;
import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.ProjectExec;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.datasources.FilePartition;
import org.apache.spark.sql.execution.datasources.FileScanRDD;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.Tuple2;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;

/** Tells whether a query is some columns of Parquet files, as they are, and of which splits of which files. */
public class PlainFiles {
    /** The options of a scan that change nothing, by name, and the value that does so; any where it is empty. */
    private static final Map OPTIONS = new HashMap();

    static {
        OPTIONS.put("path", "");
        OPTIONS.put("paths", "");
        OPTIONS.put("serialization.format", "");
        OPTIONS.put("mergeschema", "");
        OPTIONS.put("parquet.filter.dictionary.enabled", "");
        OPTIONS.put("parquet.filter.bloom.enabled", "");
        OPTIONS.put("datetimerebasemode", "corrected");
        OPTIONS.put("int96rebasemode", "corrected");
        OPTIONS.put("spark.sql.parquet.fieldId.read.enabled".toLowerCase(Locale.ROOT), "false");
        OPTIONS.put("spark.sql.parquet.fieldId.read.ignoreMissing".toLowerCase(Locale.ROOT), "");
    }

    /**
     * JSON: `sources` (the name in the files of each column) and `tasks` (for each task of Spark's own scan its splits:
     * URL, start, length, size); or `reason` alone, where the query is more than that.
     *
     * @param execution of which nothing has run yet
     */
    public String describe(QueryExecution execution) throws Exception {
        ObjectNode found = new ObjectMapper().createObjectNode();
        String reason = find(execution, found);
        if (reason != null) {
            found.removeAll();
            found.put("reason", reason);
        }
        return found.toString();
    }

    private static String find(QueryExecution execution, ObjectNode found) {
        LogicalPlan logical = execution.analyzed();
        while (logical instanceof Project || logical instanceof SubqueryAlias || logical instanceof View) {
            logical = (LogicalPlan) logical.children().head();
        }
        if (!(logical instanceof LogicalRelation)) return logical.nodeName();
        // As it will run: with what is cached, and with what rules of the session make of it.
        SparkPlan plan = execution.sparkPlan();
        Seq output = plan.output();
        Map origins = new HashMap();
        if (plan instanceof ProjectExec) {
            String reason = follow(((ProjectExec) plan).projectList(), origins);
            if (reason != null) return reason;
            plan = ((ProjectExec) plan).child();
        }
        if (!(plan instanceof FileSourceScanExec)) return plan.nodeName();
        FileSourceScanExec scan = (FileSourceScanExec) plan;
        String reason = more(scan);
        if (reason != null) return reason;
        Map names = new HashMap();
        StructField[] fields = scan.requiredSchema().fields();
        for (int i = 0; i < fields.length; i++) {
            if (fields[i].metadata().contains("EXISTS_DEFAULT")) return "a column has a default";
            names.put(((Attribute) scan.output().apply(i)).exprId(), fields[i].name());
        }
        ArrayNode sources = found.putArray("sources");
        for (int i = 0; i < output.size(); i++) {
            Object id = ((NamedExpression) output.apply(i)).exprId();
            Object name = names.get(origins.isEmpty() ? id : origins.get(id));
            if (name == null) return "a column of another kind";
            sources.add((String) name);
        }
        return splits(scan, found.putArray("tasks"));
    }

    /** From what a projection puts out to what it is made of; why it is more than names, else null. */
    private static String follow(Seq projected, Map origins) {
        for (int i = 0; i < projected.size(); i++) {
            NamedExpression one = (NamedExpression) projected.apply(i);
            Expression value = one instanceof Alias ? ((Alias) one).child() : (Expression) one;
            if (!(value instanceof AttributeReference)) return value.nodeName();
            origins.put(one.exprId(), ((AttributeReference) value).exprId());
        }
        return null;
    }

    /** What a scan does beyond reading columns of Parquet files; null: nothing. */
    private static String more(FileSourceScanExec scan) {
        HadoopFsRelation relation = scan.relation();
        if (relation.fileFormat().getClass() != ParquetFileFormat.class) return relation.fileFormat().toString();
        if (!relation.partitionSchema().isEmpty()) return "folders of partitions";
        if (relation.bucketSpec().isDefined()) return "buckets";
        if (!scan.partitionFilters().isEmpty() || !scan.dataFilters().isEmpty()) return "a filter";
        if (scan.output().size() != scan.requiredSchema().size()) return "a column of metadata";
        for (Iterator all = relation.options().iterator(); all.hasNext();) {
            Tuple2 option = (Tuple2) all.next();
            String name = ((String) option._1()).toLowerCase(Locale.ROOT);
            Object harmless = OPTIONS.get(name);
            if (harmless == null || !(harmless.equals("") || harmless.equals(((String) option._2()).toLowerCase(Locale.ROOT)))) {
                return "the option " + name;
            }
        }
        return null;
    }

    private static String splits(FileSourceScanExec scan, ArrayNode tasks) {
        RDD rows = scan.inputRDD();
        if (!(rows instanceof FileScanRDD)) return rows.toString();
        Seq partitions = ((FileScanRDD) rows).filePartitions();
        for (int i = 0; i < partitions.size(); i++) {
            ArrayNode task = tasks.addArray();
            PartitionedFile[] files = ((FilePartition) partitions.apply(i)).files();
            for (int j = 0; j < files.length; j++) {
                PartitionedFile file = files[j];
                if (file.partitionValues().numFields() != 0) return "folders of partitions";
                task.addArray().add(file.filePath().urlEncoded()).add(file.start()).add(file.length()).add(file.fileSize());
            }
        }
        return null;
    }
}
