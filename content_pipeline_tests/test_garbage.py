"""When Python looks for garbage, and that it looks again afterwards."""

import gc

import pytest

from content_pipeline.garbage import not_sought, sought_among_new


def test_none_is_sought_while_code_is_loaded() -> None:
    assert gc.isenabled()
    with not_sought():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_it_is_sought_again_though_the_code_cannot_be_loaded() -> None:
    with pytest.raises(ImportError), not_sought():
        raise ImportError
    assert gc.isenabled()


def test_who_has_switched_it_off_finds_it_off() -> None:
    gc.disable()
    try:
        with not_sought():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_what_is_old_is_left_alone_for_the_time_of_the_block() -> None:
    before = gc.get_freeze_count()
    with sought_among_new():
        assert gc.get_freeze_count() > before
    assert gc.get_freeze_count() == 0


class _Ring:
    """Garbage of the kind that only the collector finds."""

    ended = 0

    def __init__(self) -> None:
        self.itself = self

    def __del__(self) -> None:
        _Ring.ended += 1


def test_what_comes_about_in_the_block_is_collected_there() -> None:
    _Ring.ended = 0
    with sought_among_new():
        _Ring()
        gc.collect()
        assert _Ring.ended == 1
