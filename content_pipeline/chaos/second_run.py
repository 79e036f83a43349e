"""Between two runs: people edit pages by hand, and the table changes.

What belongs here: drawing whose pages, and doing it. That no edit is overwritten is judged by the
CMS's own history.
"""

import csv
import random
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from content_pipeline.chaos.project import Arena, path_of, table_of
from content_pipeline.sandbox.cms.people import Act

APPENDED = "<p>Opening hours were checked by telephone.</p>"

MOST_SHARE = 4
"""Of the pages at most one in so many is edited, and as many others get new input only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """Names of the topics whose input changes before the second run."""

    edited: frozenset[str]
    """Those whose page a person edits before."""
    renewed: frozenset[str]

    @property
    def all(self) -> frozenset[str]:
        """Everything that changes in the table."""
        return self.edited | self.renewed


def draw_changes(seed: int, names: Sequence[str], edits: int) -> Changes:
    """``edits`` pages to edit by hand, and as many others, of ``names``."""
    draw = random.Random(f"edits {seed}")  # noqa: S311  # seeded on purpose
    count = min(edits, len(names) // MOST_SHARE)
    drawn = draw.sample(sorted(names), 2 * count)
    return Changes(edited=frozenset(drawn[:count]), renewed=frozenset(drawn[count:]))


def edit_by_hand(arena: Arena, names: Collection[str]) -> None:
    """Let a person add a sentence to each page of ``names`` that is live."""
    assert arena.cms is not None
    paths = {path_of(name) for name in names}
    for page in arena.cms.live():
        if page["path"] in paths:
            arena.cms.by_hand(Act(act="edit", page_id=page["page_id"], appended=APPENDED))


def change_inputs(arena: Arena, names: Collection[str]) -> None:
    """Give each topic of ``names`` one berth more in the table."""
    table = table_of(arena.project.root)
    with table.open(newline="", encoding="utf-8") as file:
        header, *rows = list(csv.reader(file))
    berths, name = header.index("berths"), header.index("name")
    for row in rows:
        if row[name] in names:
            row[berths] = f"{int(row[berths].replace(',', '')) + 1:,}"
    with table.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])
