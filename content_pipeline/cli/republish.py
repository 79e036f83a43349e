"""``content-pipeline republish``: stored pages are put in place again, without being made anew."""

import sys
from collections import Counter

import click

from content_pipeline.cli.context import opened_site, person, site_option, stated
from content_pipeline.cli.tables import counted
from content_pipeline.core.errors import ConfigurationError
from content_pipeline.core.states import PageJobState, Stage
from content_pipeline.ledger import reports
from content_pipeline.ledger.leases import Selection
from content_pipeline.operations import republish as operation
from content_pipeline.operations.announce import announce
from content_pipeline.operations.lane import advance
from content_pipeline.operations.runtime import SiteRuntime

cause_option = click.option("--cause", help="Why; it is kept with the pages.")


@click.command()
@click.argument("pages", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="All published pages of the site.")
@click.option("--now", is_flag=True, help="Publish at once, instead of leaving it to a run.")
@cause_option
@site_option
def republish(
    pages: tuple[str, ...],
    cause: str | None,
    site_name: str | None,
    *,
    everything: bool,
    now: bool,
) -> None:
    """Have the stored text of PAGES (topic ids, paths, URLs) put in place again; nothing is paid.

    A page that is in place is confirmed without a write; one that somebody changed follows the
    site's policy. The next run does it, or --now does. Exit status 1: a page could not be taken up,
    or did not come to be published.
    """
    cause = stated("--cause", cause or "")
    if bool(pages) == everything:
        raise ConfigurationError("name the pages to publish again, or give --all for all of them")
    with opened_site(site_name) as runtime:
        topics = None if everything else _topics(runtime, pages)
        taken = operation.republish(runtime, topics, cause=cause, by=person())
        left = sorted(set(topics or ()) - set(taken))
        click.echo(f"{counted(len(taken))} taken up" + ("" if now else "; the next run goes on"))
        for topic in left:
            click.echo(_why_left(runtime, topic))
        came = _publish(runtime, taken) if now and taken else Counter()
    for state, count in sorted(came.items()):
        click.echo(f"{counted(count)} {state}")
    sys.exit(0 if not left and set(came) <= {PageJobState.PUBLISHED} else 1)


def _topics(runtime: SiteRuntime, pages: tuple[str, ...]) -> list[str]:
    with runtime.ledger.begin() as connection:
        return [
            reports.page_of_site(connection, runtime.site.site, page).topic_key for page in pages
        ]


def _why_left(runtime: SiteRuntime, topic: str) -> str:
    with runtime.ledger.begin() as connection:
        page = reports.page_of_site(connection, runtime.site.site, topic)
    if page.topic_is_retired:
        return f"{topic} is left alone: it is no longer in the table"
    if page.state is PageJobState.PUBLISHED:
        return f"{topic} is left alone: the way it was made is rolled back, or its page is at work"
    return f"{topic} is left alone: it is {page.state}"


def _publish(runtime: SiteRuntime, topics: tuple[str, ...]) -> Counter[PageJobState]:
    """Publish ``topics`` now, and tell the site's hooks; how many came to which state."""
    selection = Selection(site=runtime.site.site, topics=topics, stages=frozenset({Stage.ARTIFACT}))
    for _ in advance(runtime, selection):
        continue
    announce(runtime)
    with runtime.ledger.begin() as connection:
        found = reports.page_reports(connection, runtime.site.site, topics)
    return Counter(page.state for page in found)
