"""Draw docs/states.md from the table in content_pipeline/core/states.py.

``python scripts/draw_states.py`` rewrites the page; a test compares the two.
"""

import inspect
import re
from pathlib import Path

from content_pipeline.core import states
from content_pipeline.core.states import FINAL, MOVES, NEXT, PageJobState, public_status

PAGE = Path(__file__).parent.parent / "docs/states.md"

MAIN_WAY = (
    PageJobState.QUEUED,
    PageJobState.RESERVED,
    PageJobState.GENERATING,
    PageJobState.GENERATED,
    PageJobState.VALIDATING,
    PageJobState.READY_TO_PUBLISH,
    PageJobState.PUBLISHING,
    PageJobState.PUBLISHED,
)


def meanings() -> dict[str, str]:
    """The docstring under each member, which Python itself does not keep."""
    source = inspect.getsource(PageJobState)
    found = re.findall(r'    [A-Z_]+ = "(\w+)"\n    """(.*?)"""', source, flags=re.DOTALL)
    return {name: " ".join(text.split()) for name, text in found}


def render() -> str:
    """The whole page."""
    lines = [
        "# The life of a page job",
        "",
        "Drawn from `content_pipeline/core/states.py` by `python scripts/draw_states.py`. Every",
        "move is one compare-and-swap under the page's lease with a row in an append-only log; a",
        "move that is not below is refused by the database itself.",
        "",
        "```mermaid",
        "stateDiagram-v2",
        "    [*] --> queued: asked for",
    ]
    for source, to in MOVES:
        if source in MAIN_WAY and to in MAIN_WAY:
            lines.append(f"    {source} --> {to}")
    for source, to in MOVES:
        waits = {PageJobState.FAILED_RETRYABLE, *_uncertain()}
        if (source in waits or to in waits) and to not in FINAL:
            lines.append(f"    {source} --> {to}")
    lines += ["    published --> [*]", "```", ""]
    lines += [
        "The ways to `failed_terminal`, `dead_lettered`, `cancelled` and `superseded` are in the"
    ]
    lines += ["table of moves.", "", "## States", "", "| state | people see | meaning | next |"]
    lines += ["|---|---|---|---|"]
    texts = meanings()
    for state in PageJobState:
        public = public_status(state, cancel_requested=False)
        lines.append(f"| `{state}` | {public} | {texts[state.value]} | {NEXT[state]} |")
    lines += ["", "## Moves", "", "| from | to | because |", "|---|---|---|"]
    lines += [f"| `{source}` | `{to}` | {why} |" for (source, to), why in MOVES.items()]
    return "\n".join(lines) + "\n"


def _uncertain() -> tuple[PageJobState, ...]:
    return (PageJobState.GENERATION_UNCERTAIN, PageJobState.PUBLISH_UNCERTAIN)


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
    print(f"{len(MOVES)} moves of {len(states.PageJobState)} states drawn in {PAGE}")
