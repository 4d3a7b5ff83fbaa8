package pydelta;

import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceV2;

/** The data source in Python by the name of this class, where `pydelta` is the name of another one. */
public final class PortableProvider extends PythonDataSourceV2 {
    public void setShortName(String asked) {
        super.setShortName("pydelta");
    }
}
