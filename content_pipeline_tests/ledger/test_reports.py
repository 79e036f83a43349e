"""Reports and overview: what people are shown is what the ledger holds."""

from decimal import Decimal

import pytest

from content_pipeline.core.errors import ConfigurationError
from content_pipeline.core.failures import Failure, FailureClass
from content_pipeline.core.states import PageJobState
from content_pipeline.core.topics import RejectedRow
from content_pipeline.ledger import attempts, effects, overview, reports, spend
from content_pipeline.ledger.database import Ledger
from content_pipeline.ledger.jobs import PageJob
from content_pipeline.ledger.schema import AttemptKind, EffectState, pages
from content_pipeline.ledger.spend import SpendTotals
from content_pipeline_tests.ledger.wanting import (
    current_job,
    job_in,
    leased,
    let_go,
    move_once,
    moved,
    reserved,
    rows_where,
    take_in,
)
from content_pipeline_tests.operations.small_site import path_of, rows_of, settings_of

S = PageJobState


@pytest.fixture
def site(ledger: Ledger, site_name: str) -> str:
    take_in(ledger, settings_of(site_name), rows_of(4))
    return site_name


def failed_call(ledger: Ledger, job: PageJob, usd: str, failure_class: FailureClass) -> str:
    """A generate attempt that failed, with its money kept as uncertain."""
    with ledger.begin() as connection:
        number = attempts.next_number(connection, job.page_job_id, AttemptKind.GENERATE)
    identifier = reserved(ledger, job, number, usd)
    with ledger.begin() as connection:
        attempts.open_attempt(
            connection,
            job,
            AttemptKind.GENERATE,
            number=number,
            worker=f"worker of {job.site}",
            run_id=None,
        )
        failure = Failure(failure_class=failure_class, message="m")
        attempts.fail(connection, identifier, failure)
        spend.keep_as_uncertain(connection, identifier)
    return identifier


def test_pages_are_reported_in_table_order_with_their_attempts(ledger: Ledger, site: str) -> None:
    job, _ = leased(ledger, site, "t1")
    first = failed_call(ledger, job, "0.5", FailureClass.TRANSIENT)
    failed_call(ledger, job, "0.25", FailureClass.THROTTLED)
    with ledger.begin() as connection:
        spend.settle(connection, first, Decimal("0.1"))
        found = reports.page_reports(connection, site)
        (chosen,) = reports.page_reports(connection, site, ["t1", "unknown"])
    assert [report.topic_key for report in found] == ["t0", "t1", "t2", "t3"]
    assert chosen == found[1]
    assert (chosen.usd, chosen.uncertain_usd) == (Decimal("0.35"), Decimal("0.25"))
    assert [(item.number, item.usd, item.is_certain) for item in chosen.attempts] == [
        (1, Decimal("0.1"), True),
        (2, Decimal("0.25"), False),
    ]
    assert chosen.error_classes == ("transient", "throttled")
    assert chosen.of_kind(AttemptKind.PUBLISH) == ()
    assert len(chosen.of_kind(AttemptKind.GENERATE)) == 2
    assert found[0].attempts == ()
    assert found[0].usd == 0


def test_an_attempt_says_which_step_it_was(ledger: Ledger, site: str) -> None:
    job, lease = leased(ledger, site)
    kinds = {"outline": AttemptKind.GENERATE, "article": AttemptKind.GENERATE}
    for number, (step, kind) in enumerate([*kinds.items(), ("publish", AttemptKind.PUBLISH)], 1):
        with ledger.fenced(lease) as connection:
            opened = attempts.open_attempt(
                connection, job, kind, number=number, worker="w", run_id=None, step=step
            )
            attempts.succeed(connection, opened, revision=None, output_hash="hash")
    with ledger.begin() as connection:
        (report,) = reports.page_reports(connection, site, ["t0"])
    assert [item.step for item in report.attempts] == ["outline", "article", "publish"]


def test_a_page_is_reported_as_its_current_job_stands(ledger: Ledger, site: str) -> None:
    job, lease = job_in(ledger, site, S.VALIDATING, "t2")
    moved(ledger, job, lease, S.FAILED_TERMINAL)
    with ledger.begin() as connection:
        (report,) = reports.page_reports(connection, site, ["t2"])
    assert (report.state, report.failure_class, report.failure_message) == (
        S.FAILED_TERMINAL,
        FailureClass.TRANSIENT,
        "it failed",
    )
    assert (report.name, report.path, report.owner) == ("Chur 2", "/chur-2/", "town hall")
    assert (report.revision, report.published_revision) == (1, None)
    assert report.error_classes == ("transient",)


def test_a_topic_is_found_by_whatever_people_have_at_hand(ledger: Ledger, site: str) -> None:
    job, _ = leased(ledger, site, "t3")
    row = rows_of(4)[3]
    with ledger.begin() as connection:
        for handle in ("t3", job.page_id, job.page_job_id, path_of(row)):
            assert reports.find_topic(connection, handle, site) == (site, "t3")
        assert reports.find_topic(connection, job.page_job_id) == (site, "t3")
        assert reports.find_topic(connection, "nothing", site) is None
        assert reports.find_topic(connection, "t3", f"{site}_b") is None


def test_what_several_sites_have_is_asked_back_with_their_names(
    ledger: Ledger, site_name: str
) -> None:
    row = rows_of(1)[0] | {"id": f"id_of_{site_name}", "name": f"Town of {site_name}"}
    one, other = f"{site_name}_a", f"{site_name}_b"
    for name in (other, one):
        take_in(ledger, settings_of(name), [row])
    job = current_job(ledger, one, row["id"])
    (page,) = rows_where(ledger, pages, page_id=job["page_id"])
    with ledger.begin() as connection:
        for handle in (row["id"], page["path"]):
            with pytest.raises(ConfigurationError, match=rf"--site: {one}, {other}$"):
                reports.find_topic(connection, handle)
            assert reports.find_topic(connection, handle, other) == (other, row["id"])
        for handle in (job["page_id"], job["page_job_id"]):
            assert reports.find_topic(connection, handle) == (one, row["id"])


def test_the_history_of_a_topic_holds_all_its_jobs(ledger: Ledger, site: str) -> None:
    first = current_job(ledger, site)["page_job_id"]
    rows = rows_of(4)
    take_in(ledger, settings_of(site), [rows[0] | {"river": "Rhine"}, *rows[1:]])
    second = current_job(ledger, site)["page_job_id"]
    with ledger.begin() as connection:
        found = [row["page_job_id"] for row in reports.earlier_jobs(connection, site, "t0")]
    assert found == [second, first]


def test_the_effects_of_a_page_are_listed(ledger: Ledger, site: str) -> None:
    job, lease = job_in(ledger, site, S.READY_TO_PUBLISH)
    with ledger.fenced(lease) as connection:
        key = effects.begin_publish(connection, job, request_hash="h")
        effects.want_for_site(connection, site, {"sitemap": 0.0}, "o")
        found = reports.page_effects(connection, job.page_id)
    assert [row["effect_key"] for row in found] == [key]


def test_a_site_at_a_glance(ledger: Ledger, site: str) -> None:
    rejected = [
        RejectedRow(row_number=9, key=None, message="row 9: no id"),
        RejectedRow(row_number=8, key=None, message="row 8: no id"),
    ]
    take_in(ledger, settings_of(site), rows_of(4), rejected=rejected)
    job, lease = leased(ledger, site, "t0")
    with ledger.fenced(lease) as connection:
        move_once(connection, job, lease, S.FAILED_RETRYABLE, wait_s=600)
    let_go(ledger, job_in(ledger, site, S.FAILED_TERMINAL, "t1")[1])
    with ledger.begin() as connection:
        effects.want_for_site(connection, site, {"sitemap": 0.0, "index_page": 0.0}, "o")
        (taken, failing) = effects.take_site_effects(connection, site, 60)
        failure = Failure(failure_class=FailureClass.STORAGE, message="m")
        effects.mark(connection, failing.effect_key, EffectState.FAILED, failure)
        status = overview.site_status(connection, site)
    assert taken.effect_key != failing.effect_key
    assert status.topics == 4
    assert status.states == {S.QUEUED: 2, S.FAILED_RETRYABLE: 1, S.FAILED_TERMINAL: 1}
    assert status.failures == {FailureClass.TRANSIENT: 2}
    assert (status.live_pages, status.pending_announcements, status.failed_announcements) == (
        0,
        1,
        1,
    )
    assert status.rejected_rows == ("row 8: no id", "row 9: no id")
    assert status.oldest_due_s is not None
    assert status.oldest_due_s >= 0
    assert status.next_attempt_at is not None


def test_a_site_nobody_knows_has_nothing(ledger: Ledger, site_name: str) -> None:
    with ledger.begin() as connection:
        status = overview.site_status(connection, site_name)
        assert spend.totals(connection, site_name) == SpendTotals(
            settled_usd=Decimal(0),
            reserved_usd=Decimal(0),
            uncertain_usd=Decimal(0),
            uncertain_calls=0,
        )
    assert (status.topics, status.states, status.oldest_due_s) == (0, {}, None)


def test_the_work_of_a_worker_is_what_it_opened(ledger: Ledger, site: str) -> None:
    job, _ = leased(ledger, site)
    first = failed_call(ledger, job, "0.5", FailureClass.TRANSIENT)
    failed_call(ledger, job, "0.25", FailureClass.TRANSIENT)
    with ledger.begin() as connection:
        spend.settle(connection, first, Decimal("0.2"))
        work = overview.work_of(connection, f"worker of {site}")
        nobody = overview.work_of(connection, "nobody")
    assert (work.generate_attempts, work.publish_attempts) == (2, 0)
    assert (work.usd, work.uncertain_usd) == (Decimal("0.45"), Decimal("0.25"))
    assert nobody.generate_attempts == nobody.usd == 0


def test_calls_that_nobody_could_ask_about_are_listed(ledger: Ledger, site: str) -> None:
    job, _ = leased(ledger, site)
    settled = failed_call(ledger, job, "0.5", FailureClass.TRANSIENT)
    uncertain = failed_call(ledger, job, "0.25", FailureClass.TRANSIENT)
    with ledger.begin() as connection:
        spend.settle(connection, settled, Decimal("0.2"))
        (row,) = overview.uncertain_calls(connection, site)
    assert (row["attempt_id"], row["reserved_usd"], row["topic_key"]) == (
        uncertain,
        Decimal("0.25"),
        "t0",
    )
