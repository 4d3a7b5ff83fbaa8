package pydelta;

import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Supplier;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.analysis.NamespaceAlreadyExistsException;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.analysis.NonEmptyNamespaceException;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.NamespaceChange;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.catalog.StagingTableCatalog;
import org.apache.spark.sql.connector.catalog.SupportsNamespaces;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalogCapability;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.catalog.TableInfo;
import org.apache.spark.sql.connector.catalog.constraints.Constraint;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A catalog beside the session's, whose tables a commit coordinator knows by their names: what it is asked, Python answers. */
public class NamedTables implements StagingTableCatalog, SupportsNamespaces {
    private String name;
    // Who it was made for: without one, as Spark makes it in a later session, the session that asks.
    private SparkSession session = null;

    static NamedTables of(SparkSession session, String name) {
        NamedTables made = new NamedTables();
        made.name = name;
        made.session = session;
        return made;
    }

    private Object ask(String what, Object[] arguments) {
        return session == null ? Python.ask(what, arguments) : Python.ask(what, session, arguments);
    }

    public void initialize(String name, CaseInsensitiveStringMap options) {
        this.name = name;
    }

    public String name() { return name; }

    public Set capabilities() {
        Set found = new HashSet();
        found.add(TableCatalogCapability.SUPPORT_COLUMN_DEFAULT_VALUE);
        found.add(TableCatalogCapability.SUPPORTS_CREATE_TABLE_WITH_GENERATED_COLUMNS);
        found.add(TableCatalogCapability.SUPPORTS_CREATE_TABLE_WITH_IDENTITY_COLUMNS);
        return found;
    }

    private String json(Object value) { return Python.json(value); }

    // ---------------------------------------------------------------- namespaces

    public String[][] listNamespaces() throws NoSuchNamespaceException {
        return listNamespaces(new String[0]);
    }

    public String[][] listNamespaces(String[] namespace) throws NoSuchNamespaceException {
        if (!namespaceExists(namespace)) throw new NoSuchNamespaceException(namespace);
        List found = names("catalog_namespaces", namespace);
        String[][] all = new String[found.size()][];
        for (int i = 0; i < all.length; i++) {
            all[i] = (String[]) Arrays.copyOf(namespace, namespace.length + 1);
            all[i][namespace.length] = (String) found.get(i);
        }
        return all;
    }

    private List names(String what, String[] namespace) {
        return (List) Python.map((String) ask(what, new Object[] {name, json(namespace)})).get("names");
    }

    public boolean namespaceExists(String[] namespace) {
        return namespace.length == 0
            || Boolean.TRUE.equals(ask("catalog_has_namespace", new Object[] {name, json(namespace)}));
    }

    public Map loadNamespaceMetadata(String[] namespace) throws NoSuchNamespaceException {
        if (!namespaceExists(namespace)) throw new NoSuchNamespaceException(namespace);
        return new HashMap();
    }

    private void cannot(String what) {
        ask("catalog_cannot", new Object[] {name, what});
    }

    public void createNamespace(String[] namespace, Map metadata) throws NamespaceAlreadyExistsException {
        if (namespaceExists(namespace)) throw new NamespaceAlreadyExistsException(namespace);
        ask("catalog_create_namespace", new Object[] {name, json(namespace), json(metadata)});
    }

    public void alterNamespace(String[] namespace, NamespaceChange[] changes) { cannot("ALTER SCHEMA"); }

    public boolean dropNamespace(String[] namespace, boolean cascade)
            throws NoSuchNamespaceException, NonEmptyNamespaceException {
        if (!namespaceExists(namespace)) throw new NoSuchNamespaceException(namespace);
        Object dropped = ask("catalog_drop_namespace",
            new Object[] {name, json(namespace), Boolean.valueOf(cascade)});
        if (!Boolean.TRUE.equals(dropped)) throw new NonEmptyNamespaceException(namespace);
        return true;
    }

    // ---------------------------------------------------------------- which table

    public Identifier[] listTables(String[] namespace) throws NoSuchNamespaceException {
        if (!namespaceExists(namespace) || namespace.length == 0) throw new NoSuchNamespaceException(namespace);
        List found = names("catalog_tables", namespace);
        Identifier[] all = new Identifier[found.size()];
        for (int i = 0; i < all.length; i++) all[i] = Identifier.of(namespace, (String) found.get(i));
        return all;
    }

    private Table load(Identifier ident, String version, String timestamp) throws NoSuchTableException {
        Object opened = ask("catalog_open",
            new Object[] {name, json(ident.namespace()), ident.name(), version, timestamp});
        if (opened == null) throw new NoSuchTableException(ident);
        return DeltaTable.of((Supplier) opened);
    }

    public Table loadTable(Identifier ident) throws NoSuchTableException {
        return load(ident, null, null);
    }

    public Table loadTable(Identifier ident, Set privileges) throws NoSuchTableException {
        return load(ident, null, null);
    }

    public Table loadTable(Identifier ident, String version) throws NoSuchTableException {
        return load(ident, version, null);
    }

    public Table loadTable(Identifier ident, long timestamp) throws NoSuchTableException {
        return load(ident, null, Long.toString(timestamp));
    }

    public boolean tableExists(Identifier ident) {
        return Boolean.TRUE.equals(
            ask("catalog_has_table", new Object[] {name, json(ident.namespace()), ident.name()}));
    }

    public boolean dropTable(Identifier ident) {
        return Boolean.TRUE.equals(
            ask("catalog_drop", new Object[] {name, json(ident.namespace()), ident.name()}));
    }

    public void renameTable(Identifier from, Identifier to) throws NoSuchTableException {
        cannot("ALTER TABLE ... RENAME TO");
    }

    // ---------------------------------------------------------------- new tables

    private Definition definition(String mode, Identifier ident, Column[] columns, Transform[] partitions,
            Map properties, Constraint[] constraints) {
        return new Definition(mode, ident, null, columns, partitions, properties, constraints).in(name);
    }

    private Definition definition(String mode, Identifier ident, TableInfo info) {
        return definition(mode, ident, info.columns(), info.partitions(), info.properties(), info.constraints());
    }

    private Table created(Definition definition, Identifier ident) {
        ask("create", new Object[] {definition, null});
        try {
            return loadTable(ident);
        } catch (NoSuchTableException gone) {
            throw new IllegalStateException(gone);
        }
    }

    public Table createTable(Identifier ident, TableInfo info) {
        return created(definition("create", ident, info), ident);
    }

    public Table createTable(Identifier ident, Column[] columns, Transform[] partitions, Map properties) {
        return created(definition("create", ident, columns, partitions, properties, new Constraint[0]), ident);
    }

    public Table createTableLike(Identifier ident, TableInfo info, Table source) {
        return createTable(ident, info);
    }

    public StagedTable stageCreate(Identifier ident, TableInfo info) {
        return new NewTable(definition("create", ident, info));
    }

    public StagedTable stageReplace(Identifier ident, TableInfo info) {
        return new NewTable(definition("replace", ident, info));
    }

    public StagedTable stageCreateOrReplace(Identifier ident, TableInfo info) {
        return new NewTable(definition("create_or_replace", ident, info));
    }

    // ---------------------------------------------------------------- changes

    public Table alterTable(Identifier ident, TableChange[] changes) throws NoSuchTableException {
        Table table = loadTable(ident);
        ask("alter", new Object[] {table, Changes.told(changes), Changes.ofPipeline(table.schema(), changes)});
        return loadTable(ident);
    }

    public String toString() { return "pydelta.NamedTables(" + name + ")"; }
}
