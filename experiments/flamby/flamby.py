"""Train FLamby's four heart hospitals as FLamby does, and ask whether they should federate.

    export FEDACCORD_DATA=~/data      # the folder with heart-disease-4-sites.csv
    python experiments/flamby/flamby.py

Each method is trained from FLamby's five seeds, and starts from FLamby's own weights. Finished
trainings are kept in results/runs.jsonl, so the command can be stopped and continued. From these
it writes results/flamby.json, and from that results/flamby.md. README.md says what the numbers
mean.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import stdtrit
from sklearn.model_selection import train_test_split
from torch import Tensor, nn

from fedaccord import find_coalitions, tabulate_coalitions
from fedaccord._io.files import replace_file
from fedaccord._machine import machine
from fedaccord.federation import Algorithm, Client, FedAvg, Federation, train
from fedaccord.federation.data.idx import find_file
from fedaccord.federation.defection.intervals import mean_interval, wilson

HERE = Path(__file__).parent
FILES = ("runs.jsonl", "flamby.json", "flamby.md")
RUNS, RESULT, TABLE = (HERE / "results" / name for name in FILES)
PUBLISHED = HERE / "published.csv"
SITES = ("cleveland", "hungarian", "switzerland", "va")
SEEDS = tuple(range(42, 47))
Array = NDArray[Any]

# The patients.

NUMBERS = ("age", "sex", "trestbps", "chol", "fbs", "thalach", "exang", "oldpeak")
# The first level of each is the one that all its columns deny.
LEVELS = {"cp": (2, 3, 4), "restecg": (1, 2)}
COLUMNS = (*NUMBERS, *(f"{name}={level}" for name in LEVELS for level in LEVELS[name]))
SPLIT_SEED, TRAINS = 43, 0.66


@dataclass(frozen=True)
class Hospital:
    """The patients of one hospital, as measured: not yet scaled.

    name: the hospital.
    inputs: a row per patient, with the columns COLUMNS.
    labels: 1 for patients whose vessel was narrowed.
    trains: which patients train; the others test.
    """

    name: str
    inputs: Tensor
    labels: Tensor
    trains: Array


def read_hospitals(path: Path, *, split_seed: int = SPLIT_SEED) -> list[Hospital]:
    """Return the patients without gaps; the columns slope, ca and thal are left out."""
    needed = (*NUMBERS, *LEVELS, "num")
    with path.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if all(row[name] for name in needed)]
    hospitals = []
    for site in SITES:
        mine = [row for row in rows if row["site"] == site]
        inputs = np.array([_encode(row) for row in mine], dtype=np.float32)
        labels = np.array([float(row["num"]) > 0 for row in mine], dtype=np.int64)
        trains = _split(labels, split_seed)
        hospitals.append(Hospital(site, torch.from_numpy(inputs), torch.from_numpy(labels), trains))
    return hospitals


def _encode(row: dict[str, str]) -> list[float]:
    levels = [float(float(row[name]) == level) for name in LEVELS for level in LEVELS[name]]
    return [*(float(row[name]) for name in NUMBERS), *levels]


def _split(labels: Array, seed: int) -> Array:
    """Return which patients train: two thirds, of ill and healthy patients alike.

    Switzerland has a single healthy patient, so its patients are split without regard to labels.
    """
    rare = np.bincount(labels, minlength=2).min() <= 2
    _, tests = train_test_split(
        np.arange(len(labels)),
        train_size=TRAINS,
        test_size=1 - TRAINS,
        random_state=seed,
        stratify=None if rare else labels,
    )
    return ~np.isin(np.arange(len(labels)), tests)


def scale(inputs: Tensor, like: Tensor) -> Tensor:
    """Subtract the mean of some patients from inputs, and divide by their standard deviation."""
    return (inputs - like.mean(0)) / (like.std(0) + 1e-9)


def make_federation(hospitals: Sequence[Hospital], *, seed: int, scaled: str) -> Federation:
    """Return the four hospitals, and a fifth client `all` that has all their training patients.

    seed: of the weights to start from, which are FLamby's of the same seed.
    scaled: "site", as FLamby does: each hospital scales by its own training patients, and `all`
        by all of them; "common": everybody scales by all training patients; "all-by-site": each
        hospital scales by its own, and `all` has the patients as scaled by their hospitals.
    """
    pooled = torch.cat([one.inputs[one.trains] for one in hospitals])
    clients, parts = [], []
    for one in hospitals:
        own = one.inputs[one.trains]
        inputs = scale(one.inputs, pooled if scaled == "common" else own)
        given = inputs[one.trains], one.labels[one.trains]
        tested = inputs[~one.trains], one.labels[~one.trains]
        clients.append(Client(one.name, given, tested, requirement=0.5))
        parts.append(given[0] if scaled == "all-by-site" else scale(own, pooled))
    everyone = torch.cat(parts), torch.cat([one.labels[one.trains] for one in hospitals])
    clients.append(Client("all", everyone, everyone, requirement=0.5))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        start = {name: value.numpy() for name, value in OneScore().state_dict().items()}
    return Federation(clients, OneScore, weights=start)


class OneScore(nn.Module):
    """Logistic regression with one score z, as FLamby's.

    The cross entropy of the scores (0, z) is the binary cross entropy of the sigmoid of z.
    """

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(len(COLUMNS), 1)

    def forward(self, inputs: Tensor) -> Tensor:
        score = self.linear(inputs)
        return torch.cat([torch.zeros_like(score), score], dim=1)


# The algorithms.


@dataclass(frozen=True, kw_only=True)
class BySize(FedAvg):
    """FedAvg by model averaging, in which hospitals weigh as much as they have patients."""

    rounds: int = 15
    local_batches: int = 100
    batch_size: int = 4
    learning_rate: float = 0.001
    optimizer: str = "sgd"
    form: str = "local"

    def begin(self, contributions):
        return Server(contributions / contributions.sum())

    def allot(self, state):
        return np.full(len(state.parts), self.batch_size * self.local_batches)

    def combine(self, state, updates, counts, clients):
        return sum(state.parts[i] * update for i, update in zip(clients, updates, strict=True))


@dataclass(frozen=True)
class Server:
    """What the server remembers: the hospitals' weights, and past changes of the model."""

    parts: Array
    momentum: Tensor | float = 0.0
    squares: Tensor | float = 0.0


@dataclass(frozen=True, kw_only=True)
class FedAdagrad(BySize):
    """The server takes a step of Adagrad along the mean change of the clients' models.

        m  <-  beta m + (1 - beta) change        v  <-  v + change^2
        model  <-  model + rate m / (sqrt(v) + tau)

    S. Reddi, Z. Charles, M. Zaheer, Z. Garrett, K. Rush, J. Konečný, S. Kumar, H. B. McMahan:
    Adaptive Federated Optimization. ICLR 2021.
    """

    learning_rate: float = 0.003162
    server_rate: float = 0.316228
    beta: float = 0.9
    tau: float = 1e-8

    def advance(self, state, server, mean):
        change = mean - server
        momentum = self.beta * state.momentum + (1 - self.beta) * change
        squares = state.squares + change**2
        model = server + self.server_rate * momentum / (squares.sqrt() + self.tau)
        return model, replace(state, momentum=momentum, squares=squares)


# The methods. Each is who trains, how, and how inputs are scaled.


@dataclass(frozen=True)
class Method:
    """A way to train a model.

    name: what the table calls it.
    algorithm: how it is trained; None for 50 passes of one client, see `train_alone`.
    givers: the clients that give their patients.
    scaled: see `make_federation`.
    rate: the learning rate of a single client.
    """

    name: str
    algorithm: Algorithm | None
    givers: tuple[str, ...] = SITES
    scaled: str = "site"
    rate: float = 0.001


FEDAVG = BySize()
FASTER = replace(FEDAVG, learning_rate=0.1)
ALONE = tuple(Method(f"{site} alone", None, (site,)) for site in SITES)
FASTER_ALONE = tuple(Method(f"{site} alone, rate 0.01", None, (site,), rate=0.01) for site in SITES)
REPRODUCED = (
    Method("pooled", None, ("all",)),
    *ALONE,
    Method("FedAvg", FEDAVG),
    Method("FedAdagrad", FedAdagrad()),
)
VARIED = (
    Method("FedAvg, 150 rounds of 10", replace(FEDAVG, rounds=150, local_batches=10)),
    Method("FedAvg, rate 0.1", FASTER),
    Method("pooled, scaled by site", None, ("all",), "all-by-site"),
    Method("pooled, one scale", None, ("all",), "common"),
    Method("FedAvg, rate 0.1, one scale", FASTER, SITES, "common"),
)


# What is measured.


def train_alone(patients: int, rate: float) -> Algorithm:
    """Return FLamby's training of a single client: 50 passes with Adam, in batches of 4.

    The local form starts its optimizers afresh each round, so all updates are in one round.
    """
    updates = 50 * -(-patients // 4)
    return FedAvg(
        rounds=1,
        local_batches=updates,
        batch_size=4,
        learning_rate=rate,
        optimizer="adam",
        form="local",
    )


def measure(method: Method, hospitals: Sequence[Hospital], seed: int) -> list[Array]:
    """Train once, and return for each hospital which of its test patients the model gets right."""
    federation = make_federation(hospitals, seed=seed, scaled=method.scaled)
    given = [client.points if client.name in method.givers else 0 for client in federation.clients]
    algorithm = method.algorithm or train_alone(sum(given), method.rate)
    history = train(federation, algorithm, contributions=given, seed=seed)
    weight, bias = history.weights["linear.weight"][0], history.weights["linear.bias"][0]
    return [
        (client.validation_inputs.numpy() @ weight + bias > 0) == client.validation_labels.numpy()
        for client in federation.clients[: len(hospitals)]
    ]


class Runs:
    """Trainings, each of which is kept in a file once it is made.

    hospitals: all four.
    """

    def __init__(self, hospitals: Sequence[Hospital]) -> None:
        self.hospitals = hospitals
        lines = RUNS.read_text(encoding="utf-8").splitlines() if RUNS.exists() else []
        self._kept = dict(map(json.loads, lines))

    def measure(self, method: Method, sites: Sequence[int]) -> list[Array]:
        """Return by hospital who is right: a row per seed, a column per test patient.

        method: how to train.
        sites: the positions of the hospitals to measure.
        """
        hospitals = [self.hospitals[i] for i in sites]
        runs = []
        for seed in SEEDS:
            key = f"{method.name} / {' + '.join(one.name for one in hospitals)} / {seed}"
            if key not in self._kept:
                right = measure(method, hospitals, seed)
                self._kept[key] = ["".join(map(str, site.astype(int))) for site in right]
                with RUNS.open("a", encoding="utf-8") as file:
                    file.write(json.dumps([key, self._kept[key]]) + "\n")
                print(key, [f"{site.mean():.3f}" for site in right], flush=True)
            runs.append([np.array([*map(int, site)]) for site in self._kept[key]])
        return [np.array(site) for site in zip(*runs, strict=True)]


def describe(right: Array, alone: Array) -> dict[str, Any]:
    """Return a hospital's accuracies with a method, and how they differ from those alone.

    right: a row per seed, a column per test patient.
    alone: the same of the hospital's own model.
    """
    accuracy, patients = right.mean(axis=1), right.shape[1]
    among_patients = wilson(round(float(right.mean()) * patients), patients)
    return {
        "right": right.sum(axis=1).tolist(),
        "mean": float(right.mean()),
        "interval_over_seeds": mean_interval(accuracy),
        "interval_over_patients": [among_patients.low, among_patients.high],
        "more_than_alone": float(right.mean() - alone.mean()),
        "more_than_alone_interval": resample_difference(right, alone),
    }


def resample_difference(right: Array, alone: Array, *, draws: int = 10_000) -> list[float]:
    """Return the 95 % interval of the mean difference if other patients had been tested.

    Patients are drawn with replacement. Each counts with its mean over the seeds.
    """
    differences = right.mean(axis=0) - alone.mean(axis=0)
    chosen = np.random.default_rng(0).integers(len(differences), size=(draws, len(differences)))
    return np.quantile(differences[chosen].mean(axis=1), [0.025, 0.975]).tolist()


# Which hospitals would federate with which?

PACT = VARIED[-1]


def measure_pacts(runs: Runs) -> dict[tuple[int, ...], list[Array]]:
    """Return for every coalition which test patients of its members are right, mean over seeds.

    A coalition of one is a hospital that trains alone. The others train by FedAvg, on the scale of
    all their patients.
    """
    rates = {}
    for bits in range(1, 2 ** len(SITES)):
        members = tuple(i for i in range(len(SITES)) if bits >> i & 1)
        if len(members) == 1:
            site = members[0]
            found = [runs.measure(FASTER_ALONE[site], range(len(SITES)))[site]]
        else:
            givers = tuple(SITES[i] for i in members)
            found = runs.measure(replace(PACT, givers=givers), members)
        rates[members] = [right.mean(axis=0) for right in found]
    return rates


def judge_pacts(rates: dict[tuple[int, ...], list[Array]], *, draws: int = 500) -> dict[str, Any]:
    """Return which groupings hold, and how often they would with other test patients."""
    random = np.random.default_rng(0)
    sizes = [len(rates[i,][0]) for i in range(len(SITES))]
    held: dict[str, int] = {}
    for _ in range(draws):
        chosen = [random.integers(size, size=size) for size in sizes]
        for name in find_held(rates, chosen):
            held[name] = held.get(name, 0) + 1
    likely = sorted(held.items(), key=lambda item: -item[1])
    return {
        "errors": {
            _write([members]): [1 - float(rate.mean()) for rate in rates[members]]
            for members in rates
        },
        "hold": find_held(rates, [np.arange(size) for size in sizes]),
        "hold_with_other_patients": {name: times / draws for name, times in likely},
    }


def find_held(rates: dict[tuple[int, ...], list[Array]], chosen: Sequence[Array]) -> list[str]:
    """Return the groupings that no group of hospitals would leave, by errors on chosen patients."""

    def cost(members: tuple[int, ...]) -> list[float]:
        return [
            1 - float(rate[chosen[i]].mean())
            for i, rate in zip(members, rates[members], strict=True)
        ]

    table = tabulate_coalitions(len(SITES), cost, agents=SITES, what="errs by")
    return [_write(grouping.coalitions) for grouping in find_coalitions(table).core]


def _write(coalitions: Sequence[tuple[int, ...]]) -> str:
    return "; ".join(" + ".join(SITES[i] for i in members) for members in coalitions)


# FLamby's own numbers.


def read_published() -> dict[str, Array]:
    """Return how many test patients FLamby gets right: a row per seed, a column per hospital."""
    found: dict[str, list[list[int]]] = {}
    with PUBLISHED.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            found.setdefault(row["method"], []).append([int(row[site]) for site in SITES])
    return {name: np.array(rows) for name, rows in found.items()}


def is_within_noise(ours: Sequence[int], theirs: Sequence[int]) -> bool:
    """Return whether two sets of seeds may have the same mean: Student's test at 5 %.

    Where no seed of either changes anything, the means must be equal.
    """
    one, other = np.asarray(ours, dtype=float), np.asarray(theirs, dtype=float)
    free = len(one) + len(other) - 2
    spread = (((one - one.mean()) ** 2).sum() + ((other - other.mean()) ** 2).sum()) / free
    reach = stdtrit(free, 0.975) * np.sqrt(spread * (1 / len(one) + 1 / len(other)))
    return bool(abs(one.mean() - other.mean()) <= reach)


# The result and its table.


def run() -> dict[str, Any]:
    """Train everything and return the result."""
    hospitals = read_hospitals(find_file("heart-disease-4-sites.csv"))
    runs = Runs(hospitals)
    found = {
        method.name: runs.measure(method, range(len(SITES)))
        for method in (*REPRODUCED, *VARIED, *FASTER_ALONE)
    }
    alone = [found[method.name][i] for i, method in enumerate(ALONE)]
    methods = {
        name: {site: describe(sites[i], alone[i]) for i, site in enumerate(SITES)}
        for name, sites in found.items()
    }
    return {
        "command": "python experiments/flamby/flamby.py",
        "seeds": list(SEEDS),
        "patients": {one.name: len(one.labels) for one in hospitals},
        "training_patients": {one.name: int(one.trains.sum()) for one in hospitals},
        "test_patients": {one.name: int((~one.trains).sum()) for one in hospitals},
        "ill_test_patients": {one.name: int(one.labels[~one.trains].sum()) for one in hospitals},
        "methods": methods,
        "coalitions": judge_pacts(measure_pacts(runs)),
        "machine": machine(),
    }


def write_table(result: dict[str, Any]) -> str:
    """Return the result as tables in Markdown."""
    return "\n".join(
        [
            "# Results",
            "",
            f"Made by `{result['command']}` with the seeds {result['seeds'][0]} to "
            f"{result['seeds'][-1]}.",
            "",
            *_write_reproduced(result),
            "",
            *_write_varied(result),
            "",
            *_write_pacts(result),
            "",
        ]
    )


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _head(first: str, others: Sequence[str]) -> list[str]:
    return [_row([first, *others]), "|-" * (1 + len(others)) + "|"]


def _range(ends: Sequence[float], form: str = ".3f") -> str:
    return f"[{ends[0]:{form}}, {ends[1]:{form}}]"


def _write_reproduced(result: dict[str, Any]) -> list[str]:
    """Return the first table: our mean over the seeds, its 95 % interval, FLamby's mean."""
    tests, published = result["test_patients"], read_published()
    lines = [
        "## FLamby's methods",
        "",
        "Accuracy: our mean over seeds [95 % interval of that mean] / FLamby's mean.",
        "A star marks means that differ by more than the seeds explain (5 % level).",
        "",
        *_head("method", SITES),
    ]
    inside, cells_seen = 0, 0
    for method in REPRODUCED:
        cells = []
        for i, site in enumerate(SITES):
            ours, theirs = result["methods"][method.name][site], published[method.name][:, i]
            same = is_within_noise(ours["right"], theirs)
            inside, cells_seen = inside + same, cells_seen + 1
            ends = _range(ours["interval_over_seeds"])
            mean = theirs.mean() / tests[site]
            cells.append(f"{ours['mean']:.3f} {ends} / {mean:.3f}{'' if same else ' *'}")
        lines.append(_row([method.name, *cells]))
    return [*lines, "", f"{inside} of {cells_seen} means agree within the noise of the seeds."]


def _write_varied(result: dict[str, Any]) -> list[str]:
    """Return the second table: each method against each hospital's own model."""
    tests, ill = result["test_patients"], result["ill_test_patients"]
    guess = [f"{max(ill[site], tests[site] - ill[site]) / tests[site]:.3f}" for site in SITES]
    own = [result["methods"][f"{site} alone"][site] for site in SITES]
    lines = [
        "## Against each hospital's own model",
        "",
        "Accuracy, and how much more that is than alone [95 % interval, from the test patients].",
        "",
        *_head("method", SITES),
        _row(["test patients", *(str(tests[site]) for site in SITES)]),
        _row(["the same answer for every patient", *guess]),
        _row(["alone", *(f"{o['mean']:.3f} {_range(o['interval_over_patients'])}" for o in own)]),
    ]
    names = [method.name for method in (*REPRODUCED, *VARIED) if method not in ALONE]
    compared = {name: [result["methods"][name][site] for site in SITES] for name in names}
    compared["alone, rate 0.01"] = [
        result["methods"][method.name][site]
        for method, site in zip(FASTER_ALONE, SITES, strict=True)
    ]
    for name, found in compared.items():
        cells = [
            f"{o['mean']:.3f}, {o['more_than_alone']:+.3f} "
            f"{_range(o['more_than_alone_interval'], '+.3f')}"
            for o in found
        ]
        lines.append(_row([name, *cells]))
    return lines


def _write_pacts(result: dict[str, Any]) -> list[str]:
    """Return which groupings hold."""
    found = result["coalitions"]
    shares = found["hold_with_other_patients"]
    return [
        "## Which hospitals would federate",
        "",
        f"Coalitions train by {PACT.name}. A hospital alone trains with rate 0.01.",
        "",
        *_head("grouping", ["holds", "holds with other test patients"]),
        *(
            _row([name, "yes" if name in found["hold"] else "no", f"{share:.0%}"])
            for name, share in shares.items()
            if share >= 0.05
        ),
    ]


def main() -> None:
    replace_file(RESULT, json.dumps(run(), indent=1) + "\n")
    text = write_table(json.loads(RESULT.read_text(encoding="utf-8")))
    replace_file(TABLE, text)
    print(text)


if __name__ == "__main__":
    main()
