"""Without Redis its tests are skipped with a reason, and fail where it is required."""

from pathlib import Path

import pytest

from content_pipeline_tests.machines.presence import SCRIPT, redis_program

ROOT = Path(__file__).parent.parent.parent


def test_without_redis_a_test_is_skipped_and_names_the_script(tmp_path: Path) -> None:
    with pytest.raises(pytest.skip.Exception, match=SCRIPT):
        redis_program(folder=tmp_path, path=str(tmp_path), required=False)


def test_where_it_is_required_a_missing_redis_fails_the_test(tmp_path: Path) -> None:
    with pytest.raises(pytest.fail.Exception, match=f"run {SCRIPT}"):
        redis_program(folder=tmp_path, path=str(tmp_path), required=True)


def test_one_that_the_system_has_is_taken(tmp_path: Path) -> None:
    program = tmp_path / "redis-server"
    program.touch(mode=0o755)
    found = redis_program(folder=tmp_path / "none", path=str(tmp_path), required=True)
    assert found == str(program)


def test_the_script_exists_and_continuous_integration_runs_it() -> None:
    assert (ROOT / SCRIPT).stat().st_mode & 0o111
    assert " redis\n" in (ROOT / ".ci" / "run").read_text()
    assert f"\t{SCRIPT}\n" in (ROOT / "Makefile").read_text()
