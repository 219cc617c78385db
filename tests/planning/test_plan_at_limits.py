"""Plans in which some give all they have: what they aim at is lowered to what they reach there.

The pilots are those of `fedaccord plan experiments/digits/frontier.toml --algorithm EQ-PLAN`. With
limits of 60 each, the plan of the committed comparison takes all of two agents. Rounding must not
make the solver prove that there is no such plan.
"""

import json
from pathlib import Path

from fedaccord import PilotTable, fit_curves, make_plan

PILOTS = Path(__file__).with_name("digits_pilots.csv")
COMMITTED = Path(__file__).parents[2] / "experiments" / "digits" / "results" / "frontier.json"


def test_a_plan_that_takes_all_of_two_agents_is_found():
    committed = json.loads(COMMITTED.read_text(encoding="utf-8"))["contenders"]["EQ-PLAN"]
    plan = make_plan(fit_curves(PilotTable.load(PILOTS), seed=1), seed=1)
    assert plan.allocation.contributions.tolist() == committed["P1"]["contributions"]
    assert plan.everyone.value >= 0.95
