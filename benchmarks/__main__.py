"""``python -m benchmarks``: which benchmarks, how many pages, how often."""

import argparse
import signal
import sys
from collections.abc import Callable, Sequence
from types import FrameType

from rich.console import Console

from benchmarks.backfill import bench_backfill
from benchmarks.buckets import bench_buckets
from benchmarks.cap import bench_cap
from benchmarks.drift import bench_drift
from benchmarks.fresh import bench_fresh
from benchmarks.hidden_limit import HIDDEN_LIMIT, bench_hidden_limit
from benchmarks.lane import bench_lane
from benchmarks.ledger import bench_ledger
from benchmarks.nightly import bench_nightly
from benchmarks.page_cost import bench_page_cost
from benchmarks.publishing import bench_publishing
from benchmarks.rerun import bench_rerun
from benchmarks.sensors import bench_sensors
from benchmarks.waiting import bench_waiting
from benchmarks.wordpress import bench_wordpress

NAMES = (
    "backfill",
    "buckets",
    "cap",
    "drift",
    "lane",
    "ledger",
    "limit",
    "nightly",
    "page",
    "publishing",
    "rerun",
    "sensors",
    "waiting",
    "wordpress",
)


def main() -> None:
    """Run what was asked for, all but ``fresh`` by default."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}; all")
    parser.add_argument("--pages", type=int, default=240, help="topics of the example (240)")
    parser.add_argument("--rounds", type=int, default=3, help="of lane, ledger and page (3)")
    parser.add_argument(
        "--limit", type=int, default=HIDDEN_LIMIT, help=f"calls the provider takes ({HIDDEN_LIMIT})"
    )
    parser.add_argument("--faulty-pages", type=int, default=50, help="of wordpress, per fault (50)")
    parser.add_argument("--drafts", type=int, default=1_000, help="of publishing (1000)")
    parser.add_argument("--published", type=int, default=10_000, help="pages of drift (10000)")
    parser.add_argument(
        "--ledger-pages", type=int, default=1_000_000, help="at most, of sensors (1000000)"
    )
    parser.add_argument("--many", type=int, default=1_000_000, help="pages of buckets (1000000)")
    parser.add_argument("--buckets", type=int, default=10_000, help="of buckets (10000)")
    parser.add_argument("--backfill", type=int, default=1_000, help="pages of backfill (1000)")
    parser.add_argument("--night", type=int, default=10_000, help="pages of nightly (10000)")
    parser.add_argument("--fresh", action="store_true", help="also `make run` in a fresh clone")
    asked = parser.parse_args()
    unknown = sorted(set(asked.names) - set(NAMES))
    if unknown:
        parser.error(f"no benchmark is called {', '.join(unknown)}; there are {', '.join(NAMES)}")
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        _measure(asked.names or ([] if asked.fresh else NAMES), asked)
    except KeyboardInterrupt:
        sys.exit(130)  # what a shell expects of a program that Ctrl-C ended


def _measure(names: Sequence[str], asked: argparse.Namespace) -> None:
    console = Console()
    benches: dict[str, Callable[[], None]] = {
        "backfill": lambda: bench_backfill(console, pages=asked.backfill),
        "buckets": lambda: bench_buckets(console, pages=asked.many, buckets=asked.buckets),
        "cap": lambda: bench_cap(console),
        "drift": lambda: bench_drift(console, pages=asked.published),
        "ledger": lambda: bench_ledger(console, pages=asked.pages, rounds=asked.rounds),
        "lane": lambda: bench_lane(console, pages=asked.pages, rounds=asked.rounds),
        "limit": lambda: bench_hidden_limit(console, hidden_limit=asked.limit),
        "nightly": lambda: bench_nightly(console, pages=asked.night),
        "page": lambda: bench_page_cost(console, pages=asked.pages, rounds=asked.rounds),
        "publishing": lambda: bench_publishing(console, pages=asked.drafts),
        "rerun": lambda: bench_rerun(console, pages=asked.pages),
        "sensors": lambda: bench_sensors(console, most=asked.ledger_pages),
        "waiting": lambda: bench_waiting(console),
        "wordpress": lambda: bench_wordpress(console, pages=asked.faulty_pages),
    }
    for name, bench in benches.items():
        if name in names:
            bench()
    if asked.fresh:
        bench_fresh(console)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    main()
