import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.catalog.CatalogStatistics;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.BasePredicate;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Predicate$;
import org.apache.spark.sql.execution.datasources.PartitionDirectory$;
import scala.collection.immutable.Map$;
import scala.collection.immutable.Seq;
import scala.collection.immutable.VectorBuilder;
import scala.math.BigInt$;

/** Makes, in one call from Python, what Spark wants to know of any number of files. */
public class TableFiles {
    /**
     * A Seq of PartitionDirectory.
     *
     * @param root the table's folder, ending in a slash
     * @param values the partition values of each directory
     * @param message little-endian: number of files (int), files of each directory (int), sizes (long), modification
     *     times (long), then paths in UTF-8 with a NUL behind each: relative, or a slash and an address
     */
    public Object list(String root, InternalRow[] values, byte[] message) {
        ByteBuffer in = ByteBuffer.wrap(message).order(ByteOrder.LITTLE_ENDIAN);
        int files = in.getInt();
        int[] counts = new int[values.length];
        for (int i = 0; i < counts.length; i++) counts[i] = in.getInt();
        int sizes = in.position(), times = sizes + 8 * files, at = times + 8 * files, file = 0;
        VectorBuilder out = new VectorBuilder();
        for (int group = 0; group < counts.length; group++) {
            FileStatus[] found = new FileStatus[counts[group]];
            for (int i = 0; i < found.length; i++, file++) {
                int end = at;
                while (message[end] != 0) end++;
                String text = new String(message, at, end - at, StandardCharsets.UTF_8);
                at = end + 1;
                Path path = new Path(text.startsWith("/") ? text.substring(1) : root + text);
                found[i] = new FileStatus(
                    in.getLong(sizes + 8 * file), false, 1, 134217728L, in.getLong(times + 8 * file), path);
            }
            out.addOne(PartitionDirectory$.MODULE$.apply(values[group], found));
        }
        return out.result();
    }

    /** The numbers of the rows that satisfy all conditions, as little-endian ints; attributes name the rows' columns. */
    public byte[] matching(Seq conditions, Seq attributes, InternalRow[] rows) {
        Expression whole = (Expression) conditions.apply(0);
        for (int i = 1; i < conditions.size(); i++) whole = new And(whole, (Expression) conditions.apply(i));
        BasePredicate predicate = Predicate$.MODULE$.create(whole, attributes);
        predicate.initialize(0);
        ByteBuffer out = ByteBuffer.allocate(4 * rows.length).order(ByteOrder.LITTLE_ENDIAN);
        for (int i = 0; i < rows.length; i++) {
            if (predicate.eval(rows[i])) out.putInt(i);
        }
        return java.util.Arrays.copyOf(out.array(), out.position());
    }

    /** Some of the rows, by their numbers in the form that matching gives. */
    public InternalRow[] pick(InternalRow[] rows, byte[] numbers) {
        ByteBuffer in = ByteBuffer.wrap(numbers).order(ByteOrder.LITTLE_ENDIAN);
        InternalRow[] out = new InternalRow[numbers.length / 4];
        for (int i = 0; i < out.length; i++) out[i] = rows[in.getInt()];
        return out;
    }

    /** CatalogStatistics; negative rows are unknown. */
    public Object statistics(long bytes, long rows) {
        scala.Option counted = rows < 0 ? scala.None$.MODULE$ : new scala.Some(BigInt$.MODULE$.apply(rows));
        return new CatalogStatistics(BigInt$.MODULE$.apply(bytes), counted, Map$.MODULE$.empty());
    }

    /** The encoded addresses of paths in the form of a message. */
    public String[] paths(String root, byte[] message) {
        java.util.ArrayList out = new java.util.ArrayList();
        int at = 0;
        while (at < message.length) {
            int end = at;
            while (message[end] != 0) end++;
            String text = new String(message, at, end - at, StandardCharsets.UTF_8);
            at = end + 1;
            out.add(new Path(text.startsWith("/") ? text.substring(1) : root + text).toUri().toString());
        }
        return (String[]) out.toArray(new String[0]);
    }
}
