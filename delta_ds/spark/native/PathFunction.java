// A function for Spark's analyzer whose body is elsewhere. An exception that the body returns is thrown: a Java proxy
// could not throw Spark's own, which are checked and not declared by Function1.
public class PathFunction {
    public scala.Function1 of(final java.util.function.Function body) {
        return new scala.runtime.AbstractFunction1() {
            public Object apply(Object arguments) {
                Object found = body.apply(arguments);
                if (found instanceof Throwable) org.apache.spark.unsafe.Platform.throwException((Throwable) found);
                return found;
            }
        };
    }
}
