"""Charts of audits: what each line shows, and what is said to who cannot see it."""

import pytest
from training_results import audit, lenient, strict

from fedaccord.federation.defection.chart import defection_chart

NAMES = ("north", "south", "west")


def named(chart, start):
    (found,) = [line for line in chart.lines if line.name.startswith(start)]
    return found


def west_fails(level, defector, client, trial):
    """West misses its goal in every second trial that it cuts in."""
    return not (level < 1 and client == defector == 2 and trial % 2)


# Defection.


def test_a_line_has_the_shares_of_the_random_agent_with_their_intervals():
    chart = defection_chart(audit({"FedAvg": west_fails}, names=NAMES, trials=4))
    line = chart.lines[0]
    assert (line.name, line.x) == ("FedAvg", (25.0, 50.0, 100.0))
    # Two of twelve runs fail: west's in two of four trials.
    assert line.y == pytest.approx((10 / 12, 10 / 12, 1))
    assert all(low < y <= high for low, y, high in zip(line.low, line.y, line.high, strict=True))
    assert chart.percent and chart.goal is None


def test_the_worst_off_has_a_line_of_its_own_that_belongs_to_the_algorithms():
    line = defection_chart(audit({"FedAvg": west_fails}, names=NAMES)).lines[1]
    assert (line.name, line.of) == ("FedAvg, worst off: west", "FedAvg")
    assert line.y == (0.5, 0.5, 1)
    assert line.low == ()


def test_who_cannot_see_the_curve_is_told_its_numbers():
    found = audit({"FedAvg": lenient, "MW-FED": strict}, names=NAMES)
    alt = defection_chart(found).alt
    said = "the defector reaches its goal in"
    assert alt.startswith(f"FedAvg: {said} 100 % with 100 %, 100 % with 50 %, 100 % with 25 %")
    assert f"MW-FED: {said} 100 % with 100 %, 0 % with 50 %, 0 % with 25 %" in alt


def test_against_a_plan_only_contributors_count():
    def south_fails(level, defector, client, trial):
        return level == 1 or not client == defector == 1

    found = audit({"FedAvg": south_fails}, names=NAMES, protocol="P2", asked=[0, 30, 30])
    chart = defection_chart(found)
    # North, of whom nothing is asked, is satisfied at any level, and does not count.
    assert [line.y for line in chart.lines] == [(0.5, 0.5, 1), (0, 0, 1)]
    assert "a random contributor" in chart.x and "what the plan asks of it" in chart.x
    assert chart.name == "defection-from-plan"
    assert found.curves[0].find_worst_off() == "south"


def test_of_whom_nothing_is_asked_nobody_is_the_worst_off():
    found = audit({"FedAvg": lenient}, names=NAMES, protocol="P2", asked=[0, 0, 0])
    assert found.curves[0].find_worst_off() is None
    chart = defection_chart(found)
    assert chart.lines == () and chart.alt == "The plan asks nothing of any agent."


def test_where_all_fare_alike_nobody_has_a_line_of_its_own():
    for names in (["north"], NAMES):
        assert len(defection_chart(audit({"FedAvg": strict}, names=names)).lines) == 1


@pytest.mark.parametrize(
    ("options", "who"),
    [
        ({}, "a random agent"),
        ({"protocol": "P2"}, "a random agent"),
        ({"protocol": "P2", "asked": [0, 30, 30]}, "a random contributor"),
        ({"asked": [0, 30, 30]}, "a random agent"),
    ],
)
def test_who_gives_less_is_a_contributor_where_not_all_are(options, who):
    found = audit({"FedAvg": lenient}, names=NAMES, **options)
    assert found.describe_defector() == who
