"""Ties this distribution to the delta-ds of the same version: its modules name what that one has inside."""

from __future__ import annotations

from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class SameVersion(MetadataHookInterface):
    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        metadata["dependencies"] = [f"delta-ds=={metadata['version']}"]
