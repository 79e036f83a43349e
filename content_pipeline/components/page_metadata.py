"""What Dagster shows of one page: a report of the ledger as metadata, one function per asset.

What belongs here: choosing and typing the values, in the order people read them. Ids and hashes
are text, because Dagster plots every number. Never a prompt, nor what a model wrote but its title
and, where the site's owners want it, a preview.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import dagster as dg

from content_pipeline.core.article import Article
from content_pipeline.core.failures import EXPLANATIONS
from content_pipeline.core.preview import preview_of
from content_pipeline.core.states import NEXT, PageJobState
from content_pipeline.ledger.reports import AttemptReport, PageReport
from content_pipeline.ledger.schema import AttemptKind, AttemptState

Metadata = dict[str, dg.MetadataValue]


@dataclass(frozen=True, slots=True, kw_only=True)
class PageInRun:
    """One page as a run leaves it."""

    page: PageReport
    worker: str | None
    """The run's name in the ledger; None when the page is told of without a run."""
    reused: bool
    """The run found the asset done and did nothing for it."""

    @property
    def run_usd(self) -> Decimal:
        """What this run's own calls for the page cost; without a run, all calls."""
        if self.worker is None:
            return self.page.usd
        own = (item.usd for item in self.page.attempts if item.worker == self.worker)
        return sum(own, Decimal(0))


def draft_metadata(seen: PageInRun) -> Metadata:
    """How the draft came about and what it cost."""
    return _head(seen) | _generation(seen) | _identity(seen.page) | _log(seen.page)


def page_metadata(seen: PageInRun, article: Article) -> Metadata:
    """What was validated."""
    measures: Metadata = {
        "title": dg.MetadataValue.text(article.title),
        "words": dg.MetadataValue.int(article.words()),
        "sections": dg.MetadataValue.int(len(article.sections)),
    }
    return _head(seen) | measures | _identity(seen.page)


def preview_metadata(article: Article) -> Metadata:
    """The beginning of what the model wrote, for sites that show it."""
    return {"preview": dg.MetadataValue.md(preview_of(article))}


def artifact_metadata(seen: PageInRun, file: Path | None) -> Metadata:
    """Where the page is, and everything that led there; ``file`` when the CMS is a folder."""
    page = seen.page
    place: Metadata = {}
    if page.remote_url:
        place["url"] = dg.MetadataValue.url(page.remote_url)
    if file is not None:
        place["file"] = dg.MetadataValue.path(file)
    if page.published_title:
        place["title"] = dg.MetadataValue.text(page.published_title)
    if page.verified_at:
        place["verified_at"] = dg.MetadataValue.timestamp(page.verified_at)
    publishing: Metadata = {
        "publish_attempts": dg.MetadataValue.int(len(page.of_kind(AttemptKind.PUBLISH))),
    }
    return (
        place
        | _head(seen)
        | _generation(seen)
        | publishing
        | _identity(page)
        | {"remote_id": dg.MetadataValue.text(page.remote_id or "none")}
        | _log(page)
    )


def next_action(page: PageReport) -> str:
    """What happens next with the page, and who does it."""
    if page.awaits_decision and page.state is PageJobState.PUBLISHED:
        return "a person decides which text stands; see `content-pipeline conflicts`"
    return NEXT[page.state]


def check_metadata(page: PageReport) -> Metadata:
    """The story of a page so far, whatever became of it; all text, as no plot of it makes sense."""
    told = {"state": page.state.value, "next_action": next_action(page)}
    if page.failure_class:
        told |= {
            "error_class": page.failure_class.value,
            "error": page.failure_message or "",
            "meaning": EXPLANATIONS[page.failure_class],
        }
    if page.site_change:
        told |= {"on_the_site": page.site_change_reason or page.site_change.value}
    if page.topic_is_retired:
        told |= {"topic": "no longer in the table"}
    told |= {
        "attempts": str(len(page.of_kind(AttemptKind.GENERATE))),
        "publish_attempts": str(len(page.of_kind(AttemptKind.PUBLISH))),
        "cost_in_all": _dollars(page),
        "generation_version": page.generation_version,
        "page_job_id": page.page_job_id,
    }
    metadata: Metadata = {name: dg.MetadataValue.text(value) for name, value in told.items()}
    if page.state is PageJobState.FAILED_RETRYABLE:
        metadata["next_attempt_at"] = dg.MetadataValue.timestamp(page.next_attempt_at)
    return metadata | _timeline(page)


def _head(seen: PageInRun) -> Metadata:
    return {
        "topic": dg.MetadataValue.text(seen.page.name),
        "reused": dg.MetadataValue.bool(seen.reused),
    }


def _generation(seen: PageInRun) -> Metadata:
    page = seen.page
    calls = page.of_kind(AttemptKind.GENERATE)
    answered = [item for item in calls if item.state == AttemptState.SUCCEEDED]
    last = answered[-1] if answered else None
    model = (last.model if last else None) or "unknown"
    return {
        "cost_usd": dg.MetadataValue.float(float(seen.run_usd)),
        "cost_in_all": dg.MetadataValue.text(_dollars(page)),
        "attempts": dg.MetadataValue.int(len(calls)),
        "error_classes": dg.MetadataValue.text(", ".join(page.error_classes) or "none"),
        "input_tokens": dg.MetadataValue.int(sum(item.input_tokens for item in calls)),
        "output_tokens": dg.MetadataValue.int(sum(item.output_tokens for item in calls)),
        "latency_s": dg.MetadataValue.float(round((last.latency_s if last else None) or 0.0, 3)),
        "model": dg.MetadataValue.text(model),
        "provider_request_id": dg.MetadataValue.text((last.request_id if last else None) or "none"),
    }


def _dollars(page: PageReport) -> str:
    uncertain = page.uncertain_usd
    note = f", of which ${uncertain.normalize():f} may not have been billed" if uncertain else ""
    return f"${page.usd.normalize():f}{note}"


def _identity(page: PageReport) -> Metadata:
    return {
        "generation_version": dg.MetadataValue.text(page.generation_version),
        "revision": dg.MetadataValue.int(page.revision or 0),
        "page_job_id": dg.MetadataValue.text(page.page_job_id),
    }


_LOG_COLUMNS = (
    ("kind", "string"),
    ("step", "string"),
    ("number", "int"),
    ("state", "string"),
    ("error_class", "string"),
    ("error", "string"),
    ("input_tokens", "int"),
    ("output_tokens", "int"),
    ("usd", "float"),
    ("latency_s", "float"),
    ("started_at", "string"),
    ("request_id", "string"),
    ("worker", "string"),
)


def _log(page: PageReport) -> Metadata:
    """Every attempt of the page job, one row each."""
    rows = [_log_row(item) for item in page.attempts]
    return {"attempt_log": table(_LOG_COLUMNS, rows)} if rows else {}


def _log_row(item: AttemptReport) -> dict[str, str | int | float]:
    return {
        "kind": item.kind.value,
        "step": item.step,
        "number": item.number,
        "state": _state(item),
        "error_class": item.failure_class or "",
        "error": item.failure_message or "",
        "input_tokens": item.input_tokens,
        "output_tokens": item.output_tokens,
        "usd": float(item.usd),
        "latency_s": round(item.latency_s or 0.0, 3),
        "started_at": item.started_at.isoformat(timespec="seconds"),
        "request_id": item.request_id or "",
        "worker": item.worker,
    }


def _timeline(page: PageReport) -> Metadata:
    """The attempts in few columns: Dagster shows a check's metadata in a narrow pane, by name."""
    names = ("kind", "step", "number", "state", "error_class", "usd", "started_at")
    rows = [{name: _log_row(item)[name] for name in names} for item in page.attempts]
    columns = [column for column in _LOG_COLUMNS if column[0] in names]
    return {"timeline": table(columns, rows)} if rows else {}


def _state(item: AttemptReport) -> str:
    return f"{item.state}, recovered by asking" if item.recovered else item.state


def table(
    columns: Sequence[tuple[str, str]], rows: Sequence[Mapping[str, str | int | float]]
) -> dg.MetadataValue:
    """A table as metadata; ``columns``: name and Dagster's name of its type."""
    return dg.MetadataValue.table(
        records=[dg.TableRecord(dict(row)) for row in rows],
        schema=dg.TableSchema([dg.TableColumn(name, kind) for name, kind in columns]),
    )
