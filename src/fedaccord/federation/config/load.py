"""A federation and its algorithms out of a TOML file, checked key by key.

Every section and every key may be left out; the defaults are the paper's where it has one. A file
may begin with extends = "other.toml": what it does not have is then as the other file has it.

    [data]            what is learnt: digits, emnist, fashion-mnist, an npz file or a CSV table
    [pools]           how the points are divided before agents get theirs
    [difficulty]      how points are told to be hard or easy
    [agents]          who takes part, with how many points, and what each wants
    [model]           the network
    [pretraining]     what the network has seen before
    [training]        what all algorithms share
    [algorithms.NAME] the algorithms, with what is their own
    [audit]           levels, trials and the protocol of an audit of defection
    [frontier]        levels, trials and how plans are made where algorithms are compared

Nothing here needs torch, until `build` is called.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedaccord._io.atomic import read_text
from fedaccord._lazy import imported
from fedaccord.errors import InputError
from fedaccord.federation.algorithms import ALGORITHMS, algorithm_class
from fedaccord.federation.algorithms.base import Algorithm
from fedaccord.federation.config.settings import (
    check_bands,
    check_known,
    choice,
    distinct,
    key,
    listed,
    one_or_each,
    read_section,
    real,
    text,
    whole,
)
from fedaccord.federation.data.idx import FOLDER

if TYPE_CHECKING:
    from fedaccord.federation.runs.engines import Source

DEFAULT = "digits.toml"
SOURCES = ("digits", "emnist", "fashion-mnist", "npz", "csv")
PERCENTILE = real(least=0, most=100)
# How an algorithm's plan is made; anything else is a file that has it.
PLANS = ("own", "all", "measured", "sought")


@dataclass(frozen=True)
class DataSettings:
    """[data]: the keys are those of `load_data`; for npz and csv, path names the file."""

    source: str = key(choice(*SOURCES), "digits")
    path: str | None = key(text)
    label: str | None = key(text)
    site: str | None = key(text)
    label_above: float | None = key(real())
    categories: tuple[str, ...] = key(distinct(listed(text)), ())
    without: tuple[str, ...] = key(distinct(listed(text)), ())

    def __post_init__(self) -> None:
        """Refuse a kind of file without a file."""
        if self.source in ("npz", "csv") and self.path is None:
            raise InputError(f'[data] source = "{self.source}" needs a path, the file to read')


@dataclass(frozen=True)
class PoolSettings:
    """[pools]: how many points go where, drawn at random with a seed of their own.

    pretraining: to pre-train on, and to train the network on that scores difficulty by loss; a
        quarter of all where left out, at most the paper's 30,000.
    validation: to measure accuracy on beforehand; a tenth of all where left out, at most 10,000.
    agents: for the agents; all the others where left out.
    seed: of the division, of pre-training and of difficulty.
    """

    pretraining: int | None = key(whole(0))
    validation: int | None = key(whole(0))
    agents: int | None = key(whole())
    seed: int = key(whole(0), 0)


@dataclass(frozen=True)
class DifficultySettings:
    """[difficulty]: a method and its options, those of `loss_scores` and `trial_scores`.

    scores: a file of scores made before, instead of a method.
    """

    method: str = key(choice("loss", "trials"), "loss")
    scores: str | None = key(text)
    batch_size: int | None = key(whole())
    learning_rate: float | None = key(real(above=0))
    until: float | None = key(real(above=0, most=1))
    batches: int | None = key(whole())
    holdout: int | None = key(whole())
    trials: int | None = key(whole())
    points: int | None = key(whole())
    target: float | None = key(real(above=0, most=1))
    cap: int | None = key(whole())
    look_every: int | None = key(whole())

    # What only one of the methods has.
    LOSS = ("until", "batches", "holdout")
    TRIALS = ("trials", "points", "target", "cap", "look_every")

    def __post_init__(self) -> None:
        """Refuse options of the other method."""
        others = self.TRIALS if self.method == "loss" else self.LOSS
        for name in others:
            if getattr(self, name) is not None:
                other = "trials" if self.method == "loss" else "loss"
                raise InputError(
                    f'[difficulty] {name} is for method = "{other}", and the method is '
                    f'"{self.method}"; leave it out'
                )

    @property
    def options(self) -> dict[str, Any]:
        """The options that were given, by the names that the method's function has for them."""
        values = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        return {k: v for k, v in values.items() if k not in ("method", "scores") and v is not None}


@dataclass(frozen=True)
class AgentSettings:
    """[agents]: mixtures of hard and easy points; or, where the data have sites, the sites.

    mixtures: the hard part of each agent's points, 0 to 1.
    names: what the agents are called; by their mixtures where left out.
    points: of each agent, training and validation together; one for all or one each.
    validation: the part of them that is for validation.
    requirement: the accuracy the agents want; one for all or one each.
    hard, easy: from and to which percentile of difficulty points are hard, and easy.
    """

    mixtures: tuple[float, ...] = key(listed(real(least=0, most=1)), (1.0, 0.9, 0.1, 0.0))
    names: tuple[str, ...] | None = key(distinct(listed(text)))
    points: int | tuple[int, ...] = key(one_or_each(whole(0)), 2_000)
    validation: float = key(real(above=0, below=1), 0.2)
    requirement: float | tuple[float, ...] = key(one_or_each(real(above=0, most=1)), 0.7)
    hard: tuple[float, float] = key(listed(PERCENTILE, 2), (65.0, 85.0))
    easy: tuple[float, float] = key(listed(PERCENTILE, 2), (45.0, 65.0))

    def check_mixtures(self) -> None:
        """Refuse what does not fit the mixtures; of sites, only their data tell what does."""
        count = len(self.mixtures)
        if self.names is not None and len(self.names) != count:
            raise InputError(
                f"[agents] names lists {len(self.names)} for {count} mixtures; give one each"
            )
        for name in ("points", "requirement"):
            value = getattr(self, name)
            if isinstance(value, tuple) and len(value) != count:
                raise InputError(
                    f"[agents] {name} lists {len(value)} for {count} mixtures; give one for all or "
                    "one each"
                )
        check_bands(self.hard, self.easy, names=("[agents] hard", "[agents] easy"))


@dataclass(frozen=True)
class ModelSettings:
    """[model]: a network that `model_factory` knows."""

    name: str = key(choice("paper", "cnn", "mlp", "logistic"), "mlp")
    engine: str = key(choice("auto", "native", "torch", "eager"), "auto")


@dataclass(frozen=True)
class PretrainingSettings:
    """[pretraining]: the options of `pretrain`, or weights made before.

    batches: how many batches; 0 for no pre-training.
    weights: a file of weights made before, instead of pre-training.
    """

    batches: int = key(whole(0), 75)
    batch_size: int = key(whole(), 64)
    learning_rate: float = key(real(above=0), 0.002)
    until: float | None = key(real(above=0, most=1))
    look_every: int = key(whole(), 25)
    weights: str | None = key(text)


@dataclass(frozen=True)
class AuditSettings:
    """[audit]: the arguments of `defection_curves`.

    plan: a file with the allocation that P2 prescribes.
    """

    protocol: str = key(choice("P1", "P2"), "P1")
    levels: tuple[float, ...] = key(
        distinct(listed(real(above=0, most=1))), (1.0, 0.75, 0.5, 0.25, 0.05)
    )
    trials: int = key(whole(), 20)
    defectors: str = key(choice("each", "random"), "each")
    width: float | None = key(real(above=0, below=1))
    seed: int = key(whole(0), 0)
    plan: str | None = key(text)


@dataclass(frozen=True)
class FrontierSettings:
    """[frontier]: how algorithms are compared, each with its plan.

    levels: what part a defector gives.
    trials: how often everything is done.
    defectors: "each" agent in every trial, or one at "random".
    seed: of deals and runs; the audit's where left out.
    baseline: the algorithm whose samples the others' are counted against; the first FedAvg where
        left out.
    pilots: how many pilots a measured plan may take.
    seeking: how many runs the search for an equilibrium may take.
    probability: with which all are to be satisfied under a plan that is measured.
    prefer: which equilibrium a measured plan is: the least "total", or the "firm" one, whose
        contributors are least able to cut.
    """

    levels: tuple[float, ...] = key(distinct(listed(real(above=0, most=1))), (1.0, 0.75, 0.5, 0.25))
    trials: int = key(whole(), 30)
    defectors: str = key(choice("each", "random"), "each")
    seed: int | None = key(whole(0))
    baseline: str | None = key(text)
    pilots: int | None = key(whole())
    seeking: int | None = key(whole())
    probability: float = key(real(above=0, below=1), 0.95)
    prefer: str = key(choice("total", "firm"), "total")


SECTIONS: dict[str, type[Any]] = {
    "data": DataSettings,
    "pools": PoolSettings,
    "difficulty": DifficultySettings,
    "agents": AgentSettings,
    "model": ModelSettings,
    "pretraining": PretrainingSettings,
    "audit": AuditSettings,
    "frontier": FrontierSettings,
}
# Keys whose values are files, relative to the config's own folder.
FILES = {
    "data": ("path",),
    "difficulty": ("scores",),
    "pretraining": ("weights",),
    "audit": ("plan",),
    "algorithms.NAME": ("plan",),
}


@dataclass(frozen=True)
class Config:
    """A federation, the algorithms to train it with, and how to audit and compare them.

    data, pools, difficulty, agents, model, pretraining, audit, frontier: the sections.
    algorithms: by the names they are shown under.
    plans: how each algorithm's plan is made, by the same names: one of PLANS, or a file.
    given: the keys that the file has, such as "agents.mixtures".
    """

    data: DataSettings
    pools: PoolSettings
    difficulty: DifficultySettings
    agents: AgentSettings
    model: ModelSettings
    pretraining: PretrainingSettings
    algorithms: Mapping[str, Algorithm]
    plans: Mapping[str, str]
    audit: AuditSettings
    frontier: FrontierSettings
    given: frozenset[str] = dataclasses.field(repr=False)

    def __post_init__(self) -> None:
        """Refuse agents that cannot be mixed, if they are to be."""
        # An npz file may have sites without being asked for them.
        may_have_sites = self.data.source == "npz" and "agents.mixtures" not in self.given
        if self.data.site is None and not may_have_sites:
            self.agents.check_mixtures()

    @classmethod
    def load(cls, path: str | Path) -> Config:
        """Read a TOML file; relative paths in it start from its own folder."""
        with _told_of(path):
            return cls._of(read_tables(path))

    @classmethod
    def default(cls) -> Config:
        """Give the built-in federation: handwritten digits, in reach of everybody."""
        file = resources.files("fedaccord.federation") / DEFAULT
        return cls.parse(file.read_text(encoding="utf-8"))

    @classmethod
    def parse(cls, toml: str, *, folder: Path | None = None) -> Config:
        """Read the text of a TOML file.

        toml: the text.
        folder: where relative paths start from; the current folder where left out.
        """
        return cls._of(_with_base(_parsed(toml), folder))

    @classmethod
    def _of(cls, tables: Mapping[str, Any]) -> Config:
        check_known(tables, (*SECTIONS, "training", "algorithms", "extends"), "there is no section")
        sections = {
            name: read_section(kind, name, tables.get(name, {})) for name, kind in SECTIONS.items()
        }
        algorithms = read_algorithms(tables.get("algorithms"), tables.get("training", {}))
        plans = {n: _read_plan(n, tables.get("algorithms", {}).get(n, {})) for n in algorithms}
        given = frozenset(f"{name}.{k}" for name in SECTIONS for k in tables.get(name, {}))
        return cls(**sections, algorithms=algorithms, plans=plans, given=given)

    def build(self, *, seed: int | None = None) -> Source:
        """Give what deals a federation to each trial; this reads data, trains, and needs torch.

        seed: of the deals; the audit's where left out.
        """
        building = imported("fedaccord.federation.config.build").Building(self)
        source: Source = building.source(self.audit.seed if seed is None else seed)
        return source

    def to_dict(self) -> dict[str, Any]:
        """Give every setting, by section; algorithms and their plans by name."""
        plain = {name: dataclasses.asdict(getattr(self, name)) for name in SECTIONS}
        algorithms = {n: a.to_dict() for n, a in self.algorithms.items()}
        return {**plain, "algorithms": algorithms, "plans": dict(self.plans)}


# A longer chain is a mistake.
MOST_EXTENDED = 20


def read_tables(path: str | Path, *, extended_by: tuple[str, ...] = ()) -> dict[str, Any]:
    """Read the tables of a TOML file, with those that it takes over from the file it extends.

    path: the file.
    extended_by: the files that led here, none of which it may extend in turn.
    """
    with _told_of(path):
        folder, line = Path(path).parent, (*extended_by, os.path.realpath(path))
        return _with_base(_parsed(read_text(path)), folder, line)


def _with_base(
    tables: dict[str, Any], folder: Path | None, line: tuple[str, ...] = ()
) -> dict[str, Any]:
    """Put tables over those of the file they extend, and files where they are looked for."""
    placed = {name: _placed_files(name, table, folder) for name, table in tables.items()}
    base = placed.pop("extends", None)
    if base is None:
        return placed
    path = (folder or Path()) / _expanded(text("extends", base))
    if os.path.realpath(path) in line:
        raise InputError(f'extends = "{base}" leads back to a file that extends it; take one out')
    if len(line) > MOST_EXTENDED:
        raise InputError(f"more than {MOST_EXTENDED} files extend one another; take some out")
    below = read_tables(path, extended_by=line)
    # A fault of that file is told with its name.
    with _told_of(path):
        Config._of(below)
    return _merged(below, placed)


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Lay a table over another: tables in both are merged in turn, other values replaced."""
    both = {
        name: _merged(below[name], value)
        for name, value in above.items()
        if isinstance(value, Mapping) and isinstance(below.get(name), Mapping)
    }
    return {**below, **above, **both}


def _placed_files(section: str, table: Any, folder: Path | None) -> Any:
    """Give a section with its files where they are looked for; what is no text is told later."""
    if not isinstance(table, Mapping):
        return table
    if section == "algorithms":
        return {name: _placed_files("algorithms.NAME", own, folder) for name, own in table.items()}
    words = PLANS if section == "algorithms.NAME" else ()
    found = {
        name: _placed(table[name], folder)
        for name in FILES.get(section, ())
        if isinstance(table.get(name), str) and table[name].strip() and table[name] not in words
    }
    return {**table, **found}


@contextlib.contextmanager
def _told_of(path: str | Path) -> Iterator[None]:
    """Say in which file a fault is, where it is not said yet."""
    try:
        yield
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path} is not TOML: {error}") from None
    except InputError as error:
        sentence = str(error)
        raise InputError(sentence if str(path) in sentence else f"{path}: {sentence}") from None


def _parsed(toml: str) -> dict[str, Any]:
    try:
        return tomllib.loads(toml)
    except tomllib.TOMLDecodeError:
        raise
    except RecursionError:
        raise InputError("brackets are nested too deeply for a config; close them") from None
    except ValueError as error:
        # Python reads no whole number of thousands of digits.
        raise InputError(f"a value cannot be read ({error})") from None


def _expanded(path: str) -> Path:
    """Give a path with ~ put in full, or say why it is none."""
    try:
        if "\0" not in path:
            return Path(path).expanduser()
    except RuntimeError as error:
        raise InputError(f"{path!r} is no path ({error}); write it in full") from None
    raise InputError(f"{path!r} is no path: it has a character of code 0; take it out")


def _placed(path: str, folder: Path | None) -> str:
    """Give a file's place: beside the config, or in the data folder if it is only there."""
    if folder is None:
        return path
    beside = folder / _expanded(path)
    shelf = os.environ.get(FOLDER)
    if shelf and not beside.exists() and (Path(shelf) / path).exists():
        return str(Path(shelf) / path)
    return str(beside)


def read_algorithms(tables: Any, shared: Any) -> dict[str, Algorithm]:
    """Make the algorithms of a config: FedAvg and MW-FED where it names none.

    tables: [algorithms], a table per name.
    shared: [training], which each table's own keys override.
    """
    common = {f.name for f in dataclasses.fields(Algorithm)}
    if not isinstance(shared, Mapping):
        raise InputError(f"training must be a section, [training]; got {shared!r}")
    check_known(shared, sorted(common), "[training] has no key")
    _made(Algorithm, "training", shared)
    if tables is None:
        tables = {"FedAvg": {}, "MW-FED": {}}
    if not isinstance(tables, Mapping) or not tables:
        raise InputError("[algorithms] must have a section for each, such as [algorithms.FedAvg]")
    return {name: _read_algorithm(name, table, shared) for name, table in tables.items()}


def _read_algorithm(name: str, table: Any, shared: Mapping[str, Any]) -> Algorithm:
    section = f"algorithms.{name}"
    if not name.strip():
        raise InputError("an algorithm in [algorithms] has no name; give it one")
    if not isinstance(table, Mapping):
        raise InputError(f"{section} must be a section, [{section}]; got {table!r}")
    by_name = {name.casefold(): kind for kind, (name, *_) in ALGORITHMS.items()}
    word = table.get("kind", by_name.get(name.casefold()))
    if word is None:
        known = ", ".join(ALGORITHMS)
        raise InputError(f'[{section}] needs a kind, one of {known}: kind = "fedavg"')
    kind = algorithm_class(choice(*ALGORITHMS)(f"[{section}] kind", word))
    own = {k: v for k, v in table.items() if k not in ("kind", "plan")}
    known = [*(f.name for f in dataclasses.fields(kind)), "plan"]
    check_known(own, known, f"[{section}] has no key")
    return _made(kind, section, {**shared, **own})


def _read_plan(name: str, table: Mapping[str, Any]) -> str:
    return text(f"[algorithms.{name}] plan", table["plan"]) if "plan" in table else PLANS[0]


def _made(kind: type[Algorithm], section: str, values: Mapping[str, Any]) -> Algorithm:
    try:
        return kind(**values)
    except InputError as error:
        raise InputError(f"[{section}] {error}") from None
