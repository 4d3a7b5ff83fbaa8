"""What a store can be told: each setting once, with its names in fsspec, Hadoop, delta-rs and the clouds' own tools."""
