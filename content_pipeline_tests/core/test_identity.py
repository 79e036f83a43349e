"""Identity must outlive releases and machines: a changed key pays for every page once more."""

import ast
import inspect
import json
import random
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from content_pipeline.core import identity
from content_pipeline.core.identity import (
    ID_LENGTH,
    content_hash,
    digest,
    input_hash,
    page_id,
    page_job_id,
    publish_key,
)

COLUMNS = {"name": "Zürich", "river": "Limmat"}
INPUT = "a022cafe79b1adbd6cf537ba67ba3b00"
VERSION = "5c00b8cb7dd92610a68b26cbc7551d4a"
PAGE = "d3b42fd3184a4e21cd0dd7e43e30875c"
JOB = ("towns", "zrh", INPUT, VERSION, "")


@pytest.mark.parametrize(
    ("found", "golden"),
    [
        (digest(), "4f53cda18c2baa0c0354bb5f9a3ecbe5"),
        (digest("a"), "0eb5b8d6f81bc677da8a08567cc4fa9a"),
        (digest("a", "b"), "0473ef2dc0d324ab659d3580c1134e9d"),
        (digest({"b": 1, "a": [True, None, 1.5]}, "é"), "9fb8d1aa7cd8f72d93bceaef79872625"),
        (input_hash("/zurich/", COLUMNS), INPUT),
        (page_id("towns", "/zurich/"), PAGE),
        (page_job_id(*JOB), "ab18e6914052203601f57f12b8964966"),
        (publish_key(PAGE, 3), f"page:{PAGE}:rev:3:publish"),
        (content_hash("t", "m", "<p>b</p>"), "95e8a153cc41dc81eaa6693b0bcdfc74"),
    ],
)
def test_keys_are_what_they_have_always_been(found: str, golden: str) -> None:
    assert found == golden


def test_a_key_is_the_same_in_a_process_that_hashes_differently() -> None:
    code = (
        "from content_pipeline.core.identity import input_hash;"
        f"print(input_hash('/zurich/', {COLUMNS!r}))"
    )
    for seed in ("1", "2"):
        found = subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        )
        assert found.stdout.strip() == INPUT


texts = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=20)
documents = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=10,
)


@given(columns=st.dictionaries(texts, texts, max_size=8), shuffler=st.randoms())
def test_the_order_of_columns_does_not_matter(
    columns: dict[str, str], shuffler: random.Random
) -> None:
    items = list(columns.items())
    shuffler.shuffle(items)
    assert input_hash("/a/", dict(items)) == input_hash("/a/", columns)


@given(one=documents, other=documents)
def test_different_content_gives_different_keys(one: object, other: object) -> None:
    same = json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    assert (digest(one) == digest(other)) is same


@given(parts=st.lists(texts, max_size=4), other=st.lists(texts, max_size=4))
def test_parts_cannot_run_into_each_other(parts: list[str], other: list[str]) -> None:
    assert (digest(*parts) == digest(*other)) is (parts == other)


@pytest.mark.parametrize("place", range(5))
def test_each_component_of_a_page_job_makes_another_job(place: int) -> None:
    changed = list(JOB)
    changed[place] += "x"
    assert page_job_id(*changed) != page_job_id(*JOB)


@pytest.mark.parametrize(
    ("path", "columns"),
    [
        ("/zuerich/", COLUMNS),
        ("/zurich/", COLUMNS | {"river": "Sihl"}),
        ("/zurich/", COLUMNS | {"lake": ""}),
        ("/zurich/", {"name": "Zürich"}),
        ("/zurich/", {"river": "Zürich", "name": "Limmat"}),
    ],
)
def test_each_column_and_the_path_make_another_input(path: str, columns: dict[str, str]) -> None:
    assert input_hash(path, columns) != INPUT


def test_kinds_of_keys_do_not_meet() -> None:
    """A page of site "a" at "b" is no page job, content or input that is spelled alike."""
    keys = [
        page_id("a", "b"),
        digest("a", "b"),
        input_hash("a", {}),
        content_hash("a", "b", ""),
        page_job_id("a", "b", "", "", ""),
    ]
    assert len(set(keys)) == len(keys)


def test_a_page_belongs_to_its_site() -> None:
    assert page_id("towns", "/zurich/") != page_id("cities", "/zurich/")


def test_a_publish_key_names_the_operation_and_not_the_attempt() -> None:
    assert publish_key(PAGE, 3) == publish_key(PAGE, 3)
    assert publish_key(PAGE, 3) != publish_key(PAGE, 4)


def test_ids_are_128_bits_of_hex() -> None:
    for key in (digest("a"), page_id("a", "b"), input_hash("/", {})):
        assert len(key) == ID_LENGTH == 32
        int(key, 16)


def test_what_cannot_be_told_apart_as_json_is_refused() -> None:
    with pytest.raises(TypeError):
        digest({1, 2})


def test_nothing_random_and_no_clock_is_at_hand() -> None:
    tree = ast.parse(inspect.getsource(identity))
    imported = {
        alias.name.split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    } | {
        (node.module or "").split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
    }
    assert imported == {"hashlib", "json", "collections", "typing"}
