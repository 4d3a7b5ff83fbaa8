package pydelta;

/** The same source under the name of the data source in Python, on a server all of whose sessions are registered. */
public final class NamedProvider extends Provider {
    public String shortName() { return "pydelta"; }
}
