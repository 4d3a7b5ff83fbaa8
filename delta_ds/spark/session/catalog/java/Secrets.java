package pydelta;

import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.regex.Pattern;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.analysis.UnresolvedIdentifier;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.analysis.UnresolvedTable;
import org.apache.spark.sql.catalyst.analysis.UnresolvedTableValuedFunction;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.OptionList;
import org.apache.spark.sql.catalyst.plans.logical.SetTableLocation;
import org.apache.spark.sql.catalyst.plans.logical.TableSpecBase;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.datasources.CreateTempViewUsing;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.apache.spark.unsafe.types.UTF8String;
import scala.Option;
import scala.Product;
import scala.Some;
import scala.Tuple2;
import scala.collection.immutable.Seq;
import scala.collection.immutable.VectorBuilder;

/**
 * Options of stores in plans. Plans are shown, in the UI and in event logs, and Spark hides a value only by its name; so
 * plans hold references in the place of values, which stay here.
 *
 * Names of tables do not say whose they are. So references are put into whatever a text was parsed to, and give way to
 * the values again for tables of other sources, right before Spark resolves names.
 */
public final class Secrets {
    private static final String MARK = "pydelta-secret:";
    // As the kernel's options know it: Spark hides it by its name, also from processes that have no references.
    private static final String PREFIX = "storage.", HIDDEN = "storage.secret.";
    private static final Map VALUES = new ConcurrentHashMap(), REFERENCES = new ConcurrentHashMap();
    private static volatile Pattern names = Pattern.compile("(?!)");
    private static volatile Pattern hint = names;

    private final SparkSession session;
    private final boolean opens;

    private Secrets(SparkSession session, boolean opens) {
        this.session = session;
        this.opens = opens;
    }

    /** Which options are those of stores; and what a text has that may have some. */
    public static void names(String pattern, String somewhere) {
        names = Pattern.compile(pattern);
        hint = Pattern.compile(somewhere);
    }

    static boolean isOfStore(String name) { return names.matcher(name).matches(); }

    /** What a reference stands for; any other text as it is. */
    public static String value(String text) {
        Object found = text == null || !text.startsWith(MARK) ? null : VALUES.get(text);
        return found == null ? text : (String) found;
    }

    private static String reference(String value) {
        if (value.startsWith(MARK)) return value;
        Object known = REFERENCES.get(value);
        if (known == null) {
            String made = MARK + UUID.randomUUID();
            VALUES.put(made, value);
            known = REFERENCES.putIfAbsent(value, made);
            if (known == null) known = made;
        }
        return (String) known;
    }

    /** Options as Python needs them. */
    static Map values(Map options) {
        Map found = new HashMap();
        for (Iterator each = options.entrySet().iterator(); each.hasNext();) {
            Map.Entry one = (Map.Entry) each.next();
            found.put(one.getKey(), one.getValue() instanceof String ? value((String) one.getValue()) : one.getValue());
        }
        return found;
    }

    /** What a text was parsed to, without secrets. */
    static Object hidden(SparkSession session, String text, Object plan) {
        boolean looks = plan instanceof LogicalPlan && (hint.matcher(text).find() || mayHaveLogin(text));
        return looks ? new Secrets(session, false).of(plan) : plan;
    }

    /** A plan of which nothing is resolved: values where others read them, references where Spark would show them. */
    static LogicalPlan settled(SparkSession session, LogicalPlan plan) {
        LogicalPlan open = VALUES.isEmpty() ? plan : (LogicalPlan) new Secrets(session, true).of(plan);
        Secrets hiding = new Secrets(session, false);
        if (open instanceof SetTableLocation) return hiding.move((SetTableLocation) open);
        if (hiding.makesTable(open)) hiding.check((Product) open);
        return (LogicalPlan) hiding.creation(open);
    }

    // ---------------------------------------------------------------- plans

    /** A part of a plan; the same object where it holds none of these. */
    private Object of(Object part) {
        if (part instanceof UnresolvedRelation) return relation((UnresolvedRelation) part);
        if (part instanceof TreeNode) {
            Object found = part;
            if (!opens && part instanceof UnresolvedTableValuedFunction) {
                found = function((UnresolvedTableValuedFunction) part);
            } else if (!opens && part instanceof SetTableLocation) {
                SetTableLocation move = (SetTableLocation) part;
                found = mayHaveLogin(move.location()) ? moved(move, reference(move.location())) : move;
            } else if (!opens) {
                found = creation(part);
            }
            return inside((TreeNode) found, false);
        }
        if (part instanceof Seq) return each((Seq) part);
        if (part instanceof Some) {
            Object inner = ((Some) part).get(), found = of(inner);
            return found == inner ? part : Option.apply(found);
        }
        if (part instanceof Tuple2) {
            Tuple2 pair = (Tuple2) part;
            Object second = of(pair._2());
            return second == pair._2() ? part : new Tuple2(pair._1(), second);
        }
        return part;
    }

    private Object each(Seq parts) {
        // Rows and texts are many, and hold no plans.
        if (parts.isEmpty() || !isLookedInto(parts.head())) return parts;
        VectorBuilder made = new VectorBuilder();
        boolean changed = false;
        for (int i = 0; i < parts.length(); i++) {
            Object found = of(parts.apply(i));
            changed = changed || found != parts.apply(i);
            made.addOne(found);
        }
        return changed ? made.result() : parts;
    }

    private static boolean isLookedInto(Object part) {
        return part instanceof TreeNode || part instanceof Tuple2 || part instanceof Seq || part instanceof Some;
    }

    /** A node with what its parts come to; of a creation only what says so is looked into. */
    private Object inside(TreeNode node, boolean creates) {
        if (!(node instanceof Product)) return node;
        Product product = (Product) node;
        Object[] parts = new Object[product.productArity()];
        boolean changed = false;
        for (int i = 0; i < parts.length; i++) {
            Object part = product.productElement(i);
            parts[i] = creates ? ofCreation(product.productElementName(i), part) : of(part);
            changed = changed || parts[i] != part;
        }
        return changed ? node.makeCopy(parts) : node;
    }

    private Object relation(UnresolvedRelation relation) {
        Map options = relation.options().asCaseSensitiveMap();
        Map found = opens ? values(options) : references(options);
        // Of ours they are asked for when it is read or written; what is not there is only told of.
        boolean stays = found.equals(options) || opens && !Names.isOfOthers(session, relation.multipartIdentifier());
        return stays ? relation
            : relation.makeCopy(new Object[] {relation.multipartIdentifier(), new CaseInsensitiveStringMap(found),
                Boolean.valueOf(relation.isStreaming())});
    }

    private static Map references(Map options) {
        Map found = new HashMap(options);
        for (Iterator each = found.entrySet().iterator(); each.hasNext();) {
            Map.Entry one = (Map.Entry) each.next();
            if (isOfStore((String) one.getKey())) one.setValue(reference((String) one.getValue()));
        }
        return found;
    }

    /** pydelta('/path', 'name', 'value', ...): Python, which is given the arguments, asks for the values. */
    private static Object function(UnresolvedTableValuedFunction call) {
        Seq name = call.name(), arguments = call.functionArgs();
        if (name.length() != 1 || !Catalog.isOurs((String) name.head())) return call;
        VectorBuilder made = new VectorBuilder();
        boolean changed = false;
        for (int i = 0; i < arguments.length(); i++) {
            String before = i == 0 ? null : text(arguments.apply(i - 1)), value = text(arguments.apply(i));
            boolean hides = value != null && !value.startsWith(MARK) && (i == 0 ? mayHaveLogin(value)
                : before != null && i % 2 == 0 && isOfStore(before));
            made.addOne(hides ? literal(arguments.apply(i), reference(value)) : arguments.apply(i));
            changed = changed || hides;
        }
        return changed
            ? call.makeCopy(new Object[] {name, made.result(), Boolean.valueOf(call.isStreaming())}) : call;
    }

    private static String text(Object expression) {
        if (!(expression instanceof Literal) || !(((Literal) expression).value() instanceof UTF8String)) return null;
        return ((Literal) expression).value().toString();
    }

    private static Literal literal(Object expression, String text) {
        return new Literal(UTF8String.fromString(text), ((Literal) expression).dataType());
    }

    // ---------------------------------------------------------------- tables and views that come to be

    /** A table or view of ours that is made; any other part of a plan as it is. */
    private Object creation(Object part) {
        if (part instanceof CreateTempViewUsing) {
            CreateTempViewUsing view = (CreateTempViewUsing) part;
            return Catalog.isOurs(view.provider()) ? inside(view, true) : view;
        }
        return makesTable(part) ? inside((TreeNode) part, true) : part;
    }

    /** ALTER TABLE ... SET LOCATION: of ours it is refused, of others it goes on; what is not there is only told of. */
    private LogicalPlan move(SetTableLocation move) {
        String location = value(move.location());
        if (!mayHaveLogin(location)) return move;
        if (Names.target(session, move.table()) != null) check(location);
        return move.table() instanceof UnresolvedTable
            && Names.isOfOthers(session, ((UnresolvedTable) move.table()).multipartIdentifier())
            ? moved(move, location) : moved(move, reference(location));
    }

    private static LogicalPlan moved(SetTableLocation move, String location) {
        return (LogicalPlan) move.makeCopy(new Object[] {move.table(), move.partitionSpec(), location});
    }

    private boolean makesTable(Object part) {
        if (!(part instanceof LogicalPlan) || !(part instanceof Product)) return false;
        Object spec = Relations.field((Product) part, "tableSpec");
        return spec instanceof TableSpecBase
            && isOurs((TableSpecBase) spec, Relations.field((Product) part, "name"));
    }

    /** Refuse the name or location of a new table that has a login, before the plan of the command shows it. */
    private void check(Product plan) {
        Object name = Relations.field(plan, "name");
        Object location = Relations.field((Product) Relations.field(plan, "tableSpec"), "location");
        if (location instanceof Some) check((String) ((Some) location).get());
        if (name instanceof UnresolvedIdentifier) check((String) ((UnresolvedIdentifier) name).nameParts().last());
    }

    private void check(String address) {
        if (mayHaveLogin(address)) Python.ask("check_address", session, new Object[] {address});
    }

    private static boolean mayHaveLogin(String text) { return text.indexOf('@') >= 0 && text.indexOf(":/") > 0; }

    private boolean isOurs(TableSpecBase spec, Object name) {
        String catalog = session.conf().get("spark.sql.catalog.spark_catalog", "");
        if (!Catalog.class.getName().equals(catalog)) return false;
        if (spec.provider().isDefined()) return Catalog.isOurs((String) spec.provider().get());
        boolean byPath = name instanceof UnresolvedIdentifier && ((UnresolvedIdentifier) name).nameParts().length() == 2
            && Catalog.isOurs((String) ((UnresolvedIdentifier) name).nameParts().head());
        return byPath || Catalog.isOurs(session.conf().get("spark.sql.sources.default"));
    }

    private Object ofCreation(String name, Object part) {
        if (name.equals("tableSpec") && part instanceof TreeNode) return inside((TreeNode) part, true);
        if (name.equals("writeOptions")) return map((scala.collection.immutable.Map) part, false);
        if (part instanceof OptionList) {
            Seq options = ((OptionList) part).options(), found = listed(options);
            return found == options ? part : new OptionList(found);
        }
        // Of a view: the processes of a Python source have no references.
        if (name.equals("options") && part instanceof scala.collection.immutable.Map) {
            return map((scala.collection.immutable.Map) part, true);
        }
        return part;
    }

    private static Seq listed(Seq options) {
        VectorBuilder made = new VectorBuilder();
        boolean changed = false;
        for (int i = 0; i < options.length(); i++) {
            Tuple2 option = (Tuple2) options.apply(i);
            String value = isOfStore((String) option._1()) ? text(option._2()) : null;
            boolean hides = value != null && !value.startsWith(MARK);
            made.addOne(hides ? new Tuple2(option._1(), literal(option._2(), reference(value))) : option);
            changed = changed || hides;
        }
        return changed ? (Seq) made.result() : options;
    }

    private static scala.collection.immutable.Map map(scala.collection.immutable.Map options, boolean renamed) {
        scala.collection.immutable.Map made = options;
        for (scala.collection.Iterator each = options.iterator(); each.hasNext();) {
            Tuple2 option = (Tuple2) each.next();
            String name = (String) option._1();
            boolean hidden = renamed ? hiddenName(name).equals(name) : ((String) option._2()).startsWith(MARK);
            if (hidden || !isOfStore(name)) continue;
            String shown = renamed ? hiddenName(name) : name;
            Object value = renamed ? option._2() : reference((String) option._2());
            made = (scala.collection.immutable.Map) made.removed(name);
            made = (scala.collection.immutable.Map) made.updated(shown, value);
        }
        return made;
    }

    private static String hiddenName(String name) {
        String lower = name.toLowerCase(java.util.Locale.ROOT);
        if (lower.startsWith(HIDDEN)) return name;
        return HIDDEN + (lower.startsWith(PREFIX) ? name.substring(PREFIX.length()) : name);
    }
}
