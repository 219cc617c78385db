"""A config with goals, its pilots, the fit, the plan and the audit."""

import csv

import numpy as np
import pytest
from commands import run
from numpy.testing import assert_allclose

from fedaccord import Allocation, fit_goals, plan_goals
from fedaccord.errors import InputError, UnreachableError
from fedaccord.federation import Config, defection_curves, run_goal_pilots, run_pilots, train
from fedaccord.federation.runs.store import RunStore
from fedaccord.measurement.measures import MEASURED

GOALS = """
[[agents.goals]]
measure = "auc"
target = 0.82
[[agents.goals]]
measure = "specificity"
target = [0.6, 0.6, 0.61]
threshold = 0.6
group = "age >= 60"
"""


def write_table(folder, points=600):
    """Three hospitals whose patients differ a little: more data helps everybody."""
    random = np.random.default_rng(8)
    sites = np.arange(points) % 3
    inputs = random.normal(size=(points, 6))
    ages = random.integers(30, 90, size=points)
    slope = np.array([1.0, 0.8, 0.6, 0.5, 0.4, 0.3])
    scores = inputs @ slope + 0.3 * (sites - 1) * inputs[:, 0]
    labels = (random.random(points) < 1 / (1 + np.exp(-1.6 * scores))).astype(int)
    with open(folder / "table.csv", "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["hospital", "age", *"abcdef", "ill"])
        for n in range(points):
            shown = [f"{value:.4f}" for value in inputs[n]]
            rows.writerow(["ABC"[sites[n]], ages[n], *shown, labels[n]])


def write_config(folder, goals=GOALS, more=""):
    write_table(folder)
    (folder / "config.toml").write_text(f"""
[data]
source = "csv"
path = "table.csv"
label = "ill"
site = "hospital"
[model]
name = "logistic"
[agents]
points = 120
validation = 0.5
{goals}
[training]
rounds = 20
batch_size = 16
learning_rate = 0.05
evaluate_every = 10
[algorithms.FedAvg]
kind = "fedavg"
[audit]
trials = 2
levels = [1, 0.25]
scored_on = "all"
{more}
""")
    return Config.load(folder / "config.toml")


def test_from_a_config_to_an_audit(tmp_path) -> None:
    config = write_config(tmp_path)
    source, algorithm = config.build(), config.algorithms["FedAvg"]
    pilots = run_goal_pilots(source, algorithm, budget=20, store=tmp_path / "runs.sqlite")
    assert pilots.measures == ("AUC", "specificity, at 0.6, age >= 60")
    assert pilots.goals.tolist() == [[0.82, 0.6], [0.82, 0.6], [0.82, 0.61]]
    assert pilots.values.shape == (20, 3, 2)
    # Some 30 of each class: Hanley and McNeil's deviation of an AUC of 0.8 is 0.058.
    assert_allclose(pilots.deviations[:, :, 0].mean(), 0.058, rtol=0.2)
    pilots.save(tmp_path / "measures.csv")
    measured = fit_goals(tmp_path / "measures.csv", resamples=20)
    assert_allclose(measured.game.rows, fit_goals(pilots, resamples=20).game.rows)
    plan = plan_goals(measured, probability=0.6)
    given = np.ceil(plan.contributions).astype(int)
    assert (given <= 60).all()
    audit = defection_curves(
        source, {"FedAvg": algorithm}, protocol="P2", plan=Allocation(given, list("ABC")),
        trials=2, levels=[1.0, 0.25], scored_on="all", store=tmp_path / "runs.sqlite",
    )  # fmt: skip
    assert audit.measures == pilots.measures
    assert audit.curves[0].all_judged.trials == 2


def test_a_design_of_ones_own_on_all_other_points(tmp_path) -> None:
    config = write_config(tmp_path, goals=GOALS)
    text = (tmp_path / "config.toml").read_text().replace("validation = 0.5", 'validation = "rest"')
    (tmp_path / "config.toml").write_text(text)
    source = Config.load(tmp_path / "config.toml").build()
    algorithm, design = config.algorithms["FedAvg"], [[120, 0, 0], [0, 60, 120]]
    pilots = run_goal_pilots(source, algorithm, design=design)
    assert pilots.contributions.tolist() == design
    # All other points of a site are nearly the same in each pilot: no draw adds to the scatter.
    assert np.isnan(pilots.deviations).all()
    assert [len(c.validation_labels) for c in source.deal(0).clients] == [80, 80, 80]
    for wrong, sentence in (
        ([[121, 0, 0]], "A gives 121 samples in pilot 0 and has 120"),
        ([[1, 1]], "names 2 contributions for 3 agents"),
        ([[0, 0, 0]], "no agent gives anything in pilot 0"),
    ):
        with pytest.raises(InputError, match=sentence):
            run_goal_pilots(source, algorithm, design=wrong)
    with pytest.raises(InputError, match="leave budget and aim out"):
        run_goal_pilots(source, algorithm, design=design, budget=3)


def test_a_second_call_makes_no_run_again(tmp_path) -> None:
    source = write_config(tmp_path).build()
    algorithm = write_config(tmp_path).algorithms["FedAvg"]
    first = run_goal_pilots(source, algorithm, budget=11, store=tmp_path / "runs.sqlite")
    with RunStore(tmp_path / "runs.sqlite") as store:
        before = len(store)
        again = run_goal_pilots(source, algorithm, budget=11, store=store)
        assert len(store) == before
    assert_allclose(again.values, first.values)
    assert_allclose(again.deviations, first.deviations)


def test_the_command_writes_the_table_that_solve_takes(tmp_path) -> None:
    write_config(tmp_path)
    config, saved, kept = (tmp_path / name for name in ("config.toml", "m.csv", "runs.sqlite"))
    done = run("pilots", config, "--budget", 11, "--save", saved, "--results", kept)
    assert done.code == 0, done.stderr
    assert f"'fedaccord solve {saved}'" in done.stderr
    with open(saved) as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == MEASURED
    assert len(rows) == 11 * 3 * 2
    assert run("solve", saved).code == 0


def test_a_single_share_is_planned_like_an_accuracy(tmp_path) -> None:
    goal = 'measure = "auc"\nrequirement = 0.7'
    config = write_config(tmp_path, goal)
    source = config.build()
    table = run_pilots(source, config.algorithms["FedAvg"], budget=11)
    assert table.goals.tolist() == [0.7] * 3
    # An AUC on 60 points scatters as a share on fewer or more points does, of the same order.
    assert (table.validation > 20).all() and (table.validation < 120).all()
    with pytest.raises(UnreachableError, match='wants 1 of "AUC"'):
        run_pilots(
            write_config(tmp_path, goal.replace("0.7", "1")).build(), config.algorithms["FedAvg"]
        )


@pytest.mark.parametrize(
    ("goals", "sentence"),
    [
        ('measure = "aucc"', "did you mean AUC"),
        ("requirement = 0.7\n" + GOALS, "both requirement and goals"),
        ('measure = "auc"\n' + GOALS, "both measure and goals"),
        ('[[agents.goals]]\nmeasure = "auc"', "has no target"),
        ("[[agents.goals]]\ntarget = 0.5", "has no measure"),
        ('[[agents.goals]]\nmeasure = "auc"\ntarget = 1.5', "at most 1"),
        ('[[agents.goals]]\nmeasure = "auc"\ntarget = [0.5, 0.6]', "one target each"),
        (GOALS.replace("age >=", "agee >="), "'agee'"),
        (GOALS.replace("60", "89"), "no negative sample|no point"),
        (GOALS + GOALS, "keep one of them|same measure"),
        (GOALS.replace("threshold", "treshold"), "treshold"),
    ],
)
def test_goals_that_contradict_themselves_are_refused(tmp_path, goals, sentence) -> None:
    with pytest.raises(InputError, match=sentence):
        write_config(tmp_path, goals).build()
    assert run("train", tmp_path / "config.toml").code == 2


NUMBERS = {
    "amounts": ("stay", "", '[[agents.goals]]\nmeasure = "mae"\ntarget = 0.9'),
    "times": ("months", 'event = "died"', 'measure = "c-index"\nrequirement = 0.6'),
}


def write_numbers(folder, kind, goals=None, event=None):
    """The table with lengths of stay, and times until death of which some are censored."""
    write_config(folder)
    random = np.random.default_rng(2)
    with open(folder / "table.csv") as file:
        head, *rows = list(csv.reader(file))
    with open(folder / "table.csv", "w", newline="") as file:
        table = csv.writer(file)
        table.writerow([*head[:-1], "stay", "months", "died"])
        for row in rows:
            slope = float(row[2]) - float(row[3])
            time = random.exponential(np.exp(-slope))
            stay = 5 + slope + 0.5 * random.normal()
            table.writerow([*row[:-1], f"{stay:.3f}", f"{min(time, 2) + 1e-3:.3f}", int(time < 2)])
    label, usual, wanted = NUMBERS[kind]
    hidden = {"stay", "months", "died"} - {label}
    if kind == "times":
        hidden -= {"died"}
    text = (folder / "config.toml").read_text()
    text = text.replace('label = "ill"', f'label = "{label}"\n{usual if event is None else event}')
    text = text.replace('site = "hospital"', f'site = "hospital"\nwithout = {sorted(hidden)}')
    text = text.replace(GOALS, wanted if goals is None else goals).replace(
        "rounds = 20", "rounds = 300"
    )
    (folder / "config.toml").write_text(text.replace('"logistic"', '"linear"'))
    return Config.load(folder / "config.toml")


@pytest.mark.parametrize("kind", NUMBERS)
def test_amounts_and_times_are_learned_from_a_table(tmp_path, kind) -> None:
    config = write_numbers(tmp_path, kind)
    source = config.build()
    assert source.data.kind == kind
    history = train(source.deal(0), config.algorithms["FedAvg"], seed=1)
    assert history.satisfied.all(), history.goals.values
    if kind == "times":
        events = [client.validation_labels[:, 1].mean() for client in source.deal(3).clients]
        shares = [source.data.labels[source.data.sites == n, 1].mean() for n in range(3)]
        assert_allclose(events, shares, atol=0.02)


@pytest.mark.parametrize(
    ("kind", "changes", "sentence"),
    [
        ("times", {"event": ""}, r"\[data\] event"),
        ("amounts", {"event": 'event = "died"'}, r"\[data\] event"),
        ("times", {"event": 'event = "age"'}, "give a time above 0, and 1 if"),
        ("amounts", {"event": "label_above = 5"}, "without label_above"),
        ("amounts", {"goals": NUMBERS["amounts"][2] + GOALS}, "cannot be both"),
    ],
)
def test_numbers_that_cannot_be_learned_are_refused(tmp_path, kind, changes, sentence) -> None:
    with pytest.raises(InputError, match=sentence):
        write_numbers(tmp_path, kind, **changes).build()
