"""What users of Spark hold: `DeltaTable`, its builder, descriptions of tables."""
