"""Where the paper's experiment is made again: on digits in minutes, on EMNIST in hours.

Every finished run of training goes into a file of the folder that is given, and is not made
again.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fedaccord._checks import Matrix, Vector
from fedaccord._lazy import imported
from fedaccord.errors import InputError, OnlyPart
from fedaccord.reproduce.claims import Setting, Unavailable

if TYPE_CHECKING:
    from fedaccord.federation.config.build import Building
    from fedaccord.federation.config.load import Config
    from fedaccord.federation.defection.audit import Design
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
    """An audit of defection, whose runs can be read again.

    audit: the curves.
    design: which runs it took.
    file: the file of finished runs.
    """

    audit: DefectionAudit
    design: Design
    file: Path

    def read_outcomes(self, algorithm: str, level: float) -> list[list[tuple[int, Outcome]]]:
        """Read per trial, per defector: who defected to a level, and the outcome."""
        from fedaccord.federation.defection.curves import cut
        from fedaccord.federation.runs.store import RunStore

        def find(client: int, trial: int) -> Outcome:
            given = cut(self.design.points, client, level)
            found = store.get(self.design.run(algorithm, given, trial))
            assert found is not None
            return found

        with RunStore(self.file) as store:
            return [
                [(client, find(client, trial)) for client in self.design.defectors_of(trial)]
                for trial in range(self.design.options.trials)
            ]

    def satisfied(self, algorithm: str, level: float) -> Vector:
        """Return each trial's share of defectors that were satisfied at the last evaluation."""
        shares = [
            np.mean([outcome.satisfied[client] for client, outcome in trial])
            for trial in self.read_outcomes(algorithm, level)
        ]
        return np.array(shares)

    def read_rounds(self, algorithm: str) -> list[tuple[Matrix, Matrix]]:
        """Read per trial, with everybody's full contribution, by round and client: what was drawn.

        And the accuracies, NaN in rounds without an evaluation.
        """
        from fedaccord.federation.runs.store import RunStore

        found = []
        with RunStore(self.file) as store:
            for trial in range(self.design.options.trials):
                rows = store.rows(self.design.run(algorithm, self.design.points, trial))
                cells = {(n, client): (drawn, right) for n, client, drawn, _, _, right in rows}
                rounds = range(1, max(n for n, _ in cells) + 1)
                table = np.array([[cells[n, name] for name in self.design.names] for n in rounds])
                found.append((table[:, :, 0], table[:, :, 1]))
        return found


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
        """The file of finished runs, in a folder of its own if they are those of a part."""
        whole, part = self.setting.folder, self.setting.part
        folder = whole if part is None else part.name_file(whole)
        folder.mkdir(parents=True, exist_ok=True)
        return folder / RUNS

    def keep(self, name: str) -> Path:
        """Return the file of finished pieces of other work, one for each scale.

        Later pieces depend on earlier ones, so such work falls to one part as a whole; OnlyPart is
        raised in the others.

        name: of the file; its first word names the work.
        """
        part, (work, *_) = self.setting.part, name.split("-")
        if part is not None and not part.has(int(sha256(work.encode()).hexdigest(), 16)):
            raise OnlyPart(f"the {work} falls to another part")
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

        what: its name in progress messages.
        """
        from fedaccord.federation.defection.audit import Design, defection_curves
        from fedaccord.federation.runs.store import RunStore

        # By the paper's protocol and to the last trial.
        wanted = dataclasses.replace(self.config.audit, protocol="P1", plan=None, width=None)
        source, algorithms = self.building.source(wanted.seed), self.config.algorithms
        with RunStore(self.file, part=self.setting.part) as store:
            audit = defection_curves(
                *(source, algorithms),
                options=wanted,
                workers=self.setting.workers,
                engine=self.setting.engine,
                store=store,
                progress=lambda now: self.setting.tell(what, now.done, now.total),
            )
        return Audited(audit, Design(source, algorithms, wanted), self.file)

    def train_alone(self, what: str, *, levels: tuple[float, ...] | None = None) -> SoloCurves:
        """Train every agent alone, all with the same part of their points.

        what: its name in progress messages.
        levels: the parts; the config's where left out.
        """
        from fedaccord.federation.defection.solo import solo_curves
        from fedaccord.federation.runs.store import RunStore

        wanted = self.config.audit
        with RunStore(self.file, part=self.setting.part) as store:
            return solo_curves(
                *(self.building.source(wanted.seed), self.config.algorithms["Solo"]),
                levels=levels or wanted.levels,
                trials=wanted.trials,
                seed=wanted.seed,
                workers=self.setting.workers,
                engine=self.setting.engine,
                store=store,
                progress=lambda done, of: self.setting.tell(what, done, of),
            )


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
    """Return what data an experiment has, and whether they are the paper's.

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
