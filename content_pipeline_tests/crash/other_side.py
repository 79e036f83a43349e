"""What must be so after any crash, seen from the provider and the folder alone.

What belongs here: assertions that never read the ledger: it could agree with itself and be wrong.
"""

from collections import Counter
from pathlib import Path

from content_pipeline.sandbox.client import SandboxClient
from content_pipeline_tests.operations.small_site import (
    page_text,
    path_of,
    rows_of,
    sitemap_paths,
    writes,
)


def assert_paid_once(sandbox: SandboxClient, towns: int, *, steps: int = 1) -> None:
    """Every step of every page was billed exactly once, and no attempt was ever sent twice."""
    truth = sandbox.truth()
    assert sorted(truth["generations_by_page_job_id"].values()) == [steps] * towns
    assert set(truth["creates_by_attempt_id"].values()) == {1}


def assert_written_once(folder: Path, towns: int, *, kills: int = 1) -> None:
    """Every page stands in its first revision, states its facts and was written exactly once.

    The folder logs a write right after it, so each kill may take the line of one write away: a
    page that stands there without a line was written once, and no page has two.
    """
    rows = rows_of(towns)
    logged = Counter(writes(folder))
    expected = {(path_of(row), 1) for row in rows}
    assert set(logged.values()) == {1}
    assert logged.keys() <= expected
    assert len(expected - logged.keys()) <= kills
    for row in rows:
        text = page_text(folder, row)
        assert text is not None
        assert " rev=1 " in text
        assert row["population"] in text


def assert_announced(folder: Path, towns: int) -> None:
    """Sitemap and front page list every page."""
    paths = sorted(path_of(row) for row in rows_of(towns))
    assert sitemap_paths(folder) == paths
    front = (folder / "index.html").read_text()
    assert all(path.strip("/") in front for path in paths)


def assert_all_is_well(
    sandbox: SandboxClient, folder: Path, towns: int, *, kills: int = 1, steps: int = 1
) -> None:
    """Nothing is missing, nothing was paid or written twice."""
    assert_paid_once(sandbox, towns, steps=steps)
    assert_written_once(folder, towns, kills=kills)
    assert_announced(folder, towns)
