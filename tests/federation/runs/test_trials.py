"""Trial numbers: blocks of their own, which no two owners share."""

import itertools

from fedaccord.federation.runs import trials


def test_blocks_follow_each_other_and_leave_room():
    starts = [0, trials.PLANNING, trials.PILOTS, trials.AIMED, trials.SEEKING, trials.VERIFYING]
    room = [after - before for before, after in itertools.pairwise(starts)]
    assert min(room) == trials.MOST_PILOTS


def test_pilots_come_from_no_trial_that_is_counted_or_seeks_a_plan():
    uncounted = trials.UNCOUNTED
    assert trials.PILOTS in uncounted
    assert trials.AIMED + trials.MOST_PILOTS - 1 in uncounted
    assert trials.PLANNING - 1 not in uncounted
    assert trials.SEEKING not in uncounted
