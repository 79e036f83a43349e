"""Without WordPress its tests are skipped with a reason, and fail where it is required."""

from pathlib import Path

import pytest

from content_pipeline_tests.real_cms.presence import SCRIPT, find_programs

ROOT = Path(__file__).parent.parent.parent


def test_without_wordpress_a_test_is_skipped_and_names_the_script(tmp_path: Path) -> None:
    with pytest.raises(pytest.skip.Exception, match=SCRIPT):
        find_programs(folder=tmp_path, required=False)


def test_where_it_is_required_a_missing_wordpress_fails_the_test(tmp_path: Path) -> None:
    with pytest.raises(pytest.fail.Exception, match=f"WordPress itself missing; run {SCRIPT}"):
        find_programs(folder=tmp_path, required=True)


def test_the_script_exists_and_continuous_integration_runs_it() -> None:
    assert (ROOT / SCRIPT).stat().st_mode & 0o111
    assert "wordpress" in (ROOT / ".ci" / "run").read_text()
    assert f"\t{SCRIPT}\n" in (ROOT / "Makefile").read_text()
