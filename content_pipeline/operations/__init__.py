"""The verbs of the pipeline, one module each: every outward call is intent, call, outcome.

Operations bring pure decisions of ``core``, the ledger and adapters together. Adapters arrive as
arguments typed by ``core.ports``; nothing here knows a vendor, a file format or Dagster.
"""
