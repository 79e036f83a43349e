"""Chaos: the promise under fire, judged by what the other side says.

What belongs here: a drawn plan of faults, a throwaway project, workers that are killed, and the
count of broken promises from the records of provider and folder. Nothing here is used by a site.
"""
