"""The time limits of a site, each of which must leave room for the one below it.

What belongs here: their order (a call, an attempt, a hold, a run, a page) with the reason for each
step, and the sentence that refuses a bad one. The values are a site's own, in ``site``.
"""

LEASES_PER_HOLD = 2
"""A hold is noticed to be too long between two renewals, so it must outlast some."""


def why_out_of_order(
    *,
    deadline_s: float,
    answer_slack_s: float,
    lease_s: float,
    patience_s: float,
    longest_hold_s: float,
    run_limit_s: float,
    page_deadline_s: float,
) -> str | None:
    """Why these limits, in seconds, cannot be kept together; None when they can.

    The first that is wrong, from the shortest to the longest, as one sentence.
    """
    attempt_s = deadline_s + answer_slack_s
    held_too_short = longest_hold_s < LEASES_PER_HOLD * lease_s
    rules = (
        (
            answer_slack_s <= 0,
            f"generation.answer_slack_s is {answer_slack_s:g} s: a call is given up after "
            f"generation.deadline_s ({deadline_s:g} s), but the provider may finish it a moment "
            "later, and another would be paid while its answer comes; allow some seconds",
        ),
        (
            longest_hold_s <= attempt_s,
            f"a call may take generation.deadline_s ({deadline_s:g} s) and its answer "
            f"generation.answer_slack_s ({answer_slack_s:g} s) more, so lane.longest_hold_s "
            f"({longest_hold_s:g} s) must be longer than {attempt_s:g} s, or a second worker takes "
            "the page over while the first still waits for its answer",
        ),
        (
            held_too_short,
            f"lane.longest_hold_s ({longest_hold_s:g} s) must be at least {LEASES_PER_HOLD} times "
            f"lane.lease_s ({lease_s:g} s), or a page that is at work is taken away between two "
            "renewals of its lease",
        ),
        (
            run_limit_s <= longest_hold_s,
            f"lane.run_limit_s ({run_limit_s:g} s) must be longer than lane.longest_hold_s "
            f"({longest_hold_s:g} s), or a run is ended while a page may still be held in it",
        ),
        (
            run_limit_s <= patience_s,
            f"lane.run_limit_s ({run_limit_s:g} s) must be longer than lane.patience_s "
            f"({patience_s:g} s), or a run is ended while it still waits for a page",
        ),
        (
            page_deadline_s <= run_limit_s,
            f"lane.page_deadline_s ({page_deadline_s:g} s) must be longer than lane.run_limit_s "
            f"({run_limit_s:g} s), or a page's time is over before the run that works on it",
        ),
    )
    return next((why for is_wrong, why in rules if is_wrong), None)
