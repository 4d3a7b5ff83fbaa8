package pydelta;

import java.lang.reflect.Field;
import java.util.Collections;
import java.util.Map;
import java.util.WeakHashMap;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import scala.collection.immutable.Seq;
import scala.collection.immutable.VectorBuilder;
import scala.runtime.AbstractFunction1;
import scala.runtime.AbstractFunction2;

/** Puts parser and rules into sessions, and takes them out. */
public final class Install {
    private static final Map INJECTED = Collections.synchronizedMap(new WeakHashMap());
    // The sessions it was put into: Spark shows what is injected to new sessions, but not what they are made from.
    private static final Map INSTALLED = Collections.synchronizedMap(new WeakHashMap());

    /** Into a session that runs, and all that are made from now on. */
    public static void into(SparkSession any) throws Exception {
        org.apache.spark.sql.classic.SparkSession session = (org.apache.spark.sql.classic.SparkSession) any;
        Object state = session.sessionState();
        Field parser = field(state.getClass(), "sqlParser");
        parser.set(state, Parser.before(session, (ParserInterface) parser.get(state)));
        Object analyzer = session.sessionState().analyzer();
        rules(analyzer, "hintResolutionRules", new Object[] {new UnresolvedCommands(session)});
        rules(analyzer, "extendedResolutionRules", new Object[] {new Relations(session), new Streams(session)});
        INSTALLED.put(session, Boolean.TRUE);
        if (INJECTED.put(session.extensions(), Boolean.TRUE) == null) inject(session.extensions());
    }

    public static void outOf(SparkSession any) throws Exception {
        org.apache.spark.sql.classic.SparkSession session = (org.apache.spark.sql.classic.SparkSession) any;
        Object state = session.sessionState();
        Field parser = field(state.getClass(), "sqlParser");
        parser.set(state, Parser.behind((ParserInterface) parser.get(state)));
        Object analyzer = session.sessionState().analyzer();
        rules(analyzer, "hintResolutionRules", new Object[0]);
        rules(analyzer, "extendedResolutionRules", new Object[0]);
        INSTALLED.remove(session);
    }

    /** Whether one of the application's sessions has it, and new ones get it: all of them, as none knows its origin. */
    public static boolean forNewSessions(SparkSession any) {
        Object extensions = ((org.apache.spark.sql.classic.SparkSession) any).extensions();
        synchronized (INSTALLED) {
            Object[] sessions = INSTALLED.keySet().toArray();
            for (int i = 0; i < sessions.length; i++) {
                if (((org.apache.spark.sql.classic.SparkSession) sessions[i]).extensions() == extensions) return true;
            }
        }
        return false;
    }


    /** A session keeps its catalog, whatever the setting says from then on; without it, it looks at the setting again. */
    public static void forgetCatalog(SparkSession any, String name) throws Exception {
        Object manager = ((org.apache.spark.sql.classic.SparkSession) any).sessionState().catalogManager();
        ((scala.collection.mutable.Map) field(manager.getClass(), "catalogs").get(manager)).remove(name);
    }

    /** A session's own catalog of a name: Spark looks for one by its setting only where there is none. */
    public static void bindCatalog(SparkSession any, String name) throws Exception {
        Object manager = ((org.apache.spark.sql.classic.SparkSession) any).sessionState().catalogManager();
        ((scala.collection.mutable.Map) field(manager.getClass(), "catalogs").get(manager))
            .put(name, NamedTables.of(any, name));
    }

    private static void inject(SparkSessionExtensions extensions) {
        extensions.injectHintResolutionRule(new AbstractFunction1() {
            public Object apply(Object session) { return new UnresolvedCommands((SparkSession) session); }
        });
        extensions.injectResolutionRule(new AbstractFunction1() {
            public Object apply(Object session) { return new Relations((SparkSession) session); }
        });
        extensions.injectResolutionRule(new AbstractFunction1() {
            public Object apply(Object session) { return new Streams((SparkSession) session); }
        });
        extensions.injectParser(new AbstractFunction2() {
            public Object apply(Object session, Object delegate) {
                SparkSession made = (SparkSession) session;
                return forNewSessions(made) ? Parser.before(made, (ParserInterface) delegate) : delegate;
            }
        });
    }

    private static void rules(Object analyzer, String list, Object[] first) throws Exception {
        Field field = field(analyzer.getClass(), list);
        VectorBuilder rules = new VectorBuilder();
        for (int i = 0; i < first.length; i++) rules.addOne(first[i]);
        Seq there = (Seq) field.get(analyzer);
        for (int i = 0; i < there.length(); i++) {
            Object rule = there.apply(i);
            boolean ours = rule instanceof UnresolvedCommands || rule instanceof Relations || rule instanceof Streams;
            if (!ours) rules.addOne(rule);
        }
        field.set(analyzer, rules.result());
    }

    static Field field(Class owner, String name) throws Exception {
        for (Class at = owner; at != null; at = at.getSuperclass()) {
            Field[] declared = at.getDeclaredFields();
            for (int i = 0; i < declared.length; i++) {
                if (declared[i].getName().equals(name)) {
                    declared[i].setAccessible(true);
                    return declared[i];
                }
            }
        }
        throw new NoSuchFieldException(owner.getName() + "." + name);
    }
}
