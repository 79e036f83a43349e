"""Pure decisions: no clock, network, database, file or Dagster is touched below this package."""
