import pytest

from content_pipeline.core.failures import EXPLANATIONS, Failure, FailureClass


@pytest.mark.parametrize("failure_class", FailureClass)
def test_every_class_is_explained_to_people(failure_class: FailureClass) -> None:
    explanation = EXPLANATIONS[failure_class]
    assert explanation[0].isupper()
    assert explanation.endswith(".")
    assert len(explanation) < 80


def test_no_two_classes_are_explained_alike() -> None:
    assert EXPLANATIONS.keys() == set(FailureClass)
    assert len(set(EXPLANATIONS.values())) == len(FailureClass)


def test_a_failure_carries_the_explanation_of_its_class() -> None:
    failure = Failure(failure_class=FailureClass.QUOTA, message="HTTP 429 insufficient_quota")
    assert failure.explanation == EXPLANATIONS[FailureClass.QUOTA]
    assert (failure.code, failure.retry_after_s, failure.request_id) == (None, None, None)


def test_a_class_is_stored_as_its_own_name() -> None:
    assert all(name.value == name.name.lower() for name in FailureClass)
