import pytest

from content_pipeline.sandbox.draws import Draws


def test_requests_are_numbered_within_their_operation() -> None:
    draws = Draws(0)
    asked = [("create", "a"), ("list", "a"), ("create", "b"), ("create", "a")]
    assert [draws.counted(operation, key) for operation, key in asked] == [1, 1, 2, 3]


def test_a_rule_strikes_as_often_as_it_may() -> None:
    draws = Draws(0)
    assert [draws.strikes(0, 2, None, "a") for _ in range(4)] == [True, True, False, False]
    assert draws.strikes(1, 1, None, "a"), "another rule has a count of its own"
    assert all(draws.strikes(2, None, None, "a") for _ in range(50))


def test_a_draw_that_fails_uses_up_nothing() -> None:
    draws = Draws(0)
    assert not draws.strikes(0, 1, 0.0, "a")
    assert draws.strikes(0, 1, 1.0, "a")


def outcomes(seed: int, keys: list[str]) -> dict[str, list[bool]]:
    """Three attempts of every key, in this order of keys."""
    draws = Draws(seed)
    found: dict[str, list[bool]] = {key: [] for key in keys}
    for _ in range(3):
        for key in keys:
            draws.counted("create", key)
            found[key].append(draws.strikes(0, None, 0.5, key))
    return found


def test_a_draw_depends_on_seed_key_and_attempt_and_not_on_the_order() -> None:
    keys = [f"key-{number}" for number in range(20)]
    assert outcomes(1, keys) == outcomes(1, keys[::-1])
    assert outcomes(1, keys) != outcomes(2, keys)
    assert len({tuple(each) for each in outcomes(1, keys).values()}) > 4


@pytest.mark.parametrize("probability", [0.1, 0.5, 0.9])
def test_a_probability_is_kept_in_the_long_run(probability: float) -> None:
    draws = Draws(7)
    struck = sum(draws.strikes(0, None, probability, f"key-{n}") for n in range(2000))
    assert struck / 2000 == pytest.approx(probability, abs=0.05)
