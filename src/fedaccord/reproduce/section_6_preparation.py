"""What comes before the paper's experiment: pools, pre-training, hyperparameters."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fedaccord.charts import Chart, Line
from fedaccord.reproduce.claims import Claims, Measured, Setting
from fedaccord.reproduce.estimates import estimate_mean
from fedaccord.reproduce.experiment import Data, Experiment, set_up, with_section

if TYPE_CHECKING:
    from fedaccord.federation.config.load import Config
    from fedaccord.federation.data.dataset import Dataset
    from fedaccord.federation.data.pretraining import Pair
    from fedaccord.federation.data.search import Draw

CLAIMS = Claims()

# How many networks are pre-trained, each from a start of its own; the first for all the epochs.
STARTS = 5
# With how many fresh seeds choices of hyperparameters are compared, quick and full.
FRESH = (5, 3)


@CLAIMS.measure("experiment-pools")
def experiment_pools(setting: Setting) -> Measured:
    """Add the pools up: what remains, against the paper's text and its table."""
    expected = setting.expected
    rest = expected["all"] - expected["agents"] - expected["pretraining"]
    text, table = expected["rest_in_text"], expected["rest_in_table"]
    return Measured(
        rest=rest,
        classes_times_points=expected["classes"] * expected["points_per_class"],
        words={"printed": rest in (text, table), "in_text": rest == text},
    )


@CLAIMS.measure("pre-training")
def pre_training(setting: Setting) -> Measured:
    """Pre-train, look on the way, and see when 55 % are passed and what 40 epochs give."""
    place = set_up(setting, "emnist.toml")
    goal, epochs = setting.expected["accuracy"], setting.expected["epochs"]
    records = _pretrain(place, epochs)
    # After how many epochs each network was first seen to pass that accuracy.
    passed = [
        next((epochs for _, accuracy, epochs in record if accuracy >= goal), None)
        for record in records
    ]
    there = [n for n in passed if n is not None]
    final = records[0][-1][1]
    # The first is the one that our federations start from.
    batches = place.config.pretraining.batches
    start = next(accuracy for done, accuracy, _ in records[0] if done >= batches)
    near = abs(final - goal) <= setting.expected["tolerance"]
    return Measured(
        epochs_to_accuracy=passed,
        after_all_epochs=final,
        start_of_our_federations={"batches": batches, "accuracy": start},
        words={
            "data": place.data,
            "there": len(there),
            "after": f" after {min(there):.2g} to {max(there):.2g} epochs" if there else "",
            "latest": max(there, default=math.inf),
            "near": near,
            "enough": near or (final >= goal and bool(there)),
        },
    )


def _pretrain(place: Experiment, epochs: int) -> list[list[tuple[int, float, float]]]:
    """Pre-train from several starts; return batches, accuracies and epochs at every look.

    The first start is trained for all the epochs, the others for one or so: that is enough to see
    them pass what all the epochs are said to give.
    """
    from fedaccord.federation.data.pretraining import pretrain
    from fedaccord.federation.runs.resumable import finish

    wanted, pools = place.config.pretraining, place.building.pools
    # Of digits the pool for validation is small, and the agents' points are not learnt from here.
    tested = pools.validation if place.setting.full else pools.agents
    train, validation = prepare_points(place, tested)
    a_pass = math.ceil(len(train[1]) / wanted.batch_size)
    early = max(a_pass, 2 * wanted.batches)

    def learnt(seed: int, batches: int, look_every: int) -> list[tuple[int, float]]:
        made = pretrain(
            *(place.building.model, *train),
            batches=batches,
            batch_size=wanted.batch_size,
            learning_rate=wanted.learning_rate,
            seed=seed,
            validation=validation,
            # Looked for, and never reached: training goes on.
            until=math.inf,
            look_every=look_every,
        )
        return list(made.record)

    def work(n: int) -> dict[str, Any]:
        seed = place.config.pools.seed + n
        record = learnt(seed, early, max(1, wanted.batches // 3))
        if n == 0:
            later = learnt(seed, epochs * a_pass, 5 * a_pass)
            record += [entry for entry in later if entry[0] > early]
        return {"record": record}

    rows = finish(
        "pretraining",
        STARTS,
        work,
        path=place.keep("pretraining"),
        description={"settings": repr(wanted), "epochs": epochs, **place.describe()},
        progress=lambda done, of: place.setting.tell("pre-training", done, of),
    )
    return [
        [(batches, accuracy, batches / a_pass) for batches, accuracy in row["record"]]
        for row in rows
    ]


def prepare_points(place: Experiment, tested: Dataset | None) -> tuple[Pair, Pair]:
    """Return the points to pre-train on, and others to measure on, as the network takes them."""
    from fedaccord.federation.data.dataset import Preparation

    learnt = place.building.pools.pretraining
    assert learnt is not None
    assert tested is not None
    preparation = Preparation.fit(learnt.inputs, learnt.columns)
    first, second = ((preparation.apply(pool.inputs), pool.labels) for pool in (learnt, tested))
    return first, second


def digits_to_search(config: Config) -> Config:
    """Return digits in other pools: enough points to learn from, and to tell choices apart."""
    return with_section(config, "pools", pretraining=800, validation=900)


@CLAIMS.measure("hyperparameters")
def hyperparameters(setting: Setting) -> Measured:
    """Search as the paper does, then compare its choice with the best on fresh seeds."""
    place = set_up(setting, "emnist.toml", digits_to_search)
    expected = setting.expected
    found = place.building.search(
        draws=expected["draws"],
        epochs=None,
        path=place.keep("search"),
        progress=lambda done, of: setting.tell("trying hyperparameters", done, of),
    )
    return judge_search(found, _try_again(place, found[0], expected), place.data, expected)


def _try_again(
    place: Experiment, best: Draw, expected: Mapping[str, Any]
) -> dict[tuple[float, int], list[float]]:
    """Try the best draw, and the paper's rate with every size of batch, on fresh seeds.

    The best of 40 owes its place to luck as well; on seeds of their own all have the same.
    """
    from fedaccord.federation.data.pretraining import DivergedError, pretrain
    from fedaccord.federation.data.search import BATCH_SIZES
    from fedaccord.federation.runs.resumable import finish

    train, validation = prepare_points(place, place.building.pools.validation)
    rate = expected["learning_rate"]
    choices = [(best.learning_rate, best.batch_size), *((rate, size) for size in BATCH_SIZES)]
    seen = best.batches * best.batch_size

    def work(n: int) -> dict[str, Any]:
        seed, (learning_rate, size) = 1 + n // len(choices), choices[n % len(choices)]
        try:
            weights = pretrain(
                *(place.building.model, *train),
                batches=max(1, round(seen / size)),
                batch_size=size,
                learning_rate=learning_rate,
                seed=seed,
                validation=validation,
            )
        except DivergedError:
            return {"accuracy": 0.0}
        return {"accuracy": weights.accuracy}

    rows = finish(
        "again",
        FRESH[place.setting.full] * len(choices),
        work,
        path=place.keep("search"),
        description={"choices": choices, "points_seen": seen, **place.describe()},
        progress=lambda done, of: place.setting.tell("trying the best again", done, of),
    )
    accuracies = [row["accuracy"] for row in rows]
    return {choice: accuracies[i :: len(choices)] for i, choice in enumerate(choices)}


def judge_search(
    found: Sequence[Draw],
    again: Mapping[tuple[float, int], Sequence[float]],
    data: Data,
    expected: Mapping[str, Any],
) -> Measured:
    """Judge whether the paper's choice is near the best that was found.

    found: the draws, the best first.
    again: accuracies on fresh seeds, of the best draw first, then of the paper's rate with each
        size of batch.
    """
    best, *with_rate = again
    short = {
        size: estimate_mean(np.subtract(again[best], again[rate, size])) for rate, size in with_rate
    }
    size, chosen = min(short, key=lambda n: short[n].value), expected["batch_size"]
    near = [n for n, below in short.items() if below.high <= expected["tolerance"]]
    low, high = expected["learning_rates"]
    inside = all(
        low <= draw.learning_rate <= high and draw.batch_size in expected["batch_sizes"]
        for draw in found
    )
    return Measured(
        draws=found,
        short_of_best={str(n): below for n, below in short.items()},
        fresh_seeds=len(again[best]),
        words={
            "data": data,
            "best": best,
            "best_accuracy": np.mean(again[best]),
            "nearest": short[size],
            "size": size,
            "chosen": short[chosen],
            "near": near,
            "chosen_near": chosen in near,
            "inside": inside,
        },
        charts=(chart_search(found, expected),),
    )


def chart_search(found: Sequence[Draw], expected: Mapping[str, Any]) -> Chart:
    """Chart the accuracy of every draw by its learning rate, a line per size of batch."""
    sizes = sorted({draw.batch_size for draw in found})
    lines = []
    for size in sizes:
        some = sorted((d.learning_rate, d.accuracy) for d in found if d.batch_size == size)
        known = [(math.log10(rate), right) for rate, right in some if not math.isnan(right)]
        x, y = tuple(rate for rate, _ in known), tuple(right for _, right in known)
        lines.append(Line(f"batches of {size}", x, y))
    return Chart(
        name="hyperparameters",
        title="Accuracy of random choices of hyperparameters",
        x="logarithm of the learning rate, to base 10",
        y="accuracy on the validation samples",
        alt=f"The best of {len(found)} draws has a learning rate of {found[0].learning_rate:.2g}, "
        f"batches of {found[0].batch_size} and an accuracy of {found[0].accuracy:.3f}; the paper's "
        f"rate is {expected['learning_rate']:g}.",
        lines=tuple(lines),
        percent=True,
    )
