"""What a content team sees when its site file is wrong: the file, the line, the key and the fix."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from content_pipeline import site_chain, site_files
from content_pipeline.adapters.tables import read_file, rows_of
from content_pipeline.core import chain
from content_pipeline.core.errors import SiteFileError
from content_pipeline.core.prompts import render_prompt
from content_pipeline.core.topics import Topic, parse_row
from content_pipeline.site_files import Site, load_site
from content_pipeline_tests.core.samples import ROW, site_document

pytestmark = pytest.mark.oldest

EXAMPLE = Path(site_files.__file__).parent / "defs" / "countries" / "defs.yaml"

GOOD = """\
# Towns
type: content_pipeline.ContentSite

attributes:
  site: towns
  title: Towns
  base_url: https://towns.example

  topics:
    table: topics.csv
    id: code
    name: name

  article:
    facts:
      name: Name
      country: Country
    must_state: [name]

  generation:
    provider: sandbox
    model: gpt-5-mini

  cms:
    folder: public/towns
"""
"""25 lines; the tests below count them."""

PROMPT = "Write about {{ name }}.\n\n{{ facts }}\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A good site file in a folder of its own, with its prompt."""
    path = tmp_path / "defs.yaml"
    path.write_text(GOOD)
    (tmp_path / "prompt.md").write_text(PROMPT)
    return path


def refusal(file: Path) -> str:
    """The message, without the folder that every message names first."""
    with pytest.raises(SiteFileError) as caught:
        load_site(file)
    message = str(caught.value)
    assert str(file.parent) in message
    assert caught.value.__cause__ is None
    return message.replace(f"{file.parent}/", "")


def edited(file: Path, old: str, new: str) -> str:
    """The refusal after replacing ``old``, which stands in the good file once."""
    assert GOOD.count(old) == 1
    file.write_text(GOOD.replace(old, new))
    return refusal(file)


def test_a_good_file_becomes_a_site(file: Path) -> None:
    site = load_site(file)
    assert site.file == file
    assert site.settings.site == "towns"
    assert [step.template for step in site.chain.steps] == [PROMPT]
    assert site.columns == {"name", "country"}
    assert site.table == file.parent / "topics.csv"


MISTAKES = {
    "typo in a key": (
        "  title: Towns",
        "  titel: Towns",
        "defs.yaml, line 6, attributes.titel: unknown key 'titel'; did you mean 'title'?",
    ),
    "typo in a section": (
        "  generation:",
        "  generaton:",
        "line 20, attributes.generaton: unknown key 'generaton'; did you mean 'generation'?",
    ),
    "typo deep inside": (
        "    must_state:",
        "    must_sate:",
        "line 18, attributes.article.must_sate: unknown key 'must_sate'; did you mean 'must_",
    ),
    "typo in an optional section": (
        "    must_state:",
        "    rules: {min_word: 3}\n    must_state:",
        "line 18, attributes.article.rules.min_word: unknown key 'min_word'; did you mean",
    ),
    "typo in a policy": (
        "  cms:",
        "  retries:\n    transient:\n      attemps: 3\n\n  cms:",
        "line 26, attributes.retries.transient.attemps: unknown key 'attemps'; did you mean "
        "'attempts'?",
    ),
    "typo in a price": (
        "    model: gpt-5-mini",
        "    model: m\n    price: {input_usd: 1, output_usd_per_mtok: 2}",
        "line 23, attributes.generation.price.input_usd: unknown key 'input_usd'; did you mean "
        "'input_usd_per_mtok'?",
    ),
    "a key from nowhere": (
        "    folder: public/towns",
        "    folder: public/towns\n    zzz: 1",
        "line 26, attributes.cms.zzz: unknown key 'zzz'; known keys: kind, folder",
    ),
    "typo in the fields of a CMS": (
        "    folder: public/towns",
        "    kind: directus\n    fields: {boddy: content}",
        "line 26, attributes.cms.fields.boddy: unknown key 'boddy'; did you mean 'body'?",
    ),
    "a typo in a hook": (
        "  cms:",
        "  announce:\n    - kind: sitemap\n    - kind: webhook\n      debonce_s: 3\n\n  cms:",
        "line 27, attributes.announce.1.debonce_s: unknown key 'debonce_s'; did you mean "
        "'debounce_s'?",
    ),
    "an unknown hook": (
        "  cms:",
        "  announce:\n    - kind: carrier_pigeon\n\n  cms:",
        "line 25, attributes.announce.0: `kind` must be one of: sitemap, index_page, redirects, ",
    ),
    "hooks that do not fit": (
        "  cms:",
        "  announce:\n    - kind: redirects\n\n  cms:",
        "announce: redirects go with `topics.when_gone: redirect` and `redirect_to`",
    ),
    "a key outside attributes": (
        "attributes:",
        "extras: 1\nattributes:",
        "line 4, extras: unknown key 'extras'; a site's keys go in `attributes`",
    ),
    "a missing key": (
        "    name: name\n\n",
        "\n",
        "line 9, attributes.topics.name: the key 'name' is missing; add it",
    ),
    "a missing section": (
        "  cms:\n    folder: public/towns\n",
        "",
        "line 4, attributes.cms: the key 'cms' is missing; add it",
    ),
    "an unknown provider": (
        "provider: sandbox",
        "provider: opnai",
        "line 21, attributes.generation.provider: input should be 'sandbox', 'openai', 'azure'",
    ),
    "a number that is none": (
        "    model: gpt-5-mini",
        "    model: gpt-5-mini\n    in_flight: many",
        "line 23, attributes.generation.in_flight: input should be a valid integer",
    ),
    "a list for a text": (
        "title: Towns",
        "title: [Towns]",
        "line 6, attributes.title: input should be a valid string",
    ),
    "nothing for a text": (
        "title: Towns",
        "title:",
        "line 6, attributes.title: input should be a valid string",
    ),
    "a date for a text": (
        "title: Towns",
        "title: 2026-01-31",
        "line 6, attributes.title: input should be a valid string",
    ),
    "a text for a section": (
        "  cms:\n    folder: public/towns",
        "  cms: public/towns",
        "line 24, attributes.cms: input should be a valid dictionary",
    ),
    "an item of a list": (
        "must_state: [name]",
        "must_state:\n      - name\n      - 7",
        "line 20, attributes.article.must_state.1: input should be a valid string",
    ),
    "a fact nobody declared": (
        "must_state: [name]",
        "must_state: [nam]",
        "line 14, attributes.article: must_state names columns that are not in facts: nam",
    ),
    "two sources": (
        "table: topics.csv",
        "table: topics.csv\n    query: select 1",
        "line 9, attributes.topics: give either `table` (a file) or `query` (SQL), not both",
    ),
    "a path for all": (
        "    name: name\n\n",
        "    name: name\n    path: /towns/\n\n",
        "line 13, attributes.topics.path: `path` must name a {column}",
    ),
    "an empty column": (
        "    name: name\n\n",
        "    name: name\n    path: /{}/\n\n",
        "line 13, attributes.topics.path: `path` must name a {column}",
    ),
    "a name that cannot be one": (
        "site: towns",
        "site: My Towns",
        "line 5, attributes.site: string should match pattern '^[a-z]",
    ),
    "a limit": (
        "    model: gpt-5-mini",
        "    model: gpt-5-mini\n    temperature: 3",
        "line 23, attributes.generation.temperature: input should be less than or equal to 2",
    ),
    "a key given twice": (
        "    id: code",
        "    id: code\n    id: iso",
        "line 12, attributes.topics.id: the key is given twice; remove one of them",
    ),
    "a fact given twice": (
        "      country: Country",
        "      country: Country\n      name: Nombre",
        "line 18, attributes.article.facts.name: the key is given twice",
    ),
    "another component": (
        "type: content_pipeline.ContentSite",
        "type: dagster.Other",
        "defs.yaml: the file must begin with `type: content_pipeline.ContentSite`",
    ),
    "a tab": (
        "  title: Towns",
        "\ttitle: Towns",
        "line 6: found character '\\t' that cannot start any token; check quotes, colons and",
    ),
    "a quote left open": ("title: Towns", 'title: "Towns', "check quotes, colons and indentation"),
    "a colon in a text": (
        "title: Towns",
        "title: Towns: the guide",
        "line 6: mapping values are not allowed here; check quotes",
    ),
    "a wrong indentation": (
        "  title: Towns",
        " title: Towns",
        "line 6: ",
    ),
    "two documents": ("\nattributes:", "\n---\nattributes:", "line 4: but found another document"),
    "an object of Python": (
        "title: Towns",
        "title: !!python/object/apply:os.system [ls]",
        "line 6: could not determine a constructor for the tag",
    ),
    "a day that does not exist": (
        "title: Towns",
        "title: 2026-02-30",
        "a date or number in it does not exist",
    ),
    "a control character": ("title: Towns", "title: T\x07", "not YAML; check quotes"),
    "a section within itself": (
        "  cms:\n    folder: public/towns",
        "  cms: &cms\n    folder: *cms",
        "line 25, attributes.cms.folder: input should be a valid string",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_named_with_its_place_and_its_fix(file: Path, mistake: str) -> None:
    old, new, message = MISTAKES[mistake]
    assert message in edited(file, old, new)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must begin with `type: content_pipeline.ContentSite`"),
        ("# nothing\n", "must begin with `type:"),
        ("- a\n- b\n", "must begin with `type:"),
        ("just text", "must begin with `type:"),
        ("type: content_pipeline.ContentSite\n", "`attributes` is missing"),
        ("type: content_pipeline.ContentSite\nattributes:\n", "`attributes` is missing"),
        ("type: content_pipeline.ContentSite\nattributes: [a]\n", "`attributes` is missing"),
        ("type: content_pipeline.ContentSite\nattributes: {}\n", "is missing; add it"),
        ("[" * 3000, "nested too deeply"),
    ],
)
def test_a_file_that_is_no_site_says_what_one_begins_with(
    file: Path, text: str, message: str
) -> None:
    file.write_text(text)
    assert message in refusal(file)


def test_a_file_that_cannot_be_read_says_why(file: Path) -> None:
    file.write_bytes(b"type: \xff\xfe")
    assert "defs.yaml cannot be read: 'utf-8' codec" in refusal(file)
    file.unlink()
    assert "defs.yaml cannot be read: [Errno 2] No such file" in refusal(file)
    file.mkdir()
    assert "defs.yaml cannot be read: [Errno 21] Is a directory" in refusal(file)


def test_a_byte_order_mark_harms_nobody(file: Path) -> None:
    file.write_bytes(b"\xef\xbb\xbf" + GOOD.encode())
    assert load_site(file).settings.site == "towns"


def test_the_first_mistake_of_the_file_comes_first(file: Path) -> None:
    file.write_text(GOOD.replace("id: code", "idd: code").replace("folder: ", "foldr: "))
    assert "line 11, attributes.topics.idd: unknown key 'idd'" in refusal(file)


def test_anchors_are_only_a_way_of_writing(file: Path) -> None:
    file.write_text(
        GOOD.replace("site: towns", "site: &name towns").replace("Towns\n  b", "*name\n  b")
    )
    assert load_site(file).settings.title == "towns"


def test_an_alias_used_a_billion_times_costs_nothing(file: Path) -> None:
    levels = ["  a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    levels += [f"  a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    file.write_text(GOOD + "\n".join(levels))
    assert "line 26, attributes.a0: unknown key 'a0'" in refusal(file)


SECRET = "sk-proj-0123456789abcdef"

SECRETS = {
    "a key as a value": ("model: gpt-5-mini", f"model: {SECRET}", "line 22"),
    "a key as a variable's name": (
        "model: gpt-5-mini",
        f"model: m\n    api_key_env: {SECRET}",
        "line 23",
    ),
    "a key in a list": ("must_state: [name]", f"must_state: [name, {SECRET}]", "line 18"),
    "a key as a key": ("id: code", f"{SECRET}: code", "line 9"),
    "a key under a telling name": ("model: gpt-5-mini", "model: m\n    api_key: 0f0f0f", "line 23"),
    "a password": ("folder: public", "Password: 0f0f0f\n    folder: public", "line 25"),
    "a URL with a password": (
        "table: topics.csv",
        "query: select 1\n    database_env: postgresql://me:0f0f0f@db/towns",
        "line 11",
    ),
    "a base URL with a password": (
        "https://towns.example",
        "https://me:0f0f0f@towns.example",
        "line 7",
    ),
    "a header": ("title: Towns", "title: Bearer 0123456789abcdef0123", "line 6"),
    "a key of another provider": ("title: Towns", "title: gsk_0123456789abcdef0123", "line 6"),
    "a signing key": ("title: Towns", "title: whsec_0123456789abcdef+0123/f=", "line 6"),
    "an admin key": ("title: Towns", f"title: {'0123' * 6}:{'0f0f' * 16}", "line 6"),
    "a long text": ("title: Towns", f"title: >\n    my key is\n    {SECRET}", "line 6"),
}


@pytest.mark.parametrize("name", SECRETS)
def test_a_credential_is_refused_and_never_repeated(file: Path, name: str) -> None:
    old, new, place = SECRETS[name]
    message = edited(file, old, new)
    assert place in message
    assert "this looks like a credential, and a site file must hold none" in message
    assert "0123" not in message
    assert "0f0f" not in message


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("      country: Country", "      country: Country\n      token: Token\n      secret: S"),
        ("title: Towns", "title: sk-learn and other kits of science"),
        ("title: Towns", "title: Bearer bonds"),
        ("https://towns.example", "https://towns.example:8443/guide"),
    ],
)
def test_ordinary_words_are_not_taken_for_credentials(file: Path, old: str, new: str) -> None:
    file.write_text(GOOD.replace(old, new))
    load_site(file)


PROMPTS = {
    "a missing file": (None, "defs.yaml: the prompt 'prompt.md' cannot be read"),
    "another encoding": (b"caf\xe9", "defs.yaml: the prompt 'prompt.md' cannot be"),
    "a brace left open": (b"Write\n{{ name }", "prompt.md: line 2: unexpected '}'"),
    "an unknown filter": (b"{{ name|shout }}", "prompt.md: line 1: No filter named 'shout'"),
    "another file": (b"\n\n{% include 'x' %}", "prompt.md: line 3: a prompt is one file"),
    "an inner attribute": (b"{{ name.__class__ }}", "prompt.md: line 1: .__class__ is not for"),
}


@pytest.mark.parametrize("name", PROMPTS)
def test_a_bad_prompt_is_named_with_its_own_file_and_line(file: Path, name: str) -> None:
    content, message = PROMPTS[name]
    prompt = file.parent / "prompt.md"
    if content is None:
        prompt.unlink()
    else:
        prompt.write_bytes(content)
    assert message in refusal(file)


def test_the_columns_are_those_of_prompt_path_name_and_statements(file: Path) -> None:
    (file.parent / "prompt.md").write_text("{{ river }}")
    file.write_text(
        GOOD.replace("    name: name\n\n", "    name: name\n    path: /{land}/{name}/\n\n")
    )
    assert load_site(file).columns == {"name", "land", "river"}


def test_a_query_has_no_table(file: Path) -> None:
    query = "query: select * from towns\n    database_env: TOWNS_DATABASE_URL"
    file.write_text(GOOD.replace("table: topics.csv", query))
    assert load_site(file).table is None


def version(file: Path, prompt: str = PROMPT, **changes: Any) -> str:
    attributes = site_document(**changes)
    document = {"type": "content_pipeline.ContentSite", "attributes": attributes}
    file.write_text(yaml.safe_dump(document, sort_keys=False))
    (file.parent / "prompt.md").write_text(prompt)
    return load_site(file).generation_version


MAKES_OTHER_PAGES: list[dict[str, Any]] = [
    {"prompt": PROMPT + " "},
    {"generation__model": "gpt-5"},
    {"generation__provider": "openai"},
    {"generation__max_output_tokens": 3001},
    {"generation__temperature": 0.0},
    {"article__facts": {"name": "Name", "country": "Land", "river": "River"}},
    {"article__facts": {"name": "Name", "river": "River", "country": "Country"}},
]

MAKES_THE_SAME_PAGES: list[dict[str, Any]] = [
    {"title": "Other"},
    {"owner": "another team"},
    {"base_url": "https://other.example"},
    {"budgets__page_usd": "3"},
    {"budgets__site_day_usd": "3"},
    {"cms__folder": "elsewhere"},
    {"topics__path": "/in/{name}/"},
    {"article__must_state": ["name"]},
    {"article__rules__min_words": 10},
    {"generation__deadline_s": 5},
    {"generation__in_flight": 2},
    {"generation__sandbox__seed": 9},
    {"lane__lease_s": 5},
    {"retries": {"transient": {"attempts": 2}}},
]


@pytest.mark.parametrize("changes", MAKES_OTHER_PAGES, ids=str)
def test_what_makes_other_pages_is_another_version(file: Path, changes: dict[str, Any]) -> None:
    assert version(file, **changes) != version(file)


@pytest.mark.parametrize("changes", MAKES_THE_SAME_PAGES, ids=str)
def test_what_changes_no_page_is_the_same_version(file: Path, changes: dict[str, Any]) -> None:
    assert version(file, **changes) == version(file)


@pytest.mark.parametrize("part", ["SYSTEM_PROMPT", "schema_of"])
def test_a_release_with_another_prompt_or_schema_is_another_version(
    file: Path, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = version(file)
    module, other = {
        "SYSTEM_PROMPT": (chain, "Be brief."),
        "schema_of": (site_chain, lambda _name: {"type": "object"}),
    }[part]
    monkeypatch.setattr(module, part, other)
    assert version(file) != before


@pytest.fixture(scope="module")
def countries() -> Site:
    return load_site(EXAMPLE)


def test_the_example_site_loads(countries: Site) -> None:
    assert countries.settings.site == "countries"
    assert countries.settings.generation.provider == "sandbox"
    assert len(countries.columns) == len(countries.settings.article.facts)


def test_every_row_of_the_example_becomes_a_prompt_that_shows_all_its_facts(
    countries: Site,
) -> None:
    assert countries.table is not None
    columns = countries.columns | {countries.settings.topics.id}
    rows = list(rows_of(read_file(countries.table), columns, source="topics.csv"))
    topics = [
        parse_row(number, row, site=countries.settings, columns=countries.columns)
        for number, row in enumerate(rows, start=1)
    ]
    good = [topic for topic in topics if isinstance(topic, Topic)]
    assert len(good) > 240
    assert len({topic.path for topic in good}) == len({topic.key for topic in good}) == len(good)
    assert "NA" in {topic.key for topic in good}, "Namibia is not a missing value"
    for topic in good[:20]:
        facts = {
            label: topic.columns[column]
            for column, label in countries.settings.article.facts.items()
            if topic.columns[column]
        }
        prompt = render_prompt(countries.chain.steps[0].template, topic.columns, facts)
        assert len(re.findall("<", prompt)) == 2
        assert f'"Name": "{topic.name}"' in prompt


def test_a_site_does_not_print_its_prompt(file: Path) -> None:
    assert "Write about" not in repr(load_site(file))


def test_the_sample_row_fits_the_sample_site() -> None:
    assert {"code", *site_document()["article"]["facts"]} <= ROW.keys()
