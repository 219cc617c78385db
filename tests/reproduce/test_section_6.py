"""Rows of the experiment: what the true evidence gives, and that planted faults change it."""

import dataclasses
import math
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from federation.made_up import AnyEngine

from fedaccord.federation.algorithms import base, mw_fed
from fedaccord.federation.algorithms.base import FedAvg, Solo
from fedaccord.federation.algorithms.mw_fed import MwFed
from fedaccord.federation.config import build as building
from fedaccord.federation.config.load import Config
from fedaccord.federation.data import difficulty as difficulty_module
from fedaccord.federation.data import pretraining, search
from fedaccord.federation.data.difficulty import Trials
from fedaccord.federation.data.pretraining import PretrainedWeights
from fedaccord.federation.data.search import Draw
from fedaccord.federation.defection.solo import SoloCurves
from fedaccord.federation.history import History
from fedaccord.federation.runs import execute
from fedaccord.federation.runs.execute import Finished
from fedaccord.reproduce import estimates, experiment
from fedaccord.reproduce import section_6_algorithms as algorithms
from fedaccord.reproduce import section_6_defection as defection
from fedaccord.reproduce import section_6_difficulty as difficulty_rows
from fedaccord.reproduce import section_6_preparation as preparation
from fedaccord.reproduce import section_6_solo as solo_rows
from fedaccord.reproduce.claims import EXPERIMENT, Setting, Unavailable, Verdict
from fedaccord.reproduce.estimates import Estimate, estimate_difference, estimate_mean, resample
from fedaccord.reproduce.experiment import Data, Experiment, describe_data
from fedaccord.reproduce.run import all_claims, blum2021, check_claim, expected_numbers

EXPECTED = expected_numbers()
NAMES = ("A", "B", "C", "D")
MADE_UP = Data("made-up data", " They are made up.")


def row(id: str, folder: Path, *, full: bool = False, **expected):
    """Check a claim as the command does."""
    setting = Setting(full, {**EXPECTED[id], **expected}, folder)
    return check_claim(all_claims()[id], setting).finding


# What all rows share.


def test_every_row_has_numbers_of_the_paper_a_place_and_a_cost() -> None:
    claims = [claim for claim in all_claims().values() if claim.part == EXPERIMENT]
    assert len(claims) == 15
    for claim in claims:
        assert EXPECTED[claim.id]["place"]
        assert claim.place.startswith(("Section 6", "Appendix I"))
        # The figure of defection has sixty trials: 720 runs.
        assert all(0 < minutes < 180 for minutes in claim.minutes)
    assert sum(claim.minutes[0] for claim in claims) <= 6


@pytest.mark.parametrize("id", ["solo-curves", "defection", "pre-training", "difficulty"])
def test_without_images_the_full_scale_says_where_to_get_them(
    id: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FEDACCORD_DATA", raising=False)
    found = row(id, tmp_path, full=True)
    assert found.verdict is Verdict.NOT_RUN
    assert "nist.gov" in found.measured and "FEDACCORD_DATA" in found.measured


def test_readers_are_told_whether_the_data_are_the_papers() -> None:
    digits, balanced, others = (
        describe_data(source, points, 131_600)
        for source, points in (("digits", 1797), ("emnist", 131_600), ("emnist", 112_373))
    )
    assert str(digits) == "scikit-learn's digits (not the paper's data)"
    assert "not refuted by these" in digits.remark
    assert balanced == Data("EMNIST's balanced split", "")
    assert "not the balanced split itself" in str(others) and others.remark


def test_the_papers_split_is_known_by_its_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = SimpleNamespace(data=range(47 * 2800))
    monkeypatch.setattr(building, "Building", lambda config, cache: made)
    found = experiment.set_up(Setting(True, {}, tmp_path), "defection.toml")
    assert found.data == Data("EMNIST's balanced split", "")


def remarked(found) -> bool:
    """Whether a correction says, once, that the data are not the paper's; no other finding may."""
    corrected = found.verdict is Verdict.CORRECTED
    assert bool(found.correction) is corrected
    return found.correction.count(MADE_UP.remark) == corrected


def test_quick_rows_have_a_seed_of_their_own_and_full_ones_that_of_their_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the quick rows would count the trials of the digits audit again."""
    monkeypatch.setattr(experiment, "_prepare", lambda setting, config: config)
    quick, full = (
        experiment.set_up(Setting(full, {}, tmp_path), "defection.toml") for full in (False, True)
    )
    assert (quick.audit.seed, quick.audit.trials) == (2021, 36)
    assert full.audit == Config.load(blum2021() / "defection.toml").audit
    assert quick.audit.seed not in (full.audit.seed, Config.default().audit.seed)
    # The pools, and so the start weights and the scores, are those of the built-in federation.
    assert quick.pools == Config.default().pools


# Intervals.


@pytest.mark.parametrize("trials", [12, 36])
@pytest.mark.parametrize(("both", "first", "second"), [(0.6, 0.3, 0.0), (0.4, 0.2, 0.2), (0, 0, 0)])
def test_differences_of_paired_shares_hold_the_true_one_as_often_as_promised(
    trials: int, both: float, first: float, second: float
) -> None:
    random = np.random.default_rng(0)
    ways = np.array([0.0, 1.0, -1.0, 0.0])
    parts = [both, first, second, 1 - both - first - second]
    seen = [estimate_difference(random.choice(ways, trials, p=parts)) for _ in range(1000)]
    assert np.mean([one.holds(first - second) for one in seen]) >= 0.92
    if first == second:
        assert np.mean([one.low > 0 for one in seen]) <= 0.03


def test_the_interval_of_paired_shares_is_that_of_agresti_and_min() -> None:
    """Nine of 30 pairs differ: 9/32, and 10/32 - (9/32)^2 for the variance of one of 32."""
    found = estimate_difference([1.0] * 9 + [0.0] * 21)
    assert found.value == pytest.approx(0.3)
    assert (found.low, found.high) == pytest.approx((0.1066, 0.4559), abs=1e-4)


def test_trials_that_all_end_alike_do_not_make_a_difference_certain() -> None:
    assert estimate_difference([0.0] * 30).holds(0)
    assert estimate_difference([1.0] * 3).low < 0.5
    assert estimate_difference([1.0] * 30).low > 0.8


def test_means_and_resampled_numbers_hold_the_true_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimates, "RESAMPLES", 200)
    random = np.random.default_rng(1)
    means = [estimate_mean(random.normal(3, 1, size=8)) for _ in range(500)]
    assert 0.92 <= np.mean([one.holds(3) for one in means]) <= 0.98
    assert estimate_mean([2.0]).holds(100)
    drawn = [
        resample(random.normal(3, 1, size=30), lambda some: float(some.mean()), seed=n)
        for n in range(40)
    ]
    assert np.mean([one.holds(3) for one in drawn]) >= 0.85


def test_the_resampled_interval_of_a_mean_is_students() -> None:
    """Plain quantiles are too narrow by a seventh with a dozen trials."""
    random = np.random.default_rng(2)
    parts = []
    for n in range(10):
        values = random.normal(size=12)
        ours, students = (
            resample(values, lambda some: float(some.mean()), seed=n),
            estimate_mean(values),
        )
        parts.append((ours.high - ours.low) / (students.high - students.low))
    assert np.mean(parts) == pytest.approx(1, abs=0.05)


# Alone, judged on made-up curves: the goal is 0.8.

ROUNDS = np.arange(1, 41)


def made_curves(*, ends=(0.81, 0.82, 0.9, 0.9), halves=None, speed=(26, 22, 9, 8), trials=12):
    """Curves that reach 0.8 in the given rounds with all points, then grow to the given ends."""
    random = np.random.default_rng(0)

    def runs(heights, goal):
        up_to = np.minimum(goal, heights)
        rising = up_to * np.minimum(ROUNDS[:, None] / np.array(speed), 1)
        late = (ROUNDS[:, None] > np.array(speed)) * (np.array(heights) - up_to)
        return rising + late + np.abs(random.normal(0, 0.002, size=(trials, 1, 1)))

    halves = (0.69, 0.7, 0.76, 0.76) if halves is None else halves
    accuracy = {1.0: runs(ends, 0.8), 0.5: runs(halves, min(halves)), 0.25: runs(halves, 0.5) / 1.2}
    return SoloCurves(NAMES, np.full(4, 0.8), ROUNDS, accuracy, seconds=1.0)


HARD = np.array([True, True, False, False])


def judged_curves(curves):
    measured = solo_rows.judge_curves(curves, HARD, MADE_UP, EXPECTED["solo-curves"])
    return measured.find("solo-curves", EXPECTED["solo-curves"])


def test_curves_of_which_the_hard_ones_take_three_times_as_long_hold() -> None:
    found = judged_curves(made_curves())
    assert found.verdict is Verdict.HOLDS
    assert found.evidence["rounds_to_goal"] == {"A": 26, "B": 22, "C": 9, "D": 8}
    assert found.evidence["times_as_long"]["value"] == pytest.approx(24 / 8.5)
    assert "made-up data" in found.measured
    assert [line.name for line in found.charts[0].lines] == list(NAMES)


@pytest.mark.parametrize(
    ("curves", "verdict", "words"),
    [
        (made_curves(speed=(10, 10, 10, 10)), Verdict.FAILS, "does not show"),
        (made_curves(speed=(8, 9, 22, 26)), Verdict.FAILS, "does not show"),
        (made_curves(speed=(36, 36, 6, 6)), Verdict.CORRECTED, "6.0"),
        (made_curves(ends=(0.75, 0.82, 0.9, 0.9)), Verdict.CORRECTED, "A does not get there"),
    ],
)
def test_other_curves_do_not(curves, verdict: Verdict, words: str) -> None:
    found = judged_curves(curves)
    assert found.verdict is verdict and remarked(found)
    assert words in found.measured + found.correction


@pytest.mark.parametrize(
    ("seen", "verdict"),
    [
        (Estimate(2.9, 2.5, 3.4), Verdict.HOLDS),
        (Estimate(2.19, 1.5, 3.07), Verdict.CORRECTED),  # three is inside, and two nearer
        (Estimate(2.9, 1.9, 3.9), Verdict.CORRECTED),  # near, and so would two or four be
    ],
)
def test_wide_intervals_do_not_make_it_three_times(
    seen: Estimate, verdict: Verdict, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(solo_rows, "resample", lambda runs, statistic: seen)
    found = judged_curves(made_curves())
    assert found.verdict is verdict
    assert ("too few runs to tell that from 3" in found.correction) is (found.correction != "")


def test_half_of_the_data_that_is_too_little_on_average_holds() -> None:
    measured = solo_rows.judge_levels(made_curves(), MADE_UP, EXPECTED["solo-levels"])
    found = measured.find("solo-levels", EXPECTED["solo-levels"])
    assert found.verdict is Verdict.HOLDS
    assert found.evidence["highest"]["0.5"]["value"] == pytest.approx(0.7275, abs=0.01)
    assert "chosen on other partitions, so that half misses it" in found.measured


@pytest.mark.parametrize(
    "curves",
    [
        made_curves(halves=(0.81, 0.82, 0.9, 0.9)),  # runs that ignore the level
        made_curves(halves=(0.75, 0.78, 0.83, 0.84)),  # at the goal on average
        made_curves(ends=(0.7, 0.7, 0.75, 0.75)),  # all points are too little as well
    ],
)
def test_levels_that_do_not_matter_or_do_not_help_fail(curves) -> None:
    measured = solo_rows.judge_levels(curves, MADE_UP, EXPECTED["solo-levels"])
    assert measured.find("solo-levels", EXPECTED["solo-levels"]).verdict is Verdict.FAILS


@pytest.mark.parametrize("missing", [(0.5, 0.25), (1.0,)])
@pytest.mark.parametrize("judge", [solo_rows.judge_levels, solo_rows.judge_half])
def test_without_the_levels_that_are_compared_nothing_is_judged(judge, missing) -> None:
    curves = made_curves()
    left = {level: runs for level, runs in curves.accuracy.items() if level not in missing}
    with pytest.raises(Unavailable, match="with 50 % of them or fewer are needed"):
        judge(dataclasses.replace(curves, accuracy=left), MADE_UP, {"too_little": 0.5})


@pytest.mark.parametrize(
    ("halves", "verdict"),
    [
        ((0.69, 0.7, 0.76, 0.76), Verdict.HOLDS),
        ((0.69, 0.7, 0.76, 0.82), Verdict.CORRECTED),
        ((0.69, 0.7, 0.76, 0.7979), Verdict.CORRECTED),  # below, and not clearly
        ((0.81, 0.82, 0.9, 0.9), Verdict.FAILS),
    ],
)
def test_none_with_half_is_judged_agent_by_agent(halves, verdict: Verdict) -> None:
    measured = solo_rows.judge_half(made_curves(halves=halves), MADE_UP, EXPECTED["solo-half"])
    found = measured.find("solo-half", EXPECTED["solo-half"])
    assert found.verdict is verdict and remarked(found)
    assert "chosen on other partitions, so that half misses it" in found.measured
    assert ("D with 50 %" in found.correction) is (verdict is Verdict.CORRECTED)
    if halves[-1] == 0.7979:
        top = found.evidence["highest"]["D, 0.5"]
        assert top["value"] < 0.8 < top["high"]


@pytest.mark.parametrize(
    ("rounds", "verdict"),
    [
        ((9, 9, 3, 3), Verdict.HOLDS),
        ((6, 6, 6, 6), Verdict.FAILS),
        ((12, 12, 2, 2), Verdict.CORRECTED),
    ],
)
def test_the_row_of_solo_curves_is_about_what_agents_did_alone(
    rounds, verdict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rule(run):
        seen = [[0.9 if n >= first else 0.1 for first in rounds] for n in range(1, 13)]
        return seen, [[8] * 4] * 12

    solo = Solo(rounds=12, batch_size=8, evaluate_every=1)
    config = dataclasses.replace(Config.default(), algorithms={"Solo": solo})
    config = experiment.with_section(config, "audit", trials=3, levels=(1.0,))
    building = SimpleNamespace(source=lambda seed: MadeUpSource())
    monkeypatch.setitem(execute.ENGINES, "local", MadeUpEngine(rule))
    monkeypatch.setattr(
        solo_rows, "set_up", lambda setting, *_: Experiment(config, building, MADE_UP, setting)
    )
    found = row("solo-curves", tmp_path)
    assert found.verdict is verdict
    assert list(found.evidence["rounds_to_goal"].values()) == list(rounds)


@pytest.fixture
def few_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Digits with fewer trials and levels, which are trained all the same."""
    whole = solo_rows.train_digits_alone

    def fewer(config: Config) -> Config:
        return experiment.with_section(whole(config), "audit", trials=3, levels=(1.0, 0.5))

    monkeypatch.setattr(solo_rows, "train_digits_alone", fewer)


def test_digits_trained_alone_miss_the_goal_with_half_and_runs_are_kept(
    few_digits: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = row("solo-levels", tmp_path)
    assert found.verdict is Verdict.HOLDS
    assert "digits (not the paper's data)" in found.measured
    # All are in the file now: nothing is trained for a row that needs the same.
    monkeypatch.setitem(execute.ENGINES, "local", MadeUpEngine(None))
    assert row("solo-levels", tmp_path) == found
    assert row("solo-curves", tmp_path).evidence["trials"] == 3


def test_digits_trained_alone_without_the_cut_fail(
    few_digits: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fedaccord.federation.defection import solo

    monkeypatch.setattr(solo, "all_cut", lambda source, level: tuple(source.points.tolist()))
    assert row("solo-levels", tmp_path).verdict is Verdict.FAILS
    assert row("solo-half", tmp_path).verdict is Verdict.FAILS


# Audits in which a rule tells what comes of a run.


class MadeUpSource:
    names = NAMES
    points = np.array([40, 40, 40, 40])
    requirements = np.full(4, 0.5)
    fingerprint = "made up"


class MadeUpEngine(AnyEngine):
    """Makes no run: accuracies and samples by round and agent come from a rule."""

    def __init__(self, rule) -> None:
        self.rule, self.made = rule, 0

    def finished(self, runs):
        for run in runs:
            accuracy, samples = self.rule(run)
            self.made += 1
            yield Finished(
                run,
                History(
                    clients=NAMES,
                    requirements=np.full(4, 0.5),
                    contributions=np.array(run.contributions),
                    algorithm=run.algorithm.to_dict(),
                    seed=run.seed,
                    samples=np.array(samples),
                    unique=np.minimum(np.array(run.contributions), np.cumsum(samples, axis=0)),
                    loss=np.ones_like(accuracy, dtype=float),
                    accuracy=np.array(accuracy, dtype=float),
                    diverged=False,
                    seconds=1.0,
                ),
            )


EQUAL = [[8] * 4, [8] * 4]
# In the first round C and D meet their goals, and draw less in the second.
MOVED = [[8] * 4, [14, 14, 2, 2]]


def papers(run, *, quarter=9, full=20, fedavg=19):
    """As in the paper: out of 20 trials with 25 %, 19 under FedAvg and 9 under MW-FED do well."""
    defector = next((i for i, n in enumerate(run.contributions) if n < 40), None)
    mw = isinstance(run.algorithm, MwFed)
    good = (quarter if mw else fedavg) if defector is not None else (full if mw else 20)
    last = [0.9] * 4
    if run.trial % 20 >= good:
        last[0 if defector is None else defector] = 0.1
        last = [0.1] * 4 if defector is None else last
    return [[0.1, 0.1, 0.9, 0.9], last], MOVED if mw else EQUAL


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Give a function that checks a row on runs by a rule."""

    def check(id: str, rule=papers, trials: int = 20):
        engine = MadeUpEngine(rule)
        monkeypatch.setitem(execute.ENGINES, "local", engine)
        config = experiment.with_section(
            Config.default(), "audit", trials=trials, levels=(1.0, 0.25), defectors="random"
        )
        building = SimpleNamespace(source=lambda seed: MadeUpSource())

        def made(setting, file, quick=None):
            check.asked = file, quick
            return Experiment(config, building, MADE_UP, setting)

        monkeypatch.setattr(defection, "set_up", made)
        check.engine = engine
        return row(id, tmp_path)

    return check


def same_as_fedavg(run):
    return papers(run, quarter=19)


def worse_than_mw_fed(run):
    return papers(run, quarter=20)


def never_satisfied(run):
    """MW-FED fails its agents whatever they bring: a low curve that deters nobody."""
    return papers(run, quarter=9, full=9)


def test_the_papers_shares_hold(planted) -> None:
    found = planted("defection", trials=40)
    assert found.verdict is Verdict.HOLDS
    assert found.evidence["fedavg"]["value"] == 19 / 20
    assert found.evidence["mw_fed"]["value"] == 9 / 20
    assert found.evidence["between"]["value"] == 10 / 20
    assert found.evidence["drop"]["value"] == 11 / 20
    assert found.charts[0].name == "defection"


@pytest.mark.parametrize(
    ("rule", "verdict"),
    [
        (same_as_fedavg, Verdict.FAILS),
        (worse_than_mw_fed, Verdict.FAILS),
        (never_satisfied, Verdict.FAILS),
        (lambda run: papers(run, quarter=17), Verdict.FAILS),
        (lambda run: papers(run, quarter=14), Verdict.CORRECTED),
    ],
)
def test_other_shares_do_not(planted, rule, verdict: Verdict) -> None:
    found = planted("defection", rule)
    assert found.verdict is verdict and remarked(found)
    assert ("does not show" in found.measured) is (verdict is Verdict.FAILS)


@pytest.mark.parametrize(
    ("rule", "trials"),
    [
        (papers, 20),  # the paper's shares, and intervals as wide as 0.4
        (lambda run: papers(run, quarter=2, fedavg=8), 10),  # the intervals hold the paper's shares
        (lambda run: papers(run, quarter=12), 40),  # narrow enough, and 0.15 off
    ],
)
def test_wide_intervals_do_not_make_shares_the_papers(planted, rule, trials: int) -> None:
    found = planted("defection", rule, trials)
    assert found.verdict is Verdict.CORRECTED
    told = Estimate(**found.evidence["mw_fed"]).holds(0.45)
    assert ("too few trials to tell" in found.correction) is told


def test_a_defector_that_is_not_cut_is_noticed(planted, monkeypatch: pytest.MonkeyPatch) -> None:
    from fedaccord.federation.defection import audit, curves

    for module in (audit, curves):
        monkeypatch.setattr(module, "cut", lambda full, client, level: full)
    assert planted("defection").verdict is Verdict.FAILS


def test_rows_of_one_audit_share_its_runs(planted) -> None:
    planted("defection")
    assert planted.asked == ("defection.toml", None)
    assert planted.engine.made == 80
    for id in ("fedavg-satisfies-all", "fedavg-draws", "mw-fed-draws"):
        planted(id)
        assert planted.asked == ("defection.toml", None)
        assert planted.engine.made == 0


@pytest.mark.parametrize(("good", "verdict"), [(20, "HOLDS"), (19, "CORRECTED"), (9, "FAILS")])
def test_fedavg_satisfies_all_in_all_runs_or_the_row_says_in_how_many(
    planted, good: int, verdict: str
) -> None:
    def rule(run):
        accuracy, samples = papers(run)
        return (accuracy if run.trial < good else [accuracy[0], [0.9, 0.9, 0.9, 0.4]]), samples

    found = planted("fedavg-satisfies-all", rule)
    assert found.verdict is Verdict[verdict] and remarked(found)
    assert found.evidence["share"]["value"] == good / 20


def test_equal_draws_hold(planted) -> None:
    found = planted("fedavg-draws")
    assert found.verdict is Verdict.HOLDS
    assert found.evidence == {"largest_difference": 0, "runs": 20}
    assert "made to draw equally" in found.measured


def test_draws_of_runs_with_a_defector_are_not_part_of_the_claim(planted) -> None:
    def more_of_others(run):
        accuracy, samples = papers(run)
        return accuracy, [[8] * 4, [9, 8, 8, 8]] if min(run.contributions) < 40 else samples

    assert planted("fedavg-draws", more_of_others).verdict is Verdict.HOLDS


def test_draws_that_differ_in_one_run_are_noticed(planted) -> None:
    def more_of_one(run):
        accuracy, samples = papers(run)
        return accuracy, [[8] * 4, [9, 8, 8, 8]] if run.trial == 7 else samples

    assert planted("fedavg-draws", more_of_one).verdict is Verdict.FAILS


@pytest.mark.parametrize(
    ("samples", "verdict"),
    [
        (MOVED, Verdict.HOLDS),
        (EQUAL, Verdict.FAILS),  # MW-FED that is FedAvg
        ([[8] * 4, [2, 2, 14, 14]], Verdict.FAILS),  # the satisfied are asked for more
        ([[8] * 4, [7, 7, 1, 1]], Verdict.FAILS),  # the rounds shrink
    ],
)
def test_mw_fed_must_draw_less_from_the_satisfied(planted, samples, verdict: Verdict) -> None:
    def rule(run):
        accuracy, usual = papers(run)
        return accuracy, samples if isinstance(run.algorithm, MwFed) else usual

    found = planted("mw-fed-draws", rule)
    assert found.verdict is verdict
    assert found.evidence["part_of_equal_share"]["FedAvg"]["value"] == 1


def test_without_rounds_that_tell_nothing_is_shown(planted) -> None:
    def together(run):
        return [[0.1] * 4, [0.9] * 4], papers(run)[1]

    found = planted("mw-fed-draws", together)
    assert found.verdict is Verdict.FAILS
    assert "cannot be shown" in found.measured


@pytest.mark.parametrize("id", ["more-agents", "larger-sets"])
@pytest.mark.parametrize(
    ("rule", "verdict"),
    [
        (papers, Verdict.HOLDS),
        (same_as_fedavg, Verdict.FAILS),
        (never_satisfied, Verdict.FAILS),
        (lambda run: papers(run, quarter=18), Verdict.FAILS),
    ],
)
def test_trends_need_a_difference_beyond_chance(planted, id: str, rule, verdict: Verdict) -> None:
    found = planted(id, rule)
    assert found.verdict is verdict
    assert "no number to compare with" in found.measured
    file, quick = {
        "more-agents": ("more-agents.toml", defection.eight_agents),
        "larger-sets": ("larger-sets.toml", defection.double_sets),
    }[id]
    assert planted.asked == (file, quick)


def test_more_agents_and_larger_sets_differ_from_the_built_in_ones_in_nothing_else() -> None:
    plain = Config.default()
    more, larger = defection.eight_agents(plain), defection.double_sets(plain)
    for other, sections in ((more, ("agents", "audit")), (larger, ("agents", "audit"))):
        for name in ("data", "pools", "difficulty", "model", "pretraining"):
            assert getattr(other, name) == getattr(plain, name)
        assert all(getattr(other, name) != getattr(plain, name) for name in sections)
    assert len(more.agents.mixtures) == 8
    assert more.agents.requirement == plain.agents.requirement
    assert more.algorithms == plain.algorithms
    assert more.build().points.tolist() == [60] * 8
    assert larger.build().points.tolist() == [120] * 4
    assert {a.rounds for a in larger.algorithms.values()} == {80}


@pytest.fixture
def few_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    """The built-in audit with four trials at two levels, trained all the same."""

    def made(setting, file, quick=lambda config: config):
        config = experiment.with_section(
            Config.default(), "audit", trials=4, levels=(1.0, 0.25), defectors="random"
        )
        return experiment._prepare(setting, config)

    monkeypatch.setattr(defection, "set_up", made)


def test_trained_digits_are_satisfied_draw_alike_and_mw_fed_moves_draws(
    few_trials: None, tmp_path: Path
) -> None:
    assert row("fedavg-satisfies-all", tmp_path).verdict is Verdict.HOLDS
    assert row("fedavg-draws", tmp_path).verdict is Verdict.HOLDS
    assert row("mw-fed-draws", tmp_path).verdict is Verdict.HOLDS
    # Four trials can show no difference of shares.
    assert row("defection", tmp_path).verdict is Verdict.FAILS


def test_algorithms_with_planted_faults_are_noticed(
    few_trials: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unequal(self, state):
        return np.array([9, 8, 8, 7])

    def backwards(self, state, accuracies, requirements):
        return mw_fed.raise_weights(state, accuracies >= requirements, self.factor)

    monkeypatch.setattr(FedAvg, "allot", unequal)
    monkeypatch.setattr(MwFed, "weights", backwards)
    assert row("fedavg-draws", tmp_path).verdict is Verdict.FAILS
    assert row("mw-fed-draws", tmp_path).verdict is Verdict.FAILS


# Before the experiment.


@pytest.mark.parametrize(
    ("changed", "verdict"),
    [
        ({}, Verdict.CORRECTED),
        ({"rest_in_text": 41_600}, Verdict.HOLDS),
        ({"rest_in_table": 31_600}, Verdict.FAILS),
        ({"pretraining": 40_000}, Verdict.CORRECTED),
        ({"all": 121_600}, Verdict.FAILS),
        ({"agents": 50_000}, Verdict.FAILS),
    ],
)
def test_pools_are_added_up(changed: dict[str, int], verdict: Verdict, tmp_path: Path) -> None:
    found = row("experiment-pools", tmp_path, **changed)
    assert found.verdict is verdict
    if not changed:
        assert "41,600 samples remain; the number in the text is a slip" in found.correction


def learning(curve):
    """A pre-training whose accuracy is told by a curve of the batches."""

    def pretrain(model, inputs, labels, *, batches, look_every=25, until=None, **options):
        looks = {*range(look_every, batches + 1, look_every), batches}
        record = tuple((n, curve(n)) for n in sorted(looks))
        return PretrainedWeights({}, record if until else record[-1:], {"batches_trained": batches})

    return pretrain


@pytest.mark.parametrize(
    ("curve", "verdict"),
    [
        (lambda n: min(0.92, 0.04 * n), Verdict.CORRECTED),  # quick, as measured
        (lambda n: min(0.56, 0.03 * n), Verdict.HOLDS),  # 40 epochs end at 56 %
        (lambda n: 0.1, Verdict.FAILS),  # nothing is learnt
        (lambda n: min(0.53, 0.03 * n), Verdict.HOLDS),  # about 55 %, though never above it
        (lambda n: min(0.48, 0.03 * n), Verdict.FAILS),  # not about 55 %
        (lambda n: 0.92 if n > 50 else 0.5, Verdict.CORRECTED),  # one network is seen so late
    ],
)
def test_pretraining_is_judged_by_what_all_the_epochs_give(
    curve, verdict: Verdict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pretraining, "pretrain", learning(curve))
    found = row("pre-training", tmp_path)
    assert found.verdict is verdict
    assert "40 epochs of one network give" in found.measured


def test_digits_are_past_55_percent_long_before_40_epochs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preparation, "STARTS", 1)
    found = row("pre-training", tmp_path)
    assert found.verdict is Verdict.CORRECTED
    assert found.evidence["epochs_to_accuracy"][0] < 4
    assert found.evidence["after_all_epochs"] > 0.8
    assert found.correction.endswith("are of other data, and are not refuted by these.")
    monkeypatch.setattr(pretraining, "pretrain", None)
    assert row("pre-training", tmp_path) == found


BEST = (0.004, 8)


def judged_search(rate_short: dict[int, float], draws=None):
    """Judge a search whose best draw is 0.9 accurate, and 0.002 by so much less."""
    draws = [Draw(0.004, 8, 0.9, 100), Draw(1e-5, 64, 0.2, 20)] if draws is None else draws
    noise = np.array([0.001, -0.001, 0.0])
    again = {BEST: list(0.9 + noise)}
    for size in (4, 8, 64, 128, 256, 512):
        again[0.002, size] = list(0.9 - rate_short.get(size, 0.3) - noise)
    measured = preparation.judge_search(draws, again, MADE_UP, EXPECTED["hyperparameters"])
    return measured.find("hyperparameters", EXPECTED["hyperparameters"])


@pytest.mark.parametrize(
    ("short", "verdict"),
    [
        ({8: 0.002, 256: 0.004}, Verdict.HOLDS),
        ({8: 0.002, 256: 0.1}, Verdict.CORRECTED),
        ({8: 0.05, 256: 0.1}, Verdict.FAILS),
        ({8: 0.019, 256: 0.1}, Verdict.FAILS),  # near, and not clearly
    ],
)
def test_a_choice_is_judged_by_how_far_it_is_from_the_best(short, verdict: Verdict) -> None:
    found = judged_search(short)
    assert found.verdict is verdict and remarked(found)


@pytest.mark.parametrize("draw", [Draw(0.02, 8, 0.9, 10), Draw(0.004, 16, 0.9, 10)])
def test_draws_from_another_grid_fail(draw: Draw) -> None:
    assert judged_search({8: 0.0, 256: 0.0}, [draw]).verdict is Verdict.FAILS


def test_a_search_that_learns_at_no_rate_but_the_largest_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def accuracy(model, inputs, labels, *, learning_rate, batch_size, batches, **options):
        good = learning_rate > 0.005
        return PretrainedWeights({}, ((batches, 0.9 if good else 0.2),), {})

    for module in (pretraining, search):
        monkeypatch.setattr(module, "pretrain", accuracy)
    found = row("hyperparameters", tmp_path)
    assert found.verdict is Verdict.FAILS
    assert len(found.evidence["draws"]) == 40


def test_the_search_tries_networks_and_keeps_what_it_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(building, "SEEN", 1)
    monkeypatch.setattr(preparation, "FRESH", (2, 2))
    monkeypatch.setattr(search, "BATCH_SIZES", (64, 256))
    found = row("hyperparameters", tmp_path, draws=3)
    assert len(found.evidence["draws"]) == 3
    assert found.evidence["short_of_best"].keys() == {"64", "256"}
    for module in (pretraining, search):
        monkeypatch.setattr(module, "pretrain", None)
    assert row("hyperparameters", tmp_path, draws=3) == found


# Difficulty, with trials whose times are told by the effects of their points.


def simulated(effect: float, *, fresh: float = 1.0):
    """Trials that take 30 batches, and as much longer as their points are hard."""

    def run_trials(pool, model, *, holdout, trials, points, seed, **options):
        random = np.random.default_rng(seed)
        hard = effect * (pool.inputs.reshape(len(pool), -1).sum(axis=1) % 1 - 0.5)
        members = tuple(random.choice(len(pool), points, replace=False) for _ in range(trials))
        # A pool of which a trial has every point is one of the halves, for fresh networks.
        scale = fresh if points == len(pool) else 1.0
        times = np.array([30 + scale * hard[some].sum() for some in members])
        return Trials(members, times + random.normal(0, 3, size=trials), 0, {})

    return run_trials


@pytest.mark.parametrize(
    ("trials", "verdict"),
    [
        (simulated(2.0), Verdict.CORRECTED),
        (simulated(0.0), Verdict.FAILS),  # times that have nothing to do with the points
        (simulated(2.0, fresh=0.0), Verdict.FAILS),  # both halves train alike
        (simulated(2.0, fresh=-1.0), Verdict.FAILS),  # the harder half trains faster
    ],
)
def test_scores_must_be_about_points(
    trials, verdict: Verdict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(difficulty_module, "run_trials", trials)
    found = row("difficulty", tmp_path)
    assert found.verdict is verdict
    assert ("does not show" in found.measured) is (verdict is Verdict.FAILS)


def test_trials_that_vary_enough_and_take_as_long_hold() -> None:
    spread = difficulty_rows.Spread(2.0, Estimate(1.0, 0.8, 1.2), 0.5, Estimate(9, 8, 10), 20.0)
    times = np.random.default_rng(0).gamma(1.0, 286, size=1000)
    expected = EXPECTED["difficulty"]

    def judged(seen, batches):
        measured = difficulty_rows.judge_difficulty(
            seen, batches, difficulty_rows.DIGITS, MADE_UP, expected
        )
        return measured.find("difficulty", EXPECTED["difficulty"])

    assert judged(spread, times).verdict is Verdict.HOLDS
    longer = judged(spread, 2 * times)
    assert longer.verdict is Verdict.CORRECTED and remarked(longer)
    assert judged(spread, 286 + times / 100).verdict is Verdict.CORRECTED
    # The paper's mean, from a dozen trials whose interval would hold nearly any other.
    few = judged(spread, np.array([*[60.0] * 10, 1166.0, 1666.0]))
    assert few.verdict is Verdict.CORRECTED and "too few to tell" in few.correction
    # A mean in a wide enough interval, and as far off as this.
    assert judged(spread, times[:40] * 340 / times[:40].mean()).verdict is Verdict.CORRECTED
    by_chance = dataclasses.replace(spread, seen=1.1)
    assert judged(by_chance, times).verdict is Verdict.FAILS


def test_the_bound_on_the_spread_of_scores_is_one() -> None:
    """Scores of simulated trials, of which all that differs is their points, stay below it."""
    random = np.random.default_rng(3)
    effects = random.normal(size=600)
    members = [random.choice(600, 50, replace=False) for _ in range(400)]
    times = np.array([effects[some].sum() for some in members])
    values, counts = difficulty_module.mean_by_point(600, members, times)
    bound = times.std() * math.sqrt(1 / counts.mean() + 1 / 50)
    assert 0.8 * bound < np.nanstd(values) < bound


def test_networks_are_trained_on_small_pools_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = dataclasses.replace(difficulty_rows.DIGITS, trials=6, fresh=2, holdout=50)
    monkeypatch.setattr(difficulty_rows, "DIGITS", few)
    found = row("difficulty", tmp_path)
    assert 10 < found.evidence["trials"]["mean"]["value"] < 100
    assert found.evidence["longer"]["value"] != 0
    monkeypatch.setattr(difficulty_module, "run_trial", None)
    assert row("difficulty", tmp_path) == found


# The algorithms as algorithms.


def test_the_factor_is_right_for_one_local_batch_only(tmp_path: Path) -> None:
    found = row("algorithm-1", tmp_path)
    assert found.verdict is Verdict.CORRECTED
    # With B = 2 a round maps x to (0.81 x + 0.19 best) / 2: it rests at 0.19 / 1.19 of the best.
    assert found.evidence["printed"]["2"] == pytest.approx(1 - 0.19 / 1.19)
    assert "right for B = 1 only" in found.correction


@pytest.mark.parametrize(
    ("name", "rule", "verdict"),
    [
        ("average_as_printed", lambda models, b: sum(models) / len(models), Verdict.HOLDS),
        ("average_models", lambda models, b: sum(models) / (1 + len(models)), Verdict.FAILS),
    ],
)
def test_other_averages_are_told_apart(
    name: str, rule, verdict: Verdict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(algorithms, name, rule)
    assert row("algorithm-1", tmp_path).verdict is verdict


def test_an_average_of_the_package_that_is_none_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(base, "weighted_mean", lambda updates, counts: updates[0])
    assert row("algorithm-1", tmp_path).verdict is Verdict.FAILS


def test_the_floor_starves_whoever_is_below_the_average(tmp_path: Path) -> None:
    found = row("algorithm-2", tmp_path)
    assert found.verdict is Verdict.CORRECTED
    assert found.evidence["of_these_without_samples"] == found.evidence["below_average"] > 1000


def floors(parts, total):
    return np.floor(parts * total).astype(int)


def equal_counts(parts, total):
    return np.full(len(parts), total // len(parts))


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("exact_counts", floors),
        ("exact_counts", equal_counts),
        ("printed_counts", lambda parts, total, size: floors(parts, total)),
    ],
)
def test_counts_that_are_not_in_proportion_fail(
    name: str, rule, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mw_fed, name, rule)
    assert row("algorithm-2", tmp_path).verdict is Verdict.FAILS


def test_a_floor_that_starved_nobody_would_hold() -> None:
    from fractions import Fraction

    equal = {"shares": (Fraction(1, 4),) * 4, "exact": [64] * 4, "printed": [64] * 4}
    measured = algorithms.judge_counts([equal], 256, 64)
    assert measured.find("algorithm-2", EXPECTED["algorithm-2"]).verdict is Verdict.HOLDS
