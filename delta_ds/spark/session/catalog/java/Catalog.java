package pydelta;

import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.Arrays;
import java.util.function.Supplier;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.connector.catalog.CatalogExtension;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.DelegatingCatalogExtension;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.catalog.StagingTableCatalog;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.catalog.TableCatalogCapability;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.catalog.TableInfo;
import org.apache.spark.sql.connector.catalog.V1Table;
import org.apache.spark.sql.connector.catalog.constraints.Constraint;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** The session catalog with tables of ours in it. Everything else goes to the catalog behind, untouched. */
public class Catalog extends DelegatingCatalogExtension implements StagingTableCatalog {
    // Provider names, in lower case, that stand for this package.
    private static volatile Set providers = new HashSet();

    public static void providers(String[] names) {
        providers = new HashSet(Arrays.asList(names));
    }

    static boolean isOurs(String provider) {
        return provider != null && providers.contains(provider.toLowerCase(java.util.Locale.ROOT));
    }

    /** The path that an identifier is, as in delta.`/path`; null if it is a name. */
    static String path(Identifier ident) {
        String[] namespace = ident.namespace();
        if (namespace.length != 1 || !isOurs(namespace[0])) return null;
        return ident.name().indexOf('/') >= 0 ? ident.name() : null;
    }

    /** The setting that names the catalog to stand in front of; without it that is Spark's own. */
    static final String BEHIND = "behind";
    private String behind = null;
    private CaseInsensitiveStringMap options = null;

    public void initialize(String name, CaseInsensitiveStringMap options) {
        super.initialize(name, options);
        this.options = options;
        this.behind = options.get(BEHIND);
    }

    /** Puts the other catalog between this one and Spark's own, which is known only after both were made. */
    private synchronized void settle() {
        if (behind == null) return;
        try {
            CatalogPlugin other = (CatalogPlugin) org.apache.spark.util.Utils.classForName(behind, true, false)
                .getConstructor(new Class[0]).newInstance(new Object[0]);
            other.initialize(super.name(), options);
            if (other instanceof CatalogExtension) ((CatalogExtension) other).setDelegateCatalog(delegate);
            delegate = other;
            behind = null;
        } catch (Exception error) {
            org.apache.spark.unsafe.Platform.throwException(error);
        }
    }

    public Identifier[] listTables(String[] namespace)
            throws org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException {
        settle();
        return super.listTables(namespace);
    }

    public boolean namespaceExists(String[] namespace) {
        settle();
        return super.namespaceExists(namespace);
    }

    public String[][] listNamespaces() throws org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException {
        settle();
        return super.listNamespaces();
    }

    public Map loadNamespaceMetadata(String[] namespace)
            throws org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException {
        settle();
        return super.loadNamespaceMetadata(namespace);
    }

    public void createNamespace(String[] namespace, Map metadata)
            throws org.apache.spark.sql.catalyst.analysis.NamespaceAlreadyExistsException {
        settle();
        super.createNamespace(namespace, metadata);
    }

    public Set capabilities() {
        settle();
        Set found = new HashSet(super.capabilities());
        found.add(TableCatalogCapability.SUPPORT_COLUMN_DEFAULT_VALUE);
        found.add(TableCatalogCapability.SUPPORTS_CREATE_TABLE_WITH_GENERATED_COLUMNS);
        found.add(TableCatalogCapability.SUPPORTS_CREATE_TABLE_WITH_IDENTITY_COLUMNS);
        return found;
    }

    // ---------------------------------------------------------------- which table

    private Table load(Identifier ident, String version, String timestamp) throws NoSuchTableException {
        String path = path(ident);
        if (path != null) {
            return DeltaTable.of((Supplier) Python.ask("open",
                new Object[] {path, ident.toString(), null, version, timestamp}));
        }
        settle();
        Table entry = super.loadTable(ident);
        if (!(entry instanceof V1Table) || !isOurs(((V1Table) entry).v1Table())) {
            if (version != null) return super.loadTable(ident, version);
            if (timestamp != null) return super.loadTable(ident, Long.parseLong(timestamp));
            return entry instanceof V1Table ? ForeignTable.ofSource((V1Table) entry) : entry;
        }
        CatalogTable known = ((V1Table) entry).v1Table();
        return DeltaTable.of((Supplier) Python.ask("open",
            new Object[] {null, entry.name(), entry(known), version, timestamp})).under(known);
    }

    /** The table of a path that a command is for, which reads no rows. */
    static DeltaTable commanded(SparkSession session, Identifier ident) {
        return DeltaTable.of((Supplier) Python.ask("open_for_command", session,
            new Object[] {path(ident), ident.toString()}));
    }

    /** An entry as Python reads it. */
    static String entry(CatalogTable known) {
        Map said = new HashMap();
        said.put("schema", known.identifier().database().getOrElse(new Nothing()));
        said.put("name", known.identifier().table());
        java.net.URI at = known.location();
        // As users write it; of this machine with the escapes of a URI.
        boolean local = at.getScheme() == null || at.getScheme().equals("file");
        said.put("location", local ? at.toString() : new org.apache.hadoop.fs.Path(at).toString());
        said.put("provider", ((String) known.provider().get()).toLowerCase(java.util.Locale.ROOT));
        said.put("managed", Boolean.valueOf("MANAGED".equals(known.tableType().name())));
        said.put("owner", known.owner());
        return Python.json(said);
    }

    private static final class Nothing extends scala.runtime.AbstractFunction0 {
        public Object apply() { return ""; }
    }

    static boolean isOurs(CatalogTable entry) {
        return entry.provider().isDefined() && isOurs((String) entry.provider().get());
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
        settle();
        String path = path(ident);
        return path == null ? super.tableExists(ident)
            : Boolean.TRUE.equals(Python.ask("exists", new Object[] {path}));
    }

    public boolean dropTable(Identifier ident) {
        String path = path(ident);
        if (path == null) return super.dropTable(ident);
        return ((Boolean) Python.ask("drop_path", new Object[] {path})).booleanValue();
    }

    // ---------------------------------------------------------------- new tables

    private boolean makes(Identifier ident, Map properties) {
        if (path(ident) != null) return true;
        Object provider = properties.get(TableCatalog.PROP_PROVIDER);
        return isOurs(provider == null ? SparkSession.active().conf().get("spark.sql.sources.default")
            : (String) provider);
    }

    private static Definition definition(String mode, Identifier ident, TableInfo info) {
        return new Definition(mode, ident, path(ident), info.columns(), info.partitions(), info.properties(),
            info.constraints());
    }

    public Table createTable(Identifier ident, TableInfo info)
            throws org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException,
            org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException {
        if (!makes(ident, info.properties())) {
            return super.createTable(ident, info.columns(), info.partitions(), info.properties());
        }
        Python.ask("create", new Object[] {definition("create", ident, info), null});
        try {
            return loadTable(ident);
        } catch (NoSuchTableException gone) {
            throw new IllegalStateException(gone);
        }
    }

    public Table createTable(Identifier ident, Column[] columns, Transform[] partitions, Map properties)
            throws org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException,
            org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException {
        if (!makes(ident, properties)) return super.createTable(ident, columns, partitions, properties);
        Python.ask("create", new Object[] {
            new Definition("create", ident, path(ident), columns, partitions, properties, new Constraint[0]), null});
        try {
            return loadTable(ident);
        } catch (NoSuchTableException gone) {
            throw new IllegalStateException(gone);
        }
    }

    public StagedTable stageCreate(Identifier ident, TableInfo info)
            throws org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException,
            org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException {
        if (makes(ident, info.properties())) return new NewTable(definition("create", ident, info));
        return new ForeignTable(this, ident,
            super.createTable(ident, info.columns(), info.partitions(), info.properties()));
    }

    public StagedTable stageReplace(Identifier ident, TableInfo info)
            throws org.apache.spark.sql.catalyst.analysis.NoSuchTableException,
            org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException {
        if (makes(ident, info.properties())) return new NewTable(definition("replace", ident, info));
        return replaced(ident, info);
    }

    public StagedTable stageCreateOrReplace(Identifier ident, TableInfo info)
            throws org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException {
        if (makes(ident, info.properties())) return new NewTable(definition("create_or_replace", ident, info));
        return replaced(ident, info);
    }

    private StagedTable replaced(Identifier ident, TableInfo info) {
        try {
            // As Spark does in a catalog that cannot stage.
            if (super.tableExists(ident)) super.dropTable(ident);
            return new ForeignTable(this, ident,
                super.createTable(ident, info.columns(), info.partitions(), info.properties()));
        } catch (Exception error) {
            org.apache.spark.unsafe.Platform.throwException(error);
            return null;
        }
    }

    public Table createTableLike(Identifier ident, TableInfo info, Table source)
            throws org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException,
            org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException {
        return createTable(ident, info);
    }

    // ---------------------------------------------------------------- changes

    public Table alterTable(Identifier ident, TableChange[] changes) throws NoSuchTableException {
        Table table = loadTable(ident);
        if (!(table instanceof DeltaTable)) return super.alterTable(ident, changes);
        Python.ask("alter", new Object[] {table, Changes.told(changes), Changes.ofPipeline(table.schema(), changes)});
        return loadTable(ident);
    }

    public String toString() { return "pydelta.Catalog in front of " + delegate; }
}
