"""The lower bounds that the project declares are the versions that `make oldest` installs."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def _bounds() -> dict[str, str]:
    """Package → its declared lower bound."""
    document = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    declared = document["project"]["dependencies"] + document["dependency-groups"]["dev"]
    split = [re.split(r"(?:\[\w+\])?>=", each) for each in declared]
    return {name.lower(): bound for name, bound in split}


def _pins(file: str) -> dict[str, list[str]]:
    """Package → its versions in ``file``: one for each range of Python versions."""
    found: dict[str, list[str]] = {}
    for line in (ROOT / file).read_text(encoding="utf-8").splitlines():
        pinned = re.match(r"([A-Za-z0-9._-]+)(?:\[\w+\])?==([^\s;]+)", line)
        if pinned:
            found.setdefault(pinned[1].lower(), []).append(pinned[2])
    return found


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)][:3]


@pytest.mark.parametrize("package", _bounds())
def test_the_oldest_is_the_declared_one_and_the_newest_is_not_older(package: str) -> None:
    bound = _numbers(_bounds()[package])
    oldest = min(map(_numbers, _pins("constraints-oldest.txt")[package]))
    newest = max(map(_numbers, _pins("constraints.txt")[package]))
    assert oldest[: len(bound)] == bound
    assert newest >= oldest


def test_the_family_of_dagster_is_of_one_release() -> None:
    for file in ("constraints.txt", "constraints-oldest.txt"):
        pins = _pins(file)
        (core,) = pins["dagster"]
        family = {name: pins[name] for name in ("dagster-webserver", "dagster-dg-cli")}
        assert set(map(tuple, family.values())) == {(core,)}, file
        assert pins["dagster-postgres"] == [
            f"0.{16 + int(core.split('.')[1])}.{core.split('.')[2]}"
        ]
