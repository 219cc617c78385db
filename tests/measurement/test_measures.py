"""Pilots with several measures: needs and plans near the truth, harm found, and bad tables."""

import csv
import json

import numpy as np
import pytest
from commands import TWO_HOSPITALS, run
from known_hospitals import BENEFITS, CURVES, NAMES, designed, noise_at, pilots

from fedaccord._io.table import write_table
from fedaccord.equilibria.solve import solve_stable
from fedaccord.errors import InputError
from fedaccord.games.goals import Goal, GoalsGame, LossCurve
from fedaccord.games.measured import LearningCurve, predict_accuracies
from fedaccord.measurement.fit import fit_curves
from fedaccord.measurement.measures import GoalPilots, find_harm, fit_goals

COLUMNS = ["pilot", "agent", "contribution", "measure", "value", "goal", "limit"]
SENSITIVITY, LOSS = "sensitivity, over 75", "log loss"
# The loss is three times an error, and others' samples are worth half as much to it.
UNIT = 3.0
LOSS_BENEFITS = np.where(np.eye(4) == 1, 1.0, BENEFITS / 2)
GOALS = {SENSITIVITY: [0.82, 0.82, None, 0.80], LOSS: [None, 0.6, 0.66, None]}


def measured_lines(seed=0):
    """Draw a line for every agent, pilot and measure."""
    rng = np.random.default_rng(seed)
    limits = np.full(4, 3000.0)
    given = designed(limits, 2)
    for name, benefits in ((SENSITIVITY, BENEFITS), (LOSS, LOSS_BENEFITS)):
        promised = predict_accuracies(CURVES, given @ benefits.T)
        reached = promised + noise_at(promised, 2_000) * rng.standard_normal(promised.shape)
        values = reached if name == SENSITIVITY else UNIT * (1 - reached)
        for pilot, row in enumerate(values):
            for agent, value in enumerate(row):
                goal = GOALS[name][agent]
                amount, reached = float(given[pilot, agent]), round(float(value), 4)
                goal = "" if goal is None else goal
                yield [pilot, NAMES[agent], amount, name, reached, goal, 3000]


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("measures") / "measures.csv"
    write_table(path, COLUMNS, measured_lines())
    return path


@pytest.fixture(scope="module")
def fitted(table):
    return fit_goals(table, resamples=50)


@pytest.fixture(scope="module")
def truth():
    goals = []
    for agent, name in enumerate(NAMES):
        floor, height, head, pace = CURVES[agent]
        if (goal := GOALS[SENSITIVITY][agent]) is not None:
            curve = LearningCurve(floor, height, head, pace)
            goals.append(Goal(name, SENSITIVITY, BENEFITS[agent], measure="sensitivity",
                              at_least=goal, curve=curve))  # fmt: skip
        if (goal := GOALS[LOSS][agent]) is not None:
            curve = LossCurve(UNIT * floor, UNIT * height, head, pace)
            goals.append(Goal(name, LOSS, LOSS_BENEFITS[agent], measure="log loss", at_most=goal,
                              curve=curve))  # fmt: skip
    return GoalsGame(goals, agents=NAMES, limits=np.full(4, 3000.0))


def test_the_game_has_the_goals_of_the_table(fitted):
    wishes = [(goal.agent, goal.name, goal.wish) for goal in fitted.game.goals]
    assert wishes == [
        ("University", SENSITIVITY, "at least 0.82"),
        ("City", SENSITIVITY, "at least 0.82"),
        ("City", LOSS, "at most 0.6"),
        ("Rural", LOSS, "at most 0.66"),
        ("Coast", SENSITIVITY, "at least 0.8"),
    ]


def test_needs_and_the_stable_plan_are_near_the_truth(fitted, truth):
    assert fitted.game.needs == pytest.approx(truth.needs, rel=0.25)
    total = solve_stable(fitted.game).total
    assert total == pytest.approx(solve_stable(truth).total, rel=0.2)


def test_more_samples_reach_goals_more_surely(fitted, truth):
    plan = solve_stable(truth).contributions
    at_plan, above = fitted.chances(plan), fitted.chances(np.minimum(2 * plan + 50, 3000))
    assert ((at_plan >= 0) & (at_plan <= above) & (above <= 1)).all()
    assert above.min() > 0.9
    assert fitted.chance_of_all(plan) <= at_plan.min()
    assert fitted.chance_of_all(np.full(4, 3000.0)) > 0.95


def refit(tmp_path, lines):
    write_table(tmp_path / "measures.csv", COLUMNS, lines)
    return fit_goals(tmp_path / "measures.csv", resamples=50)


def test_values_that_were_not_measured_are_no_failures(tmp_path, fitted):
    """City leaves out every third sensitivity, and nobody wrote down the losses of pilot 3."""
    plenty, lines = np.full(4, 3000.0), list(measured_lines())
    for line in lines:
        blank = line[1] == "City" and line[0] % 3 == 0 if line[3] == SENSITIVITY else line[0] == 3
        line[4] = "" if blank else line[4]
    found = refit(tmp_path, lines)
    assert fitted.estimate_all(plenty) > 0.95
    assert found.estimate_all(plenty) == pytest.approx(fitted.estimate_all(plenty), abs=0.03)
    assert found.chance_of_all(plenty) > 0.95


def test_runs_that_failed_reach_no_goal(tmp_path):
    lines = list(measured_lines())
    count = 1 + max(line[0] for line in lines)
    for line in lines:
        line[4] = "failed" if line[0] < count // 4 else line[4]
    found = refit(tmp_path, lines).estimate_all(np.full(4, 3000.0))
    assert found == pytest.approx(1 - count // 4 / count, abs=0.03)


def test_measures_may_list_the_pilots_in_any_order(tmp_path, fitted):
    lines = list(measured_lines())
    half = len(lines) // 2
    turned = sorted(lines[half:], key=lambda line: -line[0])
    found = refit(tmp_path, [*lines[:half], *turned])
    assert found._residuals == pytest.approx(fitted._residuals, rel=1e-3, abs=1e-6)


def test_without_a_pilot_that_measured_all_goals_misses_are_added_up(tmp_path):
    lines = list(measured_lines())
    for line in lines:
        line[4] = line[4] if (line[3] == LOSS) == line[0] % 2 else ""
    found, given = refit(tmp_path, lines), np.full(4, 900.0)
    assert 0 < found.estimate_all(given) < 1
    assert found.estimate_all(given) == pytest.approx(1 - (1 - found.chances(given)).sum())


def test_the_needs_of_every_world_reach_the_targets_on_its_curves(fitted):
    game = fitted.make_game(np.full(5, 0.01))
    # In shares of the unit: a loss of 0.6 is 1 - 0.6 / unit.
    shares = [
        0.01 + (1 - goal.target / fitted.units[LOSS] if goal.name == LOSS else goal.target)
        for goal in fitted.game.goals
    ]
    for row, (goal, share) in enumerate(zip(fitted.game.goals, shares, strict=True)):
        drawn, agent = fitted.measurements[goal.name].resamples, NAMES.index(goal.agent)
        needs = game.worlds.needs[:, row]
        known = np.isfinite(needs) & (needs > 0)
        reached = predict_accuracies(drawn.curves[known, agent], needs[known])
        assert known.mean() > 0.9
        assert reached == pytest.approx(np.full(known.sum(), share), abs=1e-9)
        assert np.array_equal(game.worlds.benefits[:, row], drawn.benefits[:, agent])


def test_an_agent_that_wants_nothing_of_a_measure_has_no_goal_of_it(tmp_path):
    made = GoalPilots(
        agents=("A", "B"),
        measures=("AUC", "sensitivity"),
        contributions=np.array([[5.0, 5.0]]),
        values=np.full((1, 2, 2), 0.7),
        deviations=np.full((1, 2, 2), np.nan),
        goals=np.array([[0.6, 0.8], [0.6, np.nan]]),
        limits=np.array([9.0, 9.0]),
    )
    made.save(tmp_path / "m.csv")
    with (tmp_path / "m.csv").open(newline="") as file:
        goals = {(x["agent"], x["measure"]): x["goal"] for x in csv.DictReader(file)}
    assert goals == {
        ("A", "AUC"): "0.6",
        ("A", "sensitivity"): "0.8",
        ("B", "AUC"): "0.6",
        ("B", "sensitivity"): "",
    }


# Harm.


def harmful_pilots(seed, worth):
    """Draw pilots in which samples of Coast are worth this to Rural."""
    benefits = np.array(BENEFITS)
    benefits[2, 3] = worth
    return pilots(seed, benefits=benefits, repeats=6)


def test_harm_is_found_with_certainty_and_only_there():
    found = find_harm(fit_curves(harmful_pilots(1, -0.05), resamples=20))
    assert (found[0].agent, found[0].other) == ("Rural", "Coast")
    assert found[0].probability > 0.99
    assert found[0].worth < 0
    assert "takes away" in found[0].sentence
    others = [harm.probability for harm in found if harm is not found[0]]
    assert np.mean(np.array(others) > 0.95) <= 0.1


def test_samples_that_help_are_not_called_harmful():
    found = find_harm(fit_curves(harmful_pilots(2, 0.3), resamples=20))
    pair = next(h for h in found if (h.agent, h.other) == ("Rural", "Coast"))
    assert pair.probability < 0.05
    assert "adds" in pair.sentence


def test_a_game_has_harm_only_where_it_is_certain(tmp_path):
    table = harmful_pilots(1, -0.05)
    rows = (
        [pilot, name, float(table.contributions[pilot, agent]), "accuracy",
         float(table.accuracies[pilot, agent]), 0.8, 3000]
        for pilot in range(len(table))
        for agent, name in enumerate(table.agents)
    )  # fmt: skip
    write_table(tmp_path / "m.csv", COLUMNS, rows)
    found = fit_goals(tmp_path / "m.csv", resamples=20, certainty=0.99)
    assert np.argwhere(found.game.rows < 0).tolist() == [[2, 3]]
    assert fit_goals(tmp_path / "m.csv", resamples=20).game.is_monotone
    # Samples that harm make the goal of the harmed less likely, and that of all with it.
    given = np.array([500.0, 500.0, 500.0, 0.0])
    more = np.array([500.0, 500.0, 500.0, 3000.0])
    assert found.chances(more)[2] < found.chances(given)[2]


# Tables that make no sense.


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda row: [*row[:3], "", *row[4:]], "names no measure"),
        (lambda row: [*row[:3], "sensitvity", *row[4:]], "did you mean sensitivity?"),
        (
            lambda row: [*row[:4], -0.5, *row[5:]] if row[3] == LOSS else row,
            "not a value of a loss",
        ),
        (lambda row: [*row[:4], "1.5", *row[5:]] if row[3] != LOSS else row, "between 0 and 1"),
        (lambda row: None if row[3] == LOSS and row[1] == "Coast" else row, "Coast is measured by"),
        (lambda row: [*row[:6], 99999] if row[3] == LOSS else row, "the limits of"),
        (lambda row: None, "nothing below its first line"),
        (lambda row: [*row[:5], "", *row[6:]], "has no goal of University"),
        (lambda row: [*row[:5], "", *row[6:]] if row[1] == "Coast" else row, "no goal of Coast"),
        (lambda row: [*row[:5], 0, *row[6:]] if row[3] == LOSS else row, "give a number above 0"),
        (lambda row: [*row[:5], 1e9, *row[6:]] if row[3] == LOSS else row, "the same unit"),
        (
            lambda row: [*row[:4], 1e300, ""] if row[:2] + row[3:4] == [0, "City", LOSS] else row,
            "the same unit",
        ),
        (
            lambda row: (
                [*row[:2], 17.0, *row[3:]] if row[:2] + row[3:4] == [0, "City", LOSS] else row
            ),
            "is 17, and in line",
        ),
    ],
)
def test_a_wrong_table_is_refused_with_a_sentence(change, said, tmp_path):
    lines = [row for line in measured_lines() if (row := change(line)) is not None]
    write_table(tmp_path / "m.csv", COLUMNS, lines)
    with pytest.raises(InputError) as error:
        fit_goals(tmp_path / "m.csv", resamples=2)
    assert said in str(error.value)


def test_losses_with_decimal_commas_are_those_with_points(tmp_path):
    write_table(tmp_path / "points.csv", COLUMNS, measured_lines())
    lines = [";".join(f'"{c}"' for c in line) for line in [COLUMNS, *measured_lines()]]
    (tmp_path / "commas.csv").write_text("\n".join(lines).replace(".", ","))
    points, commas = (
        fit_goals(tmp_path / f"{name}.csv", resamples=2) for name in ("points", "commas")
    )
    assert commas.game.requirements.tolist() == points.game.requirements.tolist()


def test_a_column_that_is_there_twice_is_refused(tmp_path):
    write_table(tmp_path / "m.csv", [*COLUMNS[:5], "value", "limit"], measured_lines())
    with pytest.raises(InputError, match="names the column 'value' twice"):
        fit_goals(tmp_path / "m.csv")


def test_the_command_refuses_a_probability_before_it_fits(table, monkeypatch):
    monkeypatch.setattr("fedaccord.measurement.measures.fit_curves", None)
    done = run("solve", table, "--probability", "2")
    assert done.code == 2
    assert "--probability must be above 0 and below 1" in done.stderr


def test_a_table_without_measures_is_refused(tmp_path):
    write_table(
        tmp_path / "m.csv", ["pilot", "agent", "contribution", "accuracy"], [[1, "A", 9, 1]]
    )
    with pytest.raises(InputError, match="has no column 'measure'"):
        fit_goals(tmp_path / "m.csv")


def test_the_command_solves_a_table_of_measures(table, tmp_path):
    done = run("solve", table, "--concept", "stable", "--json")
    assert done.code == 0, done.stderr
    found = json.loads(done.stdout)
    assert len(found["chances"]["goals"]) == 5
    assert found["chances"]["all_at_least"] < min(found["chances"]["goals"])
    planned = run("plan", table, "--save", tmp_path / "plan.csv", "--json")
    assert planned.code == 0, planned.stderr
    chances = json.loads(planned.stdout)["chances"]
    assert chances["all"] >= 0.95 and chances["all_at_least"] <= chances["all"]
    lines = (tmp_path / "plan.csv").read_text().split()
    assert all(float(line.split(",")[1]).is_integer() for line in lines[1:])
    refused = run("plan", table, "--goal", "0.8")
    assert refused.code == 2
    assert "--goal is for pilots with accuracies" in refused.stderr


def test_too_few_pilots_of_measures_are_a_doubt_as_those_of_accuracies_are(table, tmp_path):
    lines = ["1,A,100,accuracy,0.7,0.6,500", "1,B,100,accuracy,0.7,0.6,500"]
    for name, heading in (("m", "measure,value"), ("p", "accuracy")):
        head = f"pilot,agent,contribution,{heading},goal,limit"
        said = lines if name == "m" else [line.replace("accuracy,", "") for line in lines]
        (tmp_path / f"{name}.csv").write_text("\n".join([head, *said]))
    doubt = "The pilots have 1 set of contributions"
    assert f"Doubt: {doubt}" in run("plan", tmp_path / "p.csv").stdout
    page = tmp_path / "page.html"
    assert f"Doubt: {doubt}" in run("solve", tmp_path / "m.csv", "--report", page).stdout
    assert f"Doubt: {doubt}" in page.read_text()
    assert "One run reaches all goals with probability" in page.read_text()
    assert "Not examined" not in page.read_text()
    found = json.loads(run("solve", tmp_path / "m.csv", "--json").stdout)
    assert [one.startswith(doubt) for one in found["doubts"]] == [True]
    assert json.loads(run("solve", table, "--json").stdout)["doubts"] == []


def test_the_command_refuses_a_probability_without_measures(tmp_path):
    (tmp_path / "game.json").write_text(json.dumps(TWO_HOSPITALS))
    done = run("solve", tmp_path / "game.json", "--probability", "0.9")
    assert done.code == 2
    assert "--probability is for pilots with several measures" in done.stderr
