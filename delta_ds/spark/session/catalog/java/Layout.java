package pydelta;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.analysis.ResolvedIdentifier;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.TableSpecBase;
import org.apache.spark.sql.catalyst.plans.logical.V2CreateTablePlan;
import org.apache.spark.sql.connector.expressions.ClusterByTransform;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.Transform;
import scala.Product;
import scala.collection.immutable.Seq;

/** The columns that a new table is partitioned or clustered by, checked before Spark does: its versions differ there. */
final class Layout {
    static void check(SparkSession session, V2CreateTablePlan made) {
        LogicalPlan plan = (LogicalPlan) made;
        Seq transforms = made.partitioning();
        if (transforms.isEmpty() || !plan.childrenResolved() || !isOurs(session, (Product) plan)) return;
        List clustering = new ArrayList(), partitions = new ArrayList();
        for (int i = 0; i < transforms.length(); i++) {
            Transform transform = (Transform) transforms.apply(i);
            boolean clusters = transform instanceof ClusterByTransform;
            if (!clusters && !"identity".equals(transform.name())) return;
            NamedReference[] columns = transform.references();
            for (int k = 0; k < columns.length; k++) (clusters ? clustering : partitions).add(columns[k].describe());
        }
        Python.ask("check_layout", session, new Object[] {
            made.tableName().toString(), made.tableSchema().json(), clustering.toArray(), partitions.toArray()});
    }

    private static boolean isOurs(SparkSession session, Product plan) {
        Object name = Relations.field(plan, "name"), spec = Relations.field(plan, "tableSpec");
        if (!(name instanceof ResolvedIdentifier) || !(spec instanceof TableSpecBase)) return false;
        if (!(((ResolvedIdentifier) name).catalog() instanceof Catalog)) return false;
        if (Catalog.path(((ResolvedIdentifier) name).identifier()) != null) return true;
        scala.Option provider = ((TableSpecBase) spec).provider();
        return Catalog.isOurs(provider.isDefined() ? (String) provider.get()
            : session.conf().get("spark.sql.sources.default"));
    }
}
