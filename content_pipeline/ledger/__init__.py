"""The ledger: the only SQL of the project, and the only truth about pages, calls and money."""
