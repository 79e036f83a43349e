"""Offline stand-ins for the services the pipeline talks to, over real HTTP on loopback.

What belongs here: servers with the wire behaviour of the real services, seeded latency and faults,
and a truth of their own that a test or a demonstration can hold against the ledger. Nothing of
the pipeline but ``core`` is imported, and nothing of the pipeline knows that it talks to a sandbox.
"""
