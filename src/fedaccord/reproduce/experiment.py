"""Where the paper's experiment is made again: on digits in minutes, on EMNIST in hours.

Every finished run of training goes into a file of the folder that is given, and is not made
again.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fedaccord._checks import Vector
from fedaccord._lazy import imported
from fedaccord.errors import InputError
from fedaccord.reproduce.claims import Setting, Unavailable

if TYPE_CHECKING:
    from fedaccord.federation.config.build import Building
    from fedaccord.federation.config.load import Config
    from fedaccord.federation.config.sections import AuditOptions
    from fedaccord.federation.defection.curves import DefectionAudit
    from fedaccord.federation.defection.solo import SoloCurves
    from fedaccord.federation.runs.store import Outcome

RUNS = "runs.sqlite"
CACHE = "cache"
# Of the quick scale, and of nothing else: it was fixed before any run was made with it, so no
# deal, and no number of trials, was chosen by what these runs give.
SEED = 2021


@dataclass(frozen=True)
class Audited:
    """An audit of defection with what came of its runs.

    audit: the curves.
    outcomes: by algorithm and level, per trial, per defector: who defected, and the outcome.
    samples: by algorithm, per trial, round and client: the samples drawn, all in full.
    accuracy: the same for the accuracy, NaN in rounds without an evaluation.
    """

    audit: DefectionAudit
    outcomes: Mapping[tuple[str, float], list[list[tuple[int, Outcome]]]]
    samples: Mapping[str, Vector]
    accuracy: Mapping[str, Vector]

    def satisfied(self, algorithm: str, level: float) -> Vector:
        """Return each trial's share of defectors that were satisfied at the last evaluation."""
        return np.array(
            [
                np.mean([outcome.satisfied[client] for client, outcome in trial])
                for trial in self.outcomes[algorithm, level]
            ]
        )


@dataclass(frozen=True)
class Data:
    """What an experiment has learnt from.

    name: for a reader who wonders whether they are the paper's data.
    remark: to be said where the paper's numbers do not come out on them; of its own data nothing.
    """

    name: str
    remark: str = ""

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Experiment:
    """A federation to experiment with.

    config: what it is.
    building: makes it.
    data: what its data are.
    setting: where finished runs go, and how many are made at a time.
    """

    config: Config
    building: Building
    data: Data
    setting: Setting

    @property
    def file(self) -> Path:
        """The file of finished runs."""
        self.setting.folder.mkdir(parents=True, exist_ok=True)
        return self.setting.folder / RUNS

    def keep(self, name: str) -> Path:
        """Return the file of finished pieces of other work, one for each scale."""
        scale = "full" if self.setting.full else "quick"
        return self.file.with_name(f"{name}-{scale}.sqlite")

    def describe(self) -> dict[str, str]:
        """Return the data and the network, on which all work depends."""
        from fedaccord.federation.data.pretraining import digest_model

        return {
            "data": self.building.data.sha256,
            "pools": repr(self.config.pools),
            "model": digest_model(self.building.model),
        }

    def audit(self, what: str) -> Audited:
        """Audit defection as the config has it.

        what: for whoever waits.
        """
        from fedaccord.federation.defection.audit import defection_curves
        from fedaccord.federation.runs.store import RunStore

        wanted, algorithms = _by_p1(self.config), self.config.algorithms
        source = self.building.source(wanted.seed)
        with RunStore(self.file) as store:
            audit = defection_curves(
                *(source, algorithms),
                options=wanted,
                workers=self.setting.workers,
                store=store,
                progress=lambda now: self.setting.tell(what, now.done, now.total),
            )
            return _read_outcomes(audit, source, self.config, store)

    def train_alone(self, what: str, *, levels: tuple[float, ...] | None = None) -> SoloCurves:
        """Train every agent alone, all with the same part of their points.

        what: for whoever waits.
        levels: the parts; the config's where left out.
        """
        from fedaccord.federation.defection.solo import solo_curves

        wanted = self.config.audit
        return solo_curves(
            *(self.building.source(wanted.seed), self.config.algorithms["Solo"]),
            levels=levels or wanted.levels,
            trials=wanted.trials,
            seed=wanted.seed,
            workers=self.setting.workers,
            store=self.file,
            progress=lambda done, of: self.setting.tell(what, done, of),
        )


def _by_p1(config: Config) -> AuditOptions:
    """Return what a config asks of an audit, by the paper's protocol and to the last trial."""
    return dataclasses.replace(config.audit, protocol="P1", plan=None, width=None)


def _read_outcomes(audit: DefectionAudit, source: Any, config: Config, store: Any) -> Audited:
    """Take every run of an audit out of the store again."""
    from fedaccord.federation.defection.audit import Design, cut

    wanted = _by_p1(config)
    design = Design.of(source, config.algorithms, wanted)
    outcomes = {
        (name, level): [
            [
                (client, store.get(design.run(name, cut(design.points, client, level), trial)))
                for client in design.defectors_of(trial)
            ]
            for trial in range(wanted.trials)
        ]
        for name in config.algorithms
        for level in wanted.levels
    }
    full = {
        name: [
            _by_round(store.rows(design.run(name, design.points, trial)), design.names)
            for trial in range(wanted.trials)
        ]
        for name in config.algorithms
    }
    # A run that diverged is shorter; what is not there is NaN.
    samples, accuracy = (
        {name: _stack([pair[place] for pair in found]) for name, found in full.items()}
        for place in (0, 1)
    )
    return Audited(audit, outcomes, samples, accuracy)


def _by_round(rows: list[tuple[Any, ...]], names: tuple[str, ...]) -> tuple[Vector, Vector]:
    """Return the samples and the accuracies of a run: a row per round, a column per client."""
    rounds, column = max(row[0] for row in rows), {name: i for i, name in enumerate(names)}
    samples, accuracy = np.zeros((rounds, len(names))), np.zeros((rounds, len(names)))
    for number, client, drawn, _, _, found in rows:
        samples[number - 1, column[client]] = drawn
        accuracy[number - 1, column[client]] = found
    return samples, accuracy


def _stack(tables: list[Vector]) -> Vector:
    longest = max(len(table) for table in tables)
    padded = [
        np.pad(table, ((0, longest - len(table)), (0, 0)), constant_values=np.nan)
        for table in tables
    ]
    return np.array(padded)


def set_up(
    setting: Setting, file: str, quick: Callable[[Config], Config] = lambda config: config
) -> Experiment:
    """Prepare an experiment: at full scale that of a file, else one with digits.

    setting: at which scale, and where finished runs go.
    file: the config of the full scale.
    quick: makes the config of the quick scale out of the built-in one.
    """
    config_module = imported("fedaccord.federation.config.load")
    if not setting.full:
        config = quick(config_module.Config.default())
        return _prepare(setting, with_section(config, "audit", seed=SEED))
    from fedaccord.reproduce.run import blum2021

    config = config_module.Config.load(blum2021() / file)
    if config.data.path is not None and not Path(config.data.path).exists():
        # The official archive will do as well, wherever it is looked for.
        config = dataclasses.replace(config, data=dataclasses.replace(config.data, path=None))
    return _prepare(setting, config)


def _prepare(setting: Setting, config: Config) -> Experiment:
    building = imported("fedaccord.federation.config.build").Building(
        config, cache=setting.folder / CACHE
    )
    try:
        data = building.data
    except InputError as error:
        raise Unavailable(str(error)) from None
    from fedaccord.reproduce.run import expected_numbers

    balanced = expected_numbers()["experiment-pools"]["all"]
    return Experiment(
        config, building, describe_data(config.data.source, len(data), balanced), setting
    )


def describe_data(source: str, points: int, balanced: int) -> Data:
    """Say what data an experiment has, and whether they are the paper's.

    source: as the config has it.
    points: how many there are.
    balanced: how many the paper's data have.
    """
    if source == "digits":
        return Data(
            "scikit-learn's digits (not the paper's data)",
            " The paper's numbers are of other data, and are not refuted by these.",
        )
    if points == balanced:
        return Data("EMNIST's balanced split")
    return Data(
        f"{points:,} EMNIST images of the paper's 47 classes (not the balanced split itself)",
        " The paper's numbers are of another selection of such images.",
    )


def with_section(config: Config, section: str, **values: Any) -> Config:
    """Return a config in which some keys of a section have other values."""
    changed = dataclasses.replace(getattr(config, section), **values)
    return dataclasses.replace(config, **{section: changed})
