"""Settings of the project: a hook registers the package in the session that Kedro's datasets take."""

from typing import Any

from kedro.framework.hooks import hook_impl


class DeltaHooks:
    """Before the catalog reads or writes anything."""

    @hook_impl
    def after_context_created(self, context: Any) -> None:
        from pyspark.sql import SparkSession

        import delta_ds

        delta_ds.register(SparkSession.builder.appName("shop").getOrCreate())


HOOKS = (DeltaHooks(),)
CONFIG_LOADER_ARGS = {"base_env": "base", "default_run_env": "base"}
