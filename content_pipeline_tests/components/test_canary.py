"""Prompts and model text stay out of logs, of what a run prints, and of Dagster's records.

The canary stands in a fact of every topic: so it is in each prompt, and in the introduction and the
list of each page.
"""

import logging
from collections.abc import Iterator

import dagster as dg
import pytest

from content_pipeline.core.states import PageJobState, Stage
from content_pipeline.sandbox.faults import FaultKind
from content_pipeline_tests.components.conftest import MakeSite, TownSite, fault

CANARY = "Kanarienburg"
PREVIEW = "preview"
KEYS = ("t1", "t2", "t3", "t4")
GOOD, UNREADABLE, REFUSED, INVALID = KEYS

ROWS = [
    {
        "code": key,
        "name": f"Land {key}",
        "capital": f"{CANARY} lorem ipsum" if key == INVALID else CANARY,
        "continent": "Europe",
    }
    for key in KEYS
]


@pytest.fixture(autouse=True)
def talkative() -> Iterator[None]:
    """Every library may say everything."""
    root = logging.getLogger()
    level = root.level
    root.setLevel(logging.DEBUG)
    yield
    root.setLevel(level)


def site_with(make_site: MakeSite, **article: object) -> TownSite:
    settings = {
        "prompt": "prompt.md",
        "facts": {"name": "Name", "capital": "Capital", "continent": "Continent"},
        "must_state": ["name", "capital"],
        "rules": {"min_words": 20},
    }
    site = make_site(ROWS, article=settings | article)
    site.set_faults(
        fault(FaultKind.BROKEN_JSON, f"Land {UNREADABLE}"),
        fault(FaultKind.REFUSAL, f"Land {REFUSED}"),
    )
    return site


def told_by(site: TownSite, result: dg.ExecuteInProcessResult) -> dict[tuple[str, str], str]:
    """All that Dagster keeps of a run, in pieces: previews by asset and page, the rest as one."""
    pieces: dict[tuple[str, str], str] = {}
    rest: list[str] = []
    for entry in site.instance.all_logs(result.run_id):
        event = entry.dagster_event
        if event is None or event.event_type is not dg.DagsterEventType.ASSET_MATERIALIZATION:
            rest.append(str(entry))
            continue
        made = event.step_materialization_data.materialization
        preview = made.metadata.get(PREVIEW)
        others = {name: value for name, value in made.metadata.items() if name != PREVIEW}
        rest.append(f"{entry.user_message} {made.description} {made.tags} {others}")
        if preview is not None:
            assert isinstance(preview, dg.MarkdownMetadataValue)
            pieces[made.asset_key.path[-1], str(made.partition)] = str(preview.value)
    return pieces | {("rest", ""): "\n".join(rest)}


@pytest.mark.parametrize("preview", [None, False, True])
def test_what_a_model_wrote_is_shown_where_a_site_wants_it_and_nowhere_else(
    preview: bool | None,
    make_site: MakeSite,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    site = site_with(make_site, **({} if preview is None else {PREVIEW: preview}))
    topics = site.materialize_topics()
    result = site.materialize(*Stage, pages=(KEYS[0], KEYS[-1]))

    assert site.report(GOOD).state is PageJobState.PUBLISHED
    assert {str(site.report(key).failure_class) for key in KEYS[1:]} == {
        "bad_output",
        "policy",
        "invalid_page",
    }
    page = site.project.root / "public" / site.assets.name / "land-t1" / "index.html"
    assert CANARY in page.read_text()

    told = told_by(site, result)
    rest = told.pop(("rest", ""))
    if preview:
        assert set(told) == {("draft", GOOD), ("draft", INVALID), ("page", GOOD)}
        assert all(CANARY in text for text in told.values())
    else:
        assert told == {}
    printed = capfd.readouterr()
    everywhere_else = f"{rest} {site.shown_of(topics)} {caplog.text} {printed.out} {printed.err}"
    assert "published and proved" in printed.err
    assert CANARY not in everywhere_else
