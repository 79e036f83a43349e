"""Offline stand-ins for the services the pipeline talks to, over real HTTP on loopback.

The provider of completions stands here, the CMS and what is told of its pages in ``cms``. Both are
served by ``wire`` and ``connections``, run by ``process`` and ``background``, and remember in a
``journal_file``.

What belongs here: servers with the wire behaviour of the real services, seeded latency and faults,
and a truth of their own that a test or a demonstration can hold against the ledger. Nothing of
the pipeline but ``core`` is imported, and nothing of the pipeline knows that it talks to a sandbox.
"""
