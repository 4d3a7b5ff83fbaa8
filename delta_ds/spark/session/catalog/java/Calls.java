package pydelta;

/** What is running in this thread, where nothing else tells who asks. */
final class Calls {
    /** Whether a method is, of a class whose full name begins so. */
    static boolean areWithin(String name) {
        StackTraceElement[] calls = Thread.currentThread().getStackTrace();
        for (int i = 0; i < calls.length; i++) {
            if (calls[i].getClassName().startsWith(name)) return true;
        }
        return false;
    }
}
