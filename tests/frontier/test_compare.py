"""Algorithms compared: plans, audits of both protocols, goals reached and how sure that is."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from federation.formulas import Formula, Paper, circular
from federation.made_up import AnyEngine, MadeUp, made_up
from federation.small import small_federation
from frontiers import contender, frontier, shared_fate, three
from hypothesis import given
from hypothesis import strategies as st
from training_results import lenient, strict

from fedaccord.allocation import Allocation
from fedaccord.errors import InputError, UnreachableError
from fedaccord.federation.algorithms.base import FedAvg
from fedaccord.federation.algorithms.mw_fed import MwFed
from fedaccord.federation.algorithms.pledged import Pledged
from fedaccord.federation.config.load import Config
from fedaccord.federation.config.sections import FrontierOptions
from fedaccord.federation.defection.audit import defection_curves
from fedaccord.federation.partition import HALVES, Halved
from fedaccord.federation.pilots import run_pilots
from fedaccord.federation.runs.store import RunStore
from fedaccord.federation.runs.trials import PLANNING
from fedaccord.frontier.compare import _Planner, compare_algorithms
from fedaccord.frontier.result import Frontier, Goals, Reached
from fedaccord.report.frontier import show_frontier

# What MadeUp's clients have is 10, 20 and 40 points; half of what they bring is used.
PLAN = Allocation([10, 20, 0], ["north", "south", "west"])
BOTH = {"FedAvg": FedAvg(), "PLEDGED": Pledged()}


class Dealt(MadeUp):
    """The same, with other points in every trial."""

    def deal(self, trial):
        clients = [
            SimpleNamespace(
                validation_labels=[0] * 9, counted_points=9, has_one_share=True, goals=()
            )
        ] * 3
        return SimpleNamespace(clients=clients, fingerprint=f"deal {trial}")


def pledges_bind(run, client):
    """Under FedAvg all are satisfied; of pledges nobody is unless north and south keep theirs."""
    kept = run.algorithm.kind == "fedavg" or run.contributions[:2] == (10, 20)
    return [0.1, 0.9 if kept else 0.2]


def values(found):
    """What a comparison says, timings aside, as JSON has it."""
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert plain.pop("seconds") >= 0
    assert plain.pop("run_seconds") >= 0
    return plain


@pytest.fixture
def compared(monkeypatch):
    made_up(monkeypatch, pledges_bind)
    return compare_algorithms(MadeUp(), BOTH, plans={"PLEDGED": PLAN}, trials=6, levels=(0.5, 0.25))


# What is counted.


def test_who_cuts_is_counted_at_random_and_among_contributors(compared):
    pledged = compared.contender("PLEDGED")
    assert pledged.contributions == (10, 20, 0)
    assert pledged.all_satisfied.p == 1
    for protocol in ("P1", "P2"):
        # Nothing is asked of west, so that it cannot cut: one random agent in three.
        assert pledged.defector(protocol, 0.25).p == pytest.approx(1 / 3)
        assert pledged.defector(protocol, 0.25, contributors=True).p == 0
    assert compared.contender("FedAvg").defector("P2", 0.25).p == 1


def test_what_a_cut_does_to_the_others_is_shown(compared):
    """Not diluted by the agent that has nothing to cut."""
    assert compared.contender("PLEDGED").others("P2", 0.25).p == 0
    assert compared.contender("PLEDGED").others("P2", 0.25).trials == 6
    assert compared.contender("FedAvg").others("P2", 0.25).p == 1


def test_the_plan_of_its_own_is_what_an_algorithm_uses_and_is_for_the_second_protocol_only(
    compared,
):
    average = compared.contender("FedAvg")
    assert average.p1.contributions == (10, 20, 40)
    assert average.p2.contributions == (5, 10, 20)


def test_samples_are_shares_of_the_baselines(compared):
    pledged, average = compared.contender("PLEDGED"), compared.contender("FedAvg")
    assert (average.p2.total_samples, pledged.p2.total_samples) == (2 + 5 + 10, 5 + 10)
    assert compared.share(pledged) == (15 / 17, (15 / 17, 15 / 17))
    assert compared.share(average) == (1, (1, 1))


def test_the_curves_are_those_of_two_audits(monkeypatch, compared):
    made_up(monkeypatch, pledges_bind, ahead=3, seed=4)
    for protocol in ("P1", "P2"):
        audit = defection_curves(
            MadeUp(),
            BOTH,
            plan={"PLEDGED": PLAN},
            protocol=protocol,
            levels=(0.5, 0.25),
            trials=6,
        )
        for name in BOTH:
            own = compared.contender(name).curve(protocol)
            assert own.to_dict() == audit.curve(name).to_dict()


def test_a_plan_of_all_points_makes_the_two_protocols_one(monkeypatch):
    engine = made_up(monkeypatch, pledges_bind)
    found = compare_algorithms(
        MadeUp(), FedAvg(), plans={"FedAvg": "all"}, trials=4, levels=(0.5, 0.25)
    )
    assert found.contenders[0].p1.to_dict() == found.contenders[0].p2.to_dict()
    # Everybody in full, and each of three agents at two levels; nothing twice.
    assert len(engine.made) == 4 * (1 + 3 * 2)


def test_a_plan_may_be_given_as_its_numbers(monkeypatch, compared):
    for numbers in ([10, 20, 0], (10.0, 20.0, 0.0), np.array([10, 20, 0])):
        made_up(monkeypatch, pledges_bind)
        plans = {"PLEDGED": numbers}
        found = compare_algorithms(MadeUp(), BOTH, plans=plans, trials=6, levels=(0.5, 0.25))
        assert values(found) == values(compared)
    with pytest.raises(InputError):
        compare_algorithms(MadeUp(), BOTH, plans={"PLEDGED": [10, 20]}, trials=6)


def test_plans_and_scores_share_no_trial(monkeypatch):
    engine = made_up(monkeypatch, pledges_bind)
    compare_algorithms(MadeUp(), BOTH, plans={"PLEDGED": PLAN}, trials=5, levels=(0.25,))
    planning = [run.trial for run in engine.made if run.trial >= 5]
    assert len(planning) == 3 and min(planning) >= PLANNING
    assert {run.trial for run in engine.made} - set(planning) == set(range(5))


def test_an_algorithm_goes_by_what_was_promised_whoever_cuts(monkeypatch):
    engine = made_up(monkeypatch, pledges_bind)
    compare_algorithms(MadeUp(), Pledged(), plans={"PLEDGED": PLAN}, trials=2, levels=(0.25,))
    assert {run.algorithm.commitment for run in engine.made} == {(10, 20, 0)}


def test_too_few_rounds_for_a_pledge_are_told_before_any_pilot(monkeypatch):
    engine = made_up(monkeypatch, pledges_bind)
    algorithms = {"FedAvg": FedAvg(), "first": FedAvg(), "short": Pledged(rounds=2, batch_size=1)}
    plans = {"first": "measured", "short": "sought"}
    with pytest.raises(InputError, match=r"^short: .*set rounds to"):
        compare_algorithms(Dealt(), algorithms, plans=plans, trials=2, levels=(0.25,))
    assert not engine.made


def test_where_points_are_given_plans_are_judged_on_others_than_chose_them():
    federation = small_federation(requirement=0.4)
    algorithm = FedAvg(rounds=8, batch_size=8, learning_rate=0.05)
    options = {"trials": 2, "levels": (0.25,), "seeking": 24, "pilots": 11, "seed": 3}
    first, second = (Halved(federation, half, seed=3).fingerprint for half in HALVES)
    for plan in ("sought", "measured"):
        with RunStore() as store:
            both = {"FedAvg": algorithm, "planned": algorithm}
            found = compare_algorithms(
                federation, both, plans={"planned": plan}, store=store, **options
            )
            audited = store.kept(second, trials=range(2))
            assert audited and store.kept(first, trials=range(PLANNING, 10_000_000))
            assert not store.kept(first, trials=range(2))
            assert not store.kept(federation.fingerprint, trials=range(10_000_000))
        assert found.source == second


def test_a_plan_that_asks_nobody_for_anything_is_not_compared():
    paper = Paper([200] * 3, [0.3] * 3, 400)
    engine = Formula(paper, lambda run: [0.9, 0.91, 0.92])
    found = compare_algorithms(
        *(paper, {"FedAvg": FedAvg(), "planned": FedAvg()}),
        plans={"planned": "measured"},
        trials=2,
        levels=(0.25,),
        engine=engine,
    )
    assert [one.name for one in found.contenders] == ["FedAvg"]
    assert found.unplanned["planned"].startswith("No agent needs to give anything")


def test_how_seeking_ended_is_told_as_it_was():
    paper = Paper([50, 50], [0.5, 0.5])
    found = compare_algorithms(
        *(paper, {"FedAvg": FedAvg(), "EQ": FedAvg()}),
        plans={"EQ": "sought"},
        trials=2,
        levels=(0.25,),
        seeking=5_000,
        engine=Formula(paper, circular),
    )
    assert "best responses went in a circle" in found.contender("EQ").story


# Runs are kept.


class Interrupting(AnyEngine):
    """Lets some runs through, and then is interrupted."""

    def __init__(self, engine, after):
        self.engine, self.after = engine, after

    def finished(self, runs):
        for one in self.engine.finished(runs):
            if not self.after:
                raise KeyboardInterrupt
            self.after -= 1
            yield one


@pytest.mark.parametrize("after", [1, 10, 60])
def test_a_comparison_goes_on_where_it_was_interrupted(monkeypatch, tmp_path, after):
    options = {"plans": {"PLEDGED": PLAN}, "trials": 5, "levels": (0.5, 0.25)}
    whole = made_up(monkeypatch, pledges_bind)
    expected = values(compare_algorithms(MadeUp(), BOTH, **options))
    store = tmp_path / "runs.sqlite"
    first = made_up(monkeypatch, pledges_bind)
    with pytest.raises(KeyboardInterrupt):
        compare_algorithms(
            MadeUp(), BOTH, store=store, engine=Interrupting(first, after), **options
        )
    second = made_up(monkeypatch, pledges_bind)
    assert values(compare_algorithms(MadeUp(), BOTH, store=store, **options)) == expected
    assert len(second.made) == len(whole.made) - after
    third = made_up(monkeypatch, pledges_bind)
    assert values(compare_algorithms(MadeUp(), BOTH, store=store, **options)) == expected
    assert third.made == []


def test_how_far_things_are_is_told_stage_by_stage(monkeypatch):
    made_up(monkeypatch, pledges_bind)
    told = []
    compare_algorithms(
        MadeUp(), BOTH, plans={"PLEDGED": PLAN}, trials=3, levels=(0.25,), progress=told.append
    )
    stages = list(dict.fromkeys(stage.what for stage in told))
    assert stages == ["P1 of 2 algorithms", "P2 of 2 algorithms"]
    last = [stage for stage in told if stage.what == stages[0]][-1]
    # Of each algorithm everybody in full; then each agent's quarter, of which west has none to cut.
    assert last.done == last.total == 3 * (1 + 3) + 3 * (1 + 2)


# Plans that take training.


@pytest.fixture
def planned(monkeypatch):
    """Stand in for pilots and for EQ-FED, and note what they are asked."""
    asked = {}

    def measured(source, algorithm, **options):
        asked["measured"] = (algorithm, options)
        options["progress"](39, 39)
        return SimpleNamespace(table=SimpleNamespace(contributions=np.zeros((39, 3))))

    def make(measurement, **options):
        asked["plan"] = options
        return SimpleNamespace(
            contributions=PLAN.contributions, allocation=PLAN, verdict="The plan asks 30 samples."
        )

    def sought(source, algorithm, **options):
        asked["sought"] = (algorithm, options)
        options["progress"](SimpleNamespace(phase="grow", done=3, budget=9))
        return SimpleNamespace(
            algorithm=Pledged(passes=4).committed((10, 20, 0)),
            plan=PLAN,
            ending="settled",
            total=30,
            contributors=("north", "south"),
            runs=55,
        )

    monkeypatch.setattr("fedaccord.frontier.from_federation.from_federation", measured)
    monkeypatch.setattr("fedaccord.planning.plan.make_plan", make)
    monkeypatch.setattr("fedaccord.federation.eqfed.seek.seek_equilibrium", sought)
    return asked


def test_measured_and_sought_plans_are_made_for_the_algorithm_itself(monkeypatch, planned):
    engine = made_up(monkeypatch, pledges_bind)
    told = []
    found = compare_algorithms(
        Dealt(),
        {"FedAvg": FedAvg(), "P": Pledged(passes=6), "EQ": Pledged(passes=9)},
        plans={"P": "measured", "EQ": "sought"},
        trials=2,
        levels=(0.25,),
        pilots=12,
        seeking=34,
        probability=0.9,
        prefer="firm",
        seed=5,
        progress=told.append,
    )
    algorithm, options = planned["measured"]
    assert algorithm == Pledged(passes=6)
    assert (options["budget"], options["seed"]) == (12, 5)
    assert planned["plan"] == {
        "probability": 0.9,
        # Nobody is scored on further samples: goals are judged by one measurement.
        "judged": "measured",
        "prefer": "firm",
        "levels": [0.25],
        "seed": 5,
    }
    # Pilots are aimed at the plan that will be trained.
    assert options["aim"](SimpleNamespace()).tolist() == PLAN.contributions.tolist()
    algorithm, options = planned["sought"]
    assert algorithm == Pledged(passes=9)
    assert (options["budget"], options["seed"]) == (34, 5)
    # What EQ-FED found is trained with as it found it.
    assert found.contender("EQ").p2.settings["passes"] == 4
    assert found.contender("P").p2.settings["passes"] == 6
    assert found.contender("EQ").contributions == (10, 20, 0)
    assert [c.planning_runs for c in found.contenders] == [0, 39, 55]
    story = found.contender("EQ").story
    assert story.startswith("EQ-FED found 30 samples of 2 agents. How it ended: every contribution")
    assert [s.what for s in told][:2] == ["pilots of P", "EQ-FED for EQ: grow"]
    assert all(run.base_seed == 5 for run in engine.made)


@pytest.mark.parametrize(("scored", "judged"), [(None, "measured"), (4000, "true")])
def test_a_plan_is_for_what_the_audits_judge(planned, scored, judged):
    asked = SimpleNamespace(levels=(1.0, 0.25), scored_on=scored, seed=5)
    design, options = SimpleNamespace(options=asked), FrontierOptions()
    _Planner(None, None, design, {}, print, None, options)._plan_for(None)
    assert planned["plan"]["judged"] == judged


def test_going_on_plans_by_the_same_pilots_whatever_audits_have_left(
    monkeypatch, planned, tmp_path
):
    def measured(source, algorithm, *, progress, **options):
        return SimpleNamespace(table=run_pilots(source, algorithm, **options))

    monkeypatch.setattr("fedaccord.frontier.from_federation.from_federation", measured)

    def compare():
        made_up(monkeypatch, pledges_bind)
        return compare_algorithms(
            Dealt(),
            # The same settings: what is trained for the one tells of the other.
            {"FedAvg": FedAvg(), "planned": FedAvg()},
            plans={"planned": "measured"},
            trials=4,
            levels=(0.25,),
            pilots=7,
            store=tmp_path / "runs.sqlite",
        )

    first = compare()
    assert first.contender("planned").planning_runs == 7
    assert values(compare()) == values(first)


def test_who_has_no_plan_is_named_with_the_reason_and_the_others_are_compared(monkeypatch, planned):
    made_up(monkeypatch, pledges_bind)

    def out_of_reach(source, algorithm, **options):
        raise UnreachableError("south wants 0.99; the nearest that can be had is 0.8")

    monkeypatch.setattr("fedaccord.frontier.from_federation.from_federation", out_of_reach)
    found = compare_algorithms(
        Dealt(), BOTH, plans={"PLEDGED": "measured"}, trials=2, levels=(0.25,)
    )
    assert [one.name for one in found.contenders] == ["FedAvg"]
    assert found.unplanned == {"PLEDGED": "south wants 0.99; the nearest that can be had is 0.8"}


def test_a_game_without_a_plan_is_no_contender(monkeypatch, planned):
    made_up(monkeypatch, pledges_bind)
    none = SimpleNamespace(contributions=None, verdict="There is no plan: all is lost.")
    monkeypatch.setattr("fedaccord.planning.plan.make_plan", lambda measurement, **options: none)
    found = compare_algorithms(
        Dealt(), BOTH, plans={"PLEDGED": "measured"}, trials=2, levels=(0.25,)
    )
    assert found.unplanned == {"PLEDGED": "There is no plan: all is lost."}
    with pytest.raises(InputError, match="no plan for PLEDGED, the baseline: There is no plan"):
        compare_algorithms(
            Dealt(),
            BOTH,
            plans={"PLEDGED": "measured"},
            trials=2,
            levels=(0.25,),
            baseline="PLEDGED",
        )


# What is refused, before anything is trained.


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"levels": (1, 0.5)},
            r"levels must include 0\.25, the level of the criterion .*; got 1, 0\.5",
        ),
        ({"plans": {"FedAvg": "none.csv"}}, "plan of FedAvg must be one of own, all, measured"),
        (
            {"plans": {"MW-FED": "own"}},
            "a plan for MW-FED, which is not compared; compared: FedAvg",
        ),
        ({"baseline": "Solo"}, "baseline must be one of FedAvg, PLEDGED; got 'Solo'"),
        (
            {"plans": {"PLEDGED": Allocation([10, 21, 0])}},
            "asks south for 21 samples, but south has 20",
        ),
        ({"plans": {"PLEDGED": Allocation([0, 0, 0])}}, "asks no agent for samples"),
        ({"trials": 0}, "trials must be a whole number"),
        ({"defectors": "all"}, "defectors must be one of each, random"),
    ],
)
def test_a_fault_is_told_before_anything_is_trained(monkeypatch, options, words):
    engine = made_up(monkeypatch, pledges_bind)
    with pytest.raises(InputError, match=words):
        compare_algorithms(MadeUp(), BOTH, **{"levels": (0.25,), **options})
    assert engine.made == []


def test_the_baseline_is_the_first_fedavg_or_else_the_first(monkeypatch):
    made_up(monkeypatch, pledges_bind)
    options = {"trials": 1, "levels": (0.25,)}
    some = {"PLEDGED": Pledged(), "mean": FedAvg(), "FedAvg": FedAvg(rounds=9)}
    assert compare_algorithms(MadeUp(), some, **options).baseline == "mean"
    some = {"PLEDGED": Pledged(), "MW-FED": MwFed()}
    assert compare_algorithms(MadeUp(), some, **options).baseline == "PLEDGED"
    assert compare_algorithms(MadeUp(), some, baseline="MW-FED", **options).baseline == "MW-FED"


# Which goals are reached.

SHARES = st.floats(0, 1)


@given(st.sampled_from(["satisfied", "cut", "samples"]), SHARES, st.tuples(SHARES, SHARES, SHARES))
def test_a_goal_is_sure_if_no_value_within_the_interval_would_change_it(goal, bound, numbers):
    low, value, high = sorted(numbers)
    found = Reached(goal, value, low, high, bound)
    # Not at the very bound, where rounding is forgiven.
    if min(abs(n - bound) for n in numbers) < 1e-6:
        return
    sign = 1 if goal == "satisfied" else -1
    assert found.reached == (sign * (value - bound) > 0)
    between = np.linspace(low, high, 101)
    same = {Reached(goal, float(n), low, high, bound).reached for n in between} == {found.reached}
    assert found.sure == same


def test_a_goal_of_which_nothing_is_known_is_neither_reached_nor_sure():
    assert not Reached("cut", None, None, None, 0.1).reached
    assert not Reached("cut", None, None, None, 0.1).sure
    one_trial = Reached("samples", 0.4, None, None, 0.5)
    assert one_trial.reached and not one_trial.sure


def test_a_share_at_its_bound_reaches_it():
    assert Reached("samples", 0.1 + 0.2, 0.3, 0.3, 0.3).reached
    assert Reached("satisfied", 0.3, 0.3, 0.3, 0.1 + 0.2).reached


def test_each_contender_is_told_which_goals_it_reaches():
    found = three()
    reached = {c.name: [r.reached for r in found.reached(c)] for c in found.contenders}
    assert reached == {
        "FedAvg": [True, False, True, False],
        "MW-FED": [True, True, True, False],
        # 80 of 180 points; but all the others pay for a defector.
        "PLEDGED": [True, True, False, True],
    }
    # 20 of 20 runs leave room for 84 %; a contributor was always satisfied, in 60 runs.
    sure = [r.sure for r in found.reached(found.contender("FedAvg"))]
    assert sure[:2] == [False, True] and sure[3]


def test_every_further_kind_of_defector_is_a_criterion():
    harmless = contender("EARNED", strict, asked=(40, 40, 0))
    assert [r.goal for r in frontier(harmless).reached(harmless)] == [
        "satisfied",
        "cut",
        "others",
        "samples",
    ]
    lucky = contender("EARNED", lenient).p2
    at_quarter = lucky.at(0.25)
    keeps = replace(at_quarter, level=0.25, kept=at_quarter.at_end, outside=None)
    p2 = replace(
        harmless.p2,
        levels=tuple(
            replace(one, kept=keeps.kept, outside=one.at_end) if one.level == 0.25 else one
            for one in harmless.p2.levels
        ),
    )
    audited = replace(harmless, p2=p2, further={"2 together": harmless.p2, "noise": lucky})
    found = frontier(audited)
    reached = {r.goal: r.reached for r in found.reached(audited)}
    assert reached == {
        "satisfied": True,
        "cut": True,
        "others": True,
        # With all its data it succeeds, and with noise in place of its samples too.
        "kept": False,
        "2 together": True,
        "noise": False,
        "samples": False,
    }
    assert found.verdict(audited).startswith("EARNED meets 4 of the 7 criteria.")
    assert "each further kind of defector included" in found.criteria[1]


def test_a_defector_counts_with_the_best_that_it_can_do():
    one = contender("EARNED", strict)
    lucky = contender("EARNED", lenient).p2.at(0.25).at_end
    levels = tuple(
        replace(point, outside=lucky) if point.level == 0.25 else point for point in one.p2.levels
    )
    better = replace(one, p2=replace(one.p2, levels=levels))
    assert frontier(one).reached(one)[1].value == 0
    assert frontier(better).reached(better)[1].value == 1


def test_goals_other_than_the_usual_can_be_set():
    found = three()
    harder = frontier(*found.contenders, goals=Goals(samples=0.4))
    assert not harder.reached(found.contender("PLEDGED"))[-1].reached
    lenient_goals = frontier(*found.contenders, goals=Goals(others=0.0))
    assert lenient_goals.reached(found.contender("PLEDGED"))[2].reached
    at_half = frontier(*found.contenders, goals=Goals(level=0.5))
    assert "A contributor that gives 50 % reaches its goal in" in at_half.verdict(
        found.contenders[0]
    )
    assert "A contributor that gives 50 % of what the plan asks" in at_half.criteria[1]


def test_the_criteria_are_settings_of_a_config(monkeypatch):
    made_up(monkeypatch, pledges_bind)
    keys = "all_reach = 0.8\ndefector_reaches = 0.2\ndefector_gives = 0.5\nsamples_used = 1"
    keys += "\nothers_reach = 0.7"
    options = Config.parse(f"[frontier]\n{keys}").frontier
    found = compare_algorithms(MadeUp(), FedAvg(), options=replace(options, trials=1, seed=0))
    assert compare_algorithms(MadeUp(), FedAvg(), trials=1).goals == Goals()
    assert found.goals == Goals(satisfied=0.8, cut=0.2, level=0.5, samples=1, others=0.7)


# What is said.


def test_a_verdict_names_each_goal_with_its_interval():
    found = three()
    assert found.verdict(found.contender("FedAvg")) == (
        "FedAvg meets 2 of the 4 criteria. All agents reach their goals in 100 % of runs "
        "(met, not certain). A contributor that gives 25 % reaches its goal in 100 % (missed). All "
        "the others then reach theirs in 100 % (met, not certain). It uses 100 % of the samples of "
        "FedAvg (missed)."
    )
    assert found.verdict(found.contender("PLEDGED")).startswith("PLEDGED meets 3 of the 4")
    assert found.criteria == (
        "All agents reach their goals in at least 95 % of runs.",
        "A contributor that gives 25 % of what the plan asks reaches its goal in at most 10 % of "
        "runs.",
        "All the others then reach theirs in at least 90 % of runs.",
        "Training uses at most 50 % of the samples of FedAvg.",
    )


def test_the_conclusion_names_who_reaches_all_goals_and_whether_that_is_sure():
    def compared(trials):
        few = contender("few", strict, asked=(40, 40, 0), trials=trials)
        return frontier(contender("FedAvg", lenient, trials=trials), few, trials=trials)

    assert compared(20).conclusion == (
        "few meets all 4 criteria, but the 95 % intervals leave a doubt."
    )
    assert compared(80).conclusion == "few meets all 4 criteria. The 95 % intervals confirm it."
    assert three(trials=80).conclusion == (
        "No algorithm meets all 4 criteria. MW-FED and PLEDGED meet 3 of them."
    )
    never = contender("FedAvg", lambda level, defector, client, trial: defector != 0)
    shared = contender("none", lambda level, defector, client, trial: level < 1 and client == 0)
    assert frontier(never, never).reached(never)[0].reached is False
    assert frontier(shared).conclusion == "No algorithm meets any of the 4 criteria."


def test_where_nobody_contributes_there_is_nobody_to_cut():
    idle = contender("none", lenient, asked=(0, 0, 0))
    found = frontier(contender("FedAvg", lenient), idle)
    assert "asks nothing of any agent, so no agent can defect" in found.verdict(idle)
    reached = [r.reached for r in found.reached(idle)]
    assert (reached[:2], reached[-1]) == ([True, False], True)


def test_it_is_stated_that_plans_were_made_on_other_trials():
    assert three().provenance == (
        "Plans were made on trials of their own. All shares come from other trials: trials 0 to 19 "
        "of seed 3."
    )
    filed = frontier(contender("FedAvg", lenient), contender("X", strict, plan="/some/plan.csv"))
    assert "(the plan of X was given)" in filed.provenance


def test_a_comparison_comes_back_from_its_json(compared):
    for found in (three(), compared, frontier(contender("FedAvg", shared_fate, trials=1))):
        written = json.dumps(found.to_dict(), allow_nan=False)
        again = Frontier.from_dict(json.loads(written))
        assert json.dumps(again.to_dict(), allow_nan=False) == written
        assert repr(again) == repr(found)
    with pytest.raises(InputError, match="the algorithms are FedAvg, PLEDGED"):
        compared.contender("MW-FED")


# Defectors that do more than give less.


def test_a_comparison_follows_defectors_that_do_more_than_give_less():
    """Each further share is that of an audit of its own, made a second way."""
    federation = small_federation((24, 20, 30))
    settings = {"rounds": 4, "batch_size": 8, "learning_rate": 0.02, "evaluate_every": 2}
    algorithms = {"FedAvg": FedAvg(**settings), "PLEDGED": Pledged(passes=1.0, **settings)}
    plan = Allocation([24, 20, 10], federation.names)
    found = compare_algorithms(
        federation,
        algorithms,
        plans=dict.fromkeys(algorithms, plan),
        levels=(1, 0.25),
        trials=2,
        kept_data=True,
        group=2,
        fillers=("copies",),
    )
    asked = {"levels": (1, 0.25), "trials": 2, "protocol": "P2", "plan": plan}
    for option, what in (({"group": 2}, "2 together"), ({"filler": "copies"}, "copies")):
        audit = defection_curves(federation, algorithms, **asked, **option)
        for name in algorithms:
            share = found.contender(name).further[what].at(0.25).at_end
            assert share == audit.curve(name).at(0.25).at_end
    kept = defection_curves(federation, algorithms, **asked, kept_data=True)
    for name in algorithms:
        assert found.contender(name).p2.at(0.25).kept == kept.curve(name).at(0.25).kept
    again = Frontier.from_dict(json.loads(json.dumps(found.to_dict())))
    assert again.contender("PLEDGED").further.keys() == {"2 together", "copies"}
    table = next(part for part in show_frontier(found) if "contributors that give" in str(part))
    assert len(table.rows) == 2 and len(table.rows[0]) == 8


def test_a_plain_comparison_says_nothing_of_tactics(compared):
    assert "further" not in compared.to_dict()["contenders"]["FedAvg"]
    assert not any("contributors that give" in str(part) for part in show_frontier(compared))
