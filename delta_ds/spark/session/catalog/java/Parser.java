package pydelta;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.List;
import java.util.regex.Pattern;
import org.apache.spark.sql.AnalysisException;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.parser.ParameterContext;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.trees.Origin;
import scala.Option;
import scala.collection.immutable.Map;

/** A parser that sees statements first; a proxy, as the methods of parsers differ between versions of Spark. */
public final class Parser implements InvocationHandler {
    // What can begin a statement of Delta's own: all others go on without leaving the JVM.
    private static volatile Pattern heads = Pattern.compile("(?!)");
    private final ParserInterface delegate;
    private final SparkSession session;

    private Parser(SparkSession session, ParserInterface delegate) {
        this.session = session;
        this.delegate = delegate;
    }

    public static void heads(String pattern) {
        heads = Pattern.compile(pattern);
    }

    /** In front of Spark's parser, or in the place of a parser of ours that is there already. */
    static ParserInterface before(SparkSession session, ParserInterface there) {
        return (ParserInterface) Proxy.newProxyInstance(ParserInterface.class.getClassLoader(),
            new Class[] {ParserInterface.class}, new Parser(session, behind(there)));
    }

    static ParserInterface behind(ParserInterface there) {
        if (!Proxy.isProxyClass(there.getClass())) return there;
        InvocationHandler handler = Proxy.getInvocationHandler(there);
        return handler instanceof Parser ? ((Parser) handler).delegate : there;
    }

    public Object invoke(Object proxy, Method method, Object[] arguments) throws Throwable {
        try {
            return answer(method, arguments);
        } catch (InvocationTargetException error) {
            throw thrown(error.getCause());
        } catch (Throwable error) {
            throw thrown(error);
        }
    }

    /** An error as a proxy can throw it: one that a parser does not declare would lose its condition and its text. */
    private static Throwable thrown(Throwable error) {
        if (!(error instanceof AnalysisException) || error instanceof ParseException) return error;
        AnalysisException found = (AnalysisException) error;
        if (found.errorClass().isEmpty()) return error;
        ParseException declared = new ParseException(Option.empty(), found.origin(),
            (String) found.errorClass().get(), found.messageParameters(), found.context());
        declared.setStackTrace(error.getStackTrace());
        return declared;
    }

    private Object answer(Method method, Object[] arguments) throws Throwable {
        boolean plans = method.getName().startsWith("parsePlan");
        if (plans) {
            String text = (String) arguments[0];
            if (heads.matcher(text).find()) {
                Object found = own(text, arguments);
                if (found != null) return found;
            }
        }
        Object found = method.invoke(delegate, arguments);
        return plans ? Secrets.hidden(session, (String) arguments[0], found) : found;
    }

    private Object own(String text, Object[] arguments) throws ParseException {
        Object parameters = arguments.length > 1 && arguments[1] instanceof ParameterContext ? arguments[1] : null;
        List found = (List) Python.ask("parse", session, new Object[] {text, parameters});
        if (found == null) return null;
        if (found.size() == 1) { // the same in the grammar of Spark, without parameters
            return Secrets.hidden(session, text, delegate.parsePlan((String) found.get(0)));
        }
        if (found.get(0) == null) {
            throw syntaxError(text, (String) found.get(1), (Map) found.get(2), ((Number) found.get(3)).intValue());
        }
        return Command.of((String) found.get(0), new Object[] {found.get(1), found.get(2)}, (String) found.get(3));
    }

    private static ParseException syntaxError(String text, String condition, Map parameters, int offset) {
        String before = text.substring(0, Math.min(offset, text.length()));
        int line = before.split("\n", -1).length;
        int column = before.length() - before.lastIndexOf('\n') - 1;
        Option none = Option.empty();
        return new ParseException(Option.apply(text), new Origin(Option.apply(Integer.valueOf(line)),
            Option.apply(Integer.valueOf(column)), none, none, none, none, none, none, none, none),
            condition, parameters);
    }
}
