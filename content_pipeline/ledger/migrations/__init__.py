"""The ledger's history of schemas; each migration is a step that never changes afterwards."""
