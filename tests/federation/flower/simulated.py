"""Sources for the simulation's tests, and what its processes do there: they import this module."""

import dataclasses
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import flwr.simulation
from federation.small import small_federation, two_layers

from fedaccord.federation import FedAvg
from fedaccord.federation.clients import Federation
from fedaccord.federation.config.load import Config
from fedaccord.federation.flower import engine as simulation
from fedaccord.federation.flower.engine import FlowerEngine
from fedaccord.federation.remote import protocol
from fedaccord.federation.runs.execute import RunError, Source
from fedaccord.federation.runs.store import Run
from fedaccord.federation.training.rng import Draws

CHAPTER = 1000


def of_another_seed(*args: Any, seed: int, **options: Any) -> Draws:
    return Draws(*args, seed=seed + 1, **options)


def forgetful(*args: Any, drawn: int, **options: Any) -> Draws:
    return Draws(*args, drawn=0, **options)


@dataclasses.dataclass(frozen=True)
class Chapters:
    """Several sources in one, so that one simulation serves all tests: the trials of source c are
    those from 1000 c on. In other processes than the tests' its clients draw as `faults` has it.
    """

    sources: tuple[Source, ...]
    faults: dict[int, Callable[..., Draws]]
    here: int = dataclasses.field(default_factory=os.getpid)

    @property
    def names(self) -> Any:
        return self.sources[0].names

    @property
    def requirements(self) -> Any:
        return self.sources[0].requirements

    @property
    def points(self) -> Any:
        return self.sources[0].points

    @property
    def fingerprint(self) -> str:
        return self.sources[0].fingerprint

    def deal(self, trial: int) -> Federation:
        chapter, own = divmod(trial, CHAPTER)
        if os.getpid() != self.here:
            protocol.Draws = self.faults.get(chapter, Draws)  # type: ignore[misc]
        return self.sources[chapter].deal(own)


def digits(*, model: str = "mlp", requirement: float = 0.8) -> Source:
    """The built-in federation, with another network or goal."""
    config = Config.default()
    return dataclasses.replace(
        config,
        model=dataclasses.replace(config.model, name=model),
        agents=dataclasses.replace(config.agents, requirement=requirement),
    ).build(seed=3)


@dataclasses.dataclass(frozen=True)
class Unstartable:
    """A source in whose simulation Flower fails before there is a grid, as with too little room."""

    federation: Federation
    here: int = dataclasses.field(default_factory=os.getpid)

    @property
    def names(self) -> Any:
        return self.federation.names

    def deal(self, trial: int) -> Federation:
        if os.getpid() != self.here:
            simulation._start_ray = lambda *_: None
            flwr.simulation.run_simulation = self._fail
        return self.federation

    def _fail(self, *_: Any, **__: Any) -> None:
        try:
            raise OSError("no room for\nanother node")
        except OSError as error:
            raise RuntimeError("An error was encountered.") from error


@dataclasses.dataclass(frozen=True)
class Fragile:
    """A model factory that notes which processes it is in, and does as flags say in a client's."""

    folder: Path
    here: int

    def __call__(self) -> Any:
        if os.getpid() != self.here:
            (self.folder / f"{os.getpid()} {os.getpgrp()}.process").touch()
            if os.getppid() != self.here:
                self._obey()
        return two_layers()

    def _obey(self) -> None:
        if (self.folder / "die").exists():
            (self.folder / "die").unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        if (self.folder / "hang").exists():
            (self.folder / "hanging").touch()
            time.sleep(3600)


def main(folder: str) -> None:
    """Lose a client's process, go on in a new simulation, and stay in the middle of a run."""
    place = Path(folder)
    source = small_federation((12,), model=Fragile(place, os.getpid()))
    with FlowerEngine(source) as engine:
        made = [losses(engine, 0)]
        (place / "die").touch()
        try:
            losses(engine, 1)
        except RunError as error:
            tell(str(error))
        tell([*made, losses(engine, 1)])
        tell([str(folder) for folder in engine.folders])
        (place / "hang").touch()
        losses(engine, 2)


def lonely_run(trial: int) -> Run:
    return Run("any", FedAvg(rounds=2, batch_size=4), (9,), base_seed=5, trial=trial)


def losses(engine: Any, trial: int) -> list[float]:
    (finished,) = engine.finished([lonely_run(trial)])
    return finished.history.loss.ravel().tolist()


def tell(what: Any) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()
