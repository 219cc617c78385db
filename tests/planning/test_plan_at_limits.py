"""Plans in which some give all they have: what they aim at is lowered to what they reach there.

The pilots are those of `fedaccord plan experiments/digits/frontier.toml --algorithm EQ-PLAN`. With
limits of 60 each, the plan of the committed comparison takes all of two agents. Rounding must not
make the solver prove that there is no such plan.
"""

from pathlib import Path

from fedaccord import PilotTable, fit_curves, make_plan

PILOTS = Path(__file__).with_name("digits_pilots.csv")


def test_a_plan_that_takes_all_of_two_agents_is_found():
    plan = make_plan(fit_curves(PilotTable.load(PILOTS), seed=1), seed=1, judged="measured")
    given = plan.allocation.contributions
    assert (given == plan.game.limits).sum() >= 1 and (given <= plan.game.limits).all()
    assert plan.everyone.value >= 0.9
