package pydelta;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.unsafe.Platform;
import scala.Function8;

/**
 * The one way from these classes into the Python process that drives Spark. Every use of an object there is a message of
 * its own, so that texts travel, as JSON where they are many, and objects only where they have to.
 */
public final class Python {
    private static final int MOST = 5;
    private static final ObjectMapper JSON = new ObjectMapper();
    private static volatile Function8 function;

    /**
     * From what is asked with the number of its arguments, the session's identity, the session and the arguments, to the
     * answer or to the exception to throw.
     */
    public static void set(Function8 answers) {
        function = answers;
    }

    static Object ask(String what, SparkSession session, Object[] arguments) {
        Function8 answers = function;
        if (answers == null) {
            throw new IllegalStateException("the Python process that delta_ds runs in is gone");
        }
        Object[] all = new Object[MOST];
        System.arraycopy(arguments, 0, all, 0, arguments.length);
        Object answer = answers.apply(what + ":" + arguments.length, Integer.valueOf(System.identityHashCode(session)),
            session, all[0], all[1], all[2], all[3], all[4]);
        if (answer instanceof Throwable) {
            Platform.throwException((Throwable) answer);
        }
        return answer;
    }

    static Object ask(String what, Object[] arguments) {
        return ask(what, SparkSession.active(), arguments);
    }

    /** The session's identity, by which Python knows it again. */
    public static int identity(SparkSession session) {
        return System.identityHashCode(session);
    }

    static String json(Object value) {
        try {
            return JSON.writeValueAsString(value);
        } catch (Exception error) {
            throw new IllegalArgumentException(error);
        }
    }

    static Map map(String json) {
        try {
            return (Map) JSON.readValue(json, HashMap.class);
        } catch (Exception error) {
            throw new IllegalArgumentException(error);
        }
    }
}
