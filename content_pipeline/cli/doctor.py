"""``content-pipeline doctor``: what would stop a site from publishing, before anything is paid.

What belongs here: asking every part of a site for its own word and printing it. No page is made or
touched, and no paid call: whether a key is valid shows with the first one.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

import click
from rich.console import Console
from rich.markup import escape
from sqlalchemy import Connection

from content_pipeline.bootstrap import model_route, open_models, prices_of, utc_now
from content_pipeline.cli.context import (
    choose_site,
    load_sites,
    opened_ledger,
    plain_console,
    site_option,
)
from content_pipeline.cli.tables import when
from content_pipeline.config import Project, environment, find_project
from content_pipeline.core.cms import CMS
from content_pipeline.core.errors import ContentPipelineError, SiteFileError
from content_pipeline.core.publishing import guarantee
from content_pipeline.ledger import overview, rollbacks, routes
from content_pipeline.postgres.urls import external_database_url
from content_pipeline.site_cms import cms_route, longest_request_s, open_cms
from content_pipeline.site_files import Site, load_site


class Verdict(StrEnum):
    """What a finding means."""

    OK = "ok"
    NOTE = "note"
    PROBLEM = "problem"
    """Nothing can be published before a person ends it."""


_COLOURS = {Verdict.OK: "green", Verdict.NOTE: "yellow", Verdict.PROBLEM: "red"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was looked at."""

    verdict: Verdict
    subject: str
    text: str


@click.command()
@site_option
def doctor(site_name: str | None) -> None:
    """Check what a site needs to publish: settings, database, provider, CMS, its guarantees.

    Nothing is changed and nothing is paid. Exit status 1: something would stop publishing.
    """
    project = find_project()
    console = plain_console()
    sites, mistakes = _readable(project, site_name)
    sick = bool(mistakes)
    for mistake in mistakes:
        _print(_problem("settings", str(mistake)), console)
    for finding in _of_database(project, sites):
        sick |= _print(finding, console)
    for site in sites:
        console.print(f"{site.settings.title} ({site.settings.site})", style="bold", markup=False)
        for finding in _of_site(project, site):
            sick |= _print(finding, console)
    sys.exit(1 if sick else 0)


def _readable(
    project: Project, site_name: str | None
) -> tuple[list[Site], list[ContentPipelineError]]:
    """The sites whose files can be read, and what is wrong with the others."""
    if site_name is not None:
        return [choose_site(project, site_name)], []
    try:
        return load_sites(project), []
    except SiteFileError:
        sites: list[Site] = []
        mistakes: list[ContentPipelineError] = []
        for file in project.site_files():
            try:
                sites.append(load_site(file))
            except SiteFileError as mistake:
                mistakes.append(mistake)
        return sites, mistakes


def _print(finding: Finding, console: Console) -> bool:
    """Print it; whether it is a problem."""
    colour = _COLOURS[finding.verdict]
    told = f"{finding.subject}: {finding.text}"
    console.print(f"  [{colour}]{finding.verdict:7}[/{colour}] {escape(told)}", soft_wrap=True)
    return finding.verdict is Verdict.PROBLEM


def _ok(subject: str, text: str) -> Finding:
    return Finding(verdict=Verdict.OK, subject=subject, text=text)


def _note(subject: str, text: str) -> Finding:
    return Finding(verdict=Verdict.NOTE, subject=subject, text=text)


def _problem(subject: str, text: str) -> Finding:
    return Finding(verdict=Verdict.PROBLEM, subject=subject, text=text)


def _of_database(project: Project, sites: list[Site]) -> Iterator[Finding]:
    try:
        with opened_ledger(project) as ledger, ledger.begin() as connection:
            yield _ok("database", "answers, and the ledger is up to date")
            for site in sites:
                yield from _on_record(connection, site)
    except ContentPipelineError as error:
        yield _problem("database", str(error))


def _on_record(connection: Connection, site: Site) -> Iterator[Finding]:
    """What the ledger knows to stand in the way."""
    name = site.settings.site
    for route in (model_route(site), cms_route(site)):
        stand = routes.report(connection, route)
        if stand is None or not stand.is_closed:
            continue
        if stand.circuit_opened_at is not None:
            resume = f"put it in order, then: content-pipeline resume --site {name}"
            yield _problem(route, f"closed: {stand.reason}; {resume}")
        elif stand.paused_until is not None:
            yield _note(route, f"pauses until {when(stand.paused_until)}: {stand.reason}")
    for each in rollbacks.of_site(connection, name):
        why = f"{each.cause} ({each.by})"
        if each.generation_version == site.generation_version:
            told = f"this way of making pages ({each.generation_version}) is rolled back: {why}"
            yield _problem(name, f"{told}; change the prompt or the model, or rollback --lift")
        else:
            yield _note(name, f"{each.generation_version} is rolled back: {why}")
    if changes := overview.site_status(connection, name).site_changes:
        counted = ", ".join(f"{count:,} {change.value}" for change, count in changes.items())
        yield _note(name, f"changed on the site: {counted}; see content-pipeline conflicts")


def _of_site(project: Project, site: Site) -> Iterator[Finding]:
    yield _ok("settings", f"{site.file}, generation version {site.generation_version}")
    yield from _of_provider(project, site)
    yield from _of_cms(project, site)


def _of_provider(project: Project, site: Site) -> Iterator[Finding]:
    generation = site.settings.generation
    models = sorted({step.model for step in site.chain.steps})
    try:
        prices_of(site)
        yield _ok("price", f"known of {', '.join(models)}; the caps admit a call")
    except ContentPipelineError as error:
        yield _problem("price", str(error))
    try:
        open_models(site, project)
        yield _ok("provider", f"{generation.provider}: what it needs is set; no call was made")
    except ContentPipelineError as error:
        yield _problem("provider", str(error))


def _of_cms(project: Project, site: Site) -> Iterator[Finding]:
    try:
        cms, hooks = open_cms(site, project, clock=utc_now)
    except ContentPipelineError as error:
        yield _problem("CMS", str(error))
        return
    check = cms.check()
    for problem in check.problems:
        yield _problem("CMS", problem)
    if not check.problems:
        yield _ok("CMS", check.identity or site.settings.cms.kind)
    for note in check.notes:
        yield _note("CMS", note)
    if site.settings.cms.kind == "folder" and external_database_url(environment()) is not None:
        yield _note(
            "CMS",
            "with a database of several machines, each that runs this site must have this very "
            "folder on shared storage; see docs/several-machines.md",
        )
    for sentence in guarantee(cms.capabilities):
        yield _ok("guarantee", sentence)
    yield from _of_quiet_period(site, cms)
    kinds = ", ".join(hook.kind for hook in hooks)
    yield _ok("hooks", kinds or "none: nothing is told of published pages")


def _of_quiet_period(site: Site, cms: CMS) -> Iterator[Finding]:
    """Whether a lost write has settled by the time the CMS is asked about it."""
    quiet_s, longest_s = site.settings.lane.publish_quiet_s, longest_request_s(site)
    if longest_s is None or (cms.capabilities.client_id and cms.capabilities.compare_and_swap):
        yield _ok("quiet period", "not needed: a late write cannot do harm on this CMS")
    elif quiet_s < longest_s:
        yield _note(
            "quiet period",
            f"lane.publish_quiet_s is {quiet_s:g} s, and one request may take {longest_s:g} s "
            "(cms.deadline_s): a lost write may take effect after the CMS was asked; raise it",
        )
    else:
        yield _ok("quiet period", f"{quiet_s:g} s, longer than a request ({longest_s:g} s)")
