"""Where a page stands on each of the three assets: done, waiting, failed or stopped.

What belongs here: the reading of a page's report as an asset's partition. No Dagster, no SQL.
"""

from collections.abc import Iterable
from enum import StrEnum

from sqlalchemy import RowMapping

from content_pipeline.core.retries import CLOSES_CIRCUIT
from content_pipeline.core.states import FINAL, PageJobState, Stage
from content_pipeline.ledger.reports import PageReport
from content_pipeline.ledger.schema import AttemptKind

_S = PageJobState


class Standing(StrEnum):
    """What an asset's partition is shown as."""

    DONE = "done"
    """Green: the draft is stored, the page valid, the artifact published and proved."""
    WAITING = "waiting"
    """Grey: a later run goes on with it."""
    FAILED = "failed"
    """Red: a person must act."""
    STOPPED = "stopped"
    """Grey: a person cancelled it, a newer page job took its place, or its topic left the table."""


_VALIDATED = frozenset(
    {
        _S.READY_TO_PUBLISH,
        _S.PUBLISHING,
        _S.PUBLISH_UNCERTAIN,
        _S.FAILED_RETRYABLE,
        _S.PUBLISHED,
        _S.WITHDRAWING,
        _S.WITHDRAWN,
    }
)
"""With a draft, these come after its validation."""


def standing(page: PageReport, stage: Stage) -> Standing:
    """Where ``page`` stands on the asset of ``stage``."""
    if _is_done(page, stage):
        return Standing.DONE
    if page.needs_person or page.failure_class in CLOSES_CIRCUIT:
        return Standing.FAILED
    if page.state in FINAL:
        return Standing.STOPPED
    return Standing.WAITING


def _is_done(page: PageReport, stage: Stage) -> bool:
    if stage is Stage.DRAFT:
        return page.revision is not None
    if stage is Stage.PAGE:
        return page.revision is not None and (page.state in _VALIDATED or _was_published(page))
    return page.state is _S.PUBLISHED


def _was_published(page: PageReport) -> bool:
    """Whether its publishing was tried: a draft comes that far only after its validation."""
    return any(item.revision == page.revision for item in page.of_kind(AttemptKind.PUBLISH))


_REACHED_BY: dict[tuple[str | None, str], Stage] = {
    (_S.VALIDATING, _S.READY_TO_PUBLISH): Stage.PAGE,
    (_S.PUBLISHING, _S.PUBLISHED): Stage.ARTIFACT,
    (_S.PUBLISH_UNCERTAIN, _S.PUBLISHED): Stage.ARTIFACT,
    (_S.GENERATING, _S.GENERATED): Stage.DRAFT,
    (_S.QUEUED, _S.GENERATED): Stage.DRAFT,
    (_S.GENERATION_UNCERTAIN, _S.GENERATED): Stage.DRAFT,
}


def reached_by(worker: str, transitions: Iterable[RowMapping]) -> frozenset[Stage]:
    """The stages that ``worker`` itself brought a page through; the others it found done."""
    moves = [(row["from_state"], row["to_state"]) for row in transitions if row["worker"] == worker]
    return frozenset(_REACHED_BY[move] for move in moves if move in _REACHED_BY)


def is_news(page: PageReport, stage: Stage) -> bool:
    """Whether the site shows something else than the newest materialization says."""
    withdrawn = page.withdrawn_at is not None and page.state is PageJobState.WITHDRAWN
    return stage is Stage.ARTIFACT and (page.awaits_decision or withdrawn)


def in_order(stages: frozenset[Stage]) -> list[Stage]:
    """``stages`` as a page goes through them."""
    return [stage for stage in Stage if stage in stages]
