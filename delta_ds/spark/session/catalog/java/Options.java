package pydelta;

import java.util.HashMap;
import scala.Tuple2;
import scala.collection.Iterator;
import scala.collection.immutable.Map;

/** Maps of Scala as maps that Python reads in one call. */
final class Options {
    static java.util.Map of(Map given) {
        HashMap found = new HashMap();
        for (Iterator each = given.iterator(); each.hasNext();) {
            Tuple2 pair = (Tuple2) each.next();
            found.put(pair._1(), pair._2());
        }
        return found;
    }
}
