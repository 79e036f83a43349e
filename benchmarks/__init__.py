"""Benchmarks: how much the pipeline costs beside the calls it makes. ``python -m benchmarks``.

What belongs here: measuring and printing. Everything compared is measured in the same run on the
same machine, so read the ratios; nothing is asserted, since a busy machine proves nothing.
"""
