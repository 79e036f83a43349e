"""One small site under test: asking for its pages, working on them, and looking at all sides.

What belongs here: what a test of operations does and looks at. The looks at the other side read
the provider's and the folder's own records, never the ledger.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

from sqlalchemy import Row, Select, func, select, update

from content_pipeline.core.cms import CMS, Document, PublicPages
from content_pipeline.core.failures import Failure
from content_pipeline.core.ports import Announcement, LanguageModel, SiteHook
from content_pipeline.core.states import ALL_STAGES, WORKABLE, PageJobState, Stage
from content_pipeline.ledger import effects as effect_ledger
from content_pipeline.ledger import jobs, leases, reports
from content_pipeline.ledger.database import Lease, Ledger
from content_pipeline.ledger.intake import Intake
from content_pipeline.ledger.jobs import PageJob
from content_pipeline.ledger.leases import Claim, Selection
from content_pipeline.ledger.reports import PageReport
from content_pipeline.ledger.schema import (
    attempts,
    draft_revisions,
    effects,
    page_jobs,
    pages,
    seconds_from_now,
    spend,
)
from content_pipeline.ledger.schema import leases as lease_rows
from content_pipeline.operations.announce import announce
from content_pipeline.operations.lane import Settled, advance
from content_pipeline.operations.publish import document_of
from content_pipeline.operations.runtime import SiteRuntime
from content_pipeline.operations.steps import walk
from content_pipeline.operations.submit import submit
from content_pipeline.sandbox.client import SandboxClient
from content_pipeline.sandbox.faults import FaultPlan
from content_pipeline.sandbox.settings import ProviderSettings
from content_pipeline.site_files import Site
from content_pipeline_tests.operations.small_site import Parts, runtime_of, settings_of, writes
from content_pipeline_tests.operations.small_site import Row as TableRow


@dataclass(slots=True, kw_only=True)
class Bench:
    """A site with its table, its provider and its folder."""

    PARTS: ClassVar[frozenset[str]] = frozenset(
        {"model", "cms", "public", "hooks", "on_checkpoint"}
    )
    """What a test may put in the place of the real part."""

    site: Site
    rows: list[TableRow]
    ledger: Ledger
    sandbox: SandboxClient
    folder: Path
    model: LanguageModel
    cms: CMS | None = None
    public: PublicPages | None = None
    hooks: tuple[SiteHook, ...] | None = None
    on_checkpoint: Callable[[str], None] | None = None
    changes: dict[str, Any] = field(default_factory=dict)
    """The settings that are not as in ``settings_of``."""

    # --- acting --------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        return self.site.settings.site

    def worker(self) -> SiteRuntime:
        """A new worker's runtime."""
        parts = Parts(
            site=self.site,
            ledger=self.ledger,
            model=self.model,
            folder=self.folder,
            cms=self.cms,
            public=self.public,
            hooks=self.hooks,
            on_checkpoint=self.on_checkpoint,
        )
        return runtime_of(parts)

    def submit(self) -> Intake:
        """Ask for what the table says now."""
        return submit(self.worker(), self.rows, requested_by="test")

    def run(self, *stages: Stage) -> list[Settled]:
        """One lane until nothing is due soon."""
        selection = Selection(site=self.name, stages=frozenset(stages) or ALL_STAGES)
        return list(advance(self.worker(), selection))

    def submit_and_run(self) -> list[Settled]:
        self.submit()
        return self.run()

    def run_drafts(self) -> None:
        self.run(Stage.DRAFT)

    def announce(
        self,
        *,
        even_given_up: bool = False,
        kinds: Collection[str] | None = None,
        patience_s: float = 0.0,
        **replaced: Any,
    ) -> dict[str, Announcement | Failure]:
        """Tell the site's hooks what is due; ``replaced``: parts of the worker's runtime."""
        return announce(
            replace(self.worker(), **replaced),
            even_given_up=even_given_up,
            kinds=kinds,
            patience_s=patience_s,
        )

    def want_announcements(self, *kinds: str) -> None:
        with self.ledger.begin() as connection:
            effect_ledger.want_for_site(connection, self.name, dict.fromkeys(kinds, 0.0), "owner")

    def claim(self, runtime: SiteRuntime, topic: str = "t0", lease_s: float = 10) -> Claim:
        """The lease of one due page, as a lane would take it."""
        with self.ledger.begin() as connection:
            (claim,) = leases.claim_due(
                connection,
                Selection(site=self.name, topics=(topic,)),
                most=1,
                worker=runtime.worker,
                lease_s=lease_s,
            )
        return claim

    def claimed(self, claim: Claim) -> PageJob:
        """The page job of ``claim`` as it stands now."""
        with self.ledger.begin() as connection:
            return jobs.load(connection, claim.page_job_id)

    def step(
        self, topic: str = "t0", *, until: PageJobState | None = None, **replaced: Any
    ) -> PageJob:
        """Walk one page as far as it goes without waiting, whether or not its wait is over.

        ``until``: no further than this state; ``replaced``: parts of the worker's runtime.
        """
        self.make_due()
        runtime = replace(self.worker(), **replaced)
        claim = self.claim(runtime, topic)
        try:
            through = WORKABLE - {until} if until else WORKABLE
            return walk(runtime, self.claimed(claim), claim.lease, through=through)
        finally:
            self.release(claim.lease)

    def release(self, lease: Lease) -> None:
        with self.ledger.begin() as connection:
            leases.release(connection, lease)

    def let_leases_run_out(self) -> None:
        """Let the time of all leases on the site's pages pass."""
        with self.ledger.begin() as connection:
            of_site = select(func.concat("page:", pages.c.page_id)).where(pages.c.site == self.name)
            connection.execute(
                update(lease_rows)
                .where(lease_rows.c.resource.in_(of_site))
                .values(expires_at=func.clock_timestamp())
            )

    def change(self, **changes: Any) -> None:
        """Change settings of the site that do not enter the identity of its pages."""
        self.changes = {
            section: {**self.changes.get(section, {}), **values}
            for section, values in (self.changes | changes).items()
        }
        self.site = replace(self.site, settings=settings_of(self.name, **self.changes))

    def cancel(self, topic: str = "t0") -> None:
        """Put a person's wish to cancel on record."""
        with self.ledger.begin() as connection:
            connection.execute(
                update(page_jobs)
                .where(page_jobs.c.page_job_id == self.report(topic).page_job_id)
                .values(cancel_requested_at=func.clock_timestamp())
            )

    def make_due(self) -> None:
        """Let the time pass that the site's pages and announcements wait for."""
        for table in (page_jobs, effects):
            with self.ledger.begin() as connection:
                connection.execute(
                    update(table)
                    .where(table.c.site == self.name)
                    .values(next_attempt_at=func.clock_timestamp())
                )

    def make_wait(self, seconds: float) -> None:
        """Let the site's pages wait for another while."""
        with self.ledger.begin() as connection:
            connection.execute(
                update(page_jobs)
                .where(page_jobs.c.site == self.name)
                .values(next_attempt_at=seconds_from_now(seconds))
            )

    def leave_in(self, state: PageJobState, topic: str = "t0") -> None:
        """Let a worker make one move and be gone."""
        runtime = self.worker()
        claim = self.claim(runtime, topic)
        with self.ledger.fenced(claim.lease) as connection:
            job = jobs.load(connection, claim.page_job_id)
            jobs.move(connection, job, state, lease=claim.lease)
        self.let_leases_run_out()

    def damage_draft(self, topic: str) -> None:
        """Let the stored draft of the topic be none that our code can read."""
        with self.ledger.begin() as connection:
            connection.execute(
                update(draft_revisions)
                .where(draft_revisions.c.page_job_id == self.report(topic).page_job_id)
                .values(article={"no": "article"})
            )

    def strike(self, kind: str, *, match: Mapping[str, Any] | None = None, **more: Any) -> None:
        """Let the provider fail on purpose, once unless ``times`` says otherwise."""
        times = more.pop("times", 1)
        self.sandbox_plan({"fault": {"kind": kind, **more}, "match": match or {}, "times": times})

    def sandbox_plan(self, *rules: Mapping[str, Any]) -> None:
        """Let the provider follow ``rules`` from now on."""
        self.sandbox.set_faults(FaultPlan.model_validate({"rules": rules}))

    # --- looking at the ledger -----------------------------------------------------------------

    def report(self, topic: str = "t0") -> PageReport:
        """The topic's current page job as people see it."""
        with self.ledger.begin() as connection:
            (found,) = reports.page_reports(connection, self.name, [topic])
        return found

    def states(self) -> dict[str, str]:
        """Topic → state of its current page job."""
        with self.ledger.begin() as connection:
            found = reports.page_reports(connection, self.name)
        return {report.topic_key: str(report.state) for report in found}

    def history(self, topic: str = "t0") -> list[str]:
        """All states its current page job was ever in."""
        with self.ledger.begin() as connection:
            return [
                row["to_state"]
                for row in reports.history(connection, self.report(topic).page_job_id)
            ]

    def reasons(self, topic: str = "t0") -> list[str]:
        """Why each move of its current page job was made."""
        with self.ledger.begin() as connection:
            return [
                row["why"] for row in reports.history(connection, self.report(topic).page_job_id)
            ]

    def state_of(self, page_job_id: str) -> str:
        """The state of any page job, current or not."""
        with self.ledger.begin() as connection:
            return str(jobs.load(connection, page_job_id).state)

    def rows_in(self, table: Any, topic: str = "t0") -> list[Row[Any]]:
        """The rows of the topic's current page job in ``table``."""
        with self.ledger.begin() as connection:
            return list(
                connection.execute(
                    select(table)
                    .where(table.c.page_job_id == self.report(topic).page_job_id)
                    .order_by(table.c.attempt_id if table is spend else table.c.started_at)
                )
            )

    def attempts(self, topic: str = "t0") -> list[tuple[str, str, str | None]]:
        """Kind, state and failure class of each attempt, oldest first."""
        return [(row.kind, row.state, row.failure_class) for row in self.rows_in(attempts, topic)]

    def spend(self, topic: str = "t0") -> list[str]:
        """What became of each reservation."""
        return sorted(row.state for row in self.rows_in(spend, topic))

    def _lease_rows(self) -> Select[Any]:
        of_site = select(func.concat("page:", pages.c.page_id)).where(pages.c.site == self.name)
        return select(func.count()).where(lease_rows.c.resource.in_(of_site))

    def leases_held(self) -> int:
        """Leases on pages of the site, those that ran out included."""
        with self.ledger.begin() as connection:
            return int(connection.execute(self._lease_rows()).scalar_one())

    def claimable(self) -> int:
        """Pages of the site that another worker could take now."""
        with self.ledger.begin() as connection:
            outlook = leases.outlook(connection, Selection(site=self.name))
        return outlook.unfinished if outlook.wait_s == 0 else 0

    def sandbox_settings(self) -> ProviderSettings:
        """How the provider behaves now."""
        return ProviderSettings.model_validate(self.sandbox.health()["settings"])

    def is_due(self, topic: str = "t0") -> bool:
        """Whether the topic's page job waits for nothing."""
        with self.ledger.begin() as connection:
            return jobs.load(connection, self.report(topic).page_job_id).is_due

    def document(self, topic: str = "t0") -> Document:
        """What the CMS is to hold for the draft of the topic's page job."""
        runtime = self.worker()
        with self.ledger.begin() as connection:
            job = jobs.load(connection, self.report(topic).page_job_id)
            return document_of(connection, runtime, job)

    # --- looking at the other side -------------------------------------------------------------

    def billed(self) -> int:
        """Generations that the provider billed."""
        return len(self.sandbox.truth()["generations"])

    def calls(self) -> int:
        """Paid calls that the provider received."""
        return int(self.sandbox.truth()["requests_by_operation"].get("create", 0))

    def writes(self) -> list[tuple[str, int]]:
        """Every write of a page, as the folder logged it: path and revision."""
        return writes(self.folder)
