"""Lengths of time in words, for people.

What belongs here: nothing but that. Times of day and their zones are shown by the command line.
"""

_UNITS = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))


def in_words(seconds: float) -> str:
    """``seconds`` in its two largest units: "3 h", "1 h 30 min", "0.2 s"."""
    if 0 < seconds < 1:
        return f"{seconds:.1g} s"
    left = round(max(0.0, seconds))
    if left >= 3_600:
        left = round(left / 60) * 60  # nobody wants the seconds of three hours
    parts: list[str] = []
    for name, length in _UNITS:
        count, left = divmod(left, length)
        if count:
            parts.append(f"{count} {name}")
    return " ".join(parts[:2]) or "0 s"
