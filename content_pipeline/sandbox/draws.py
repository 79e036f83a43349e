"""Counters and seeded draws behind a plan of faults, whatever its rules are about.

What belongs here: how often something was asked and has struck, and the draw of one request. The
draw depends on the seed, the rule and the request's key alone, never on the order of arrival.
"""

import random
from collections import Counter


class Draws:
    """The memory of one running plan. Not thread-safe: it belongs to the server's event loop."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._requests: Counter[str] = Counter()
        self._seen: Counter[str] = Counter()
        self._fired: Counter[int] = Counter()

    def counted(self, operation: str, key: str) -> int:
        """Count a request; its number among those of its operation, from 1."""
        self._seen[key] += 1
        self._requests[operation] += 1
        return self._requests[operation]

    def strikes(self, rule: int, times: int | None, probability: float | None, key: str) -> bool:
        """Whether a rule whose conditions hold does happen; counted when it does."""
        if times is not None and self._fired[rule] >= times:
            return False
        if probability is not None and self._draw(rule, key) >= probability:
            return False
        self._fired[rule] += 1
        return True

    def _draw(self, rule: int, key: str) -> float:
        # The same key may come again (a client that retries): each time is a draw of its own.
        seed = f"fault {self._seed} {rule} {key} {self._seen[key]}"
        return random.Random(seed).random()  # noqa: S311  # seeded on purpose
