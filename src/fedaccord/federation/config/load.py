"""A federation and its algorithms out of a TOML file, checked key by key.

Every section and every key may be left out; the defaults are the paper's where it has one. A file
may begin with extends = "other.toml": what it does not have is then as the other file has it.

    [data]            what is learnt: digits, emnist, fashion-mnist, an npz file or a CSV table
    [pools]           how the points are divided before agents get theirs
    [difficulty]      how points are found to be hard or easy
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
import pkgutil
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedaccord._checks import check_choice, check_known
from fedaccord._io.files import read_text
from fedaccord._lazy import imported
from fedaccord.errors import InputError
from fedaccord.federation.algorithms import ALGORITHMS
from fedaccord.federation.algorithms.base import Algorithm
from fedaccord.federation.config.sections import (
    FILES,
    PLANS,
    SECTIONS,
    AgentSettings,
    AuditOptions,
    DataSettings,
    DifficultySettings,
    FrontierOptions,
    ModelSettings,
    PoolSettings,
    PretrainingSettings,
    read_section,
    text,
)
from fedaccord.federation.data.idx import FOLDER

if TYPE_CHECKING:
    from fedaccord.federation.runs.execute import Source

DEFAULT = "digits.toml"
# A longer chain is a mistake.
MOST_EXTENDED = 20


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
    audit: AuditOptions
    frontier: FrontierOptions
    given: frozenset[str] = dataclasses.field(repr=False)

    def __post_init__(self) -> None:
        """Raise an InputError at agents that cannot be mixed, if they are to be."""
        # An npz file may have sites without being asked for them.
        self.agents.check_goals(self.given)
        may_have_sites = self.data.source == "npz" and "agents.mixtures" not in self.given
        if self.data.site is None and not may_have_sites:
            self.agents.check_mixtures()

    @classmethod
    def load(cls, path: str | Path) -> Config:
        """Read a TOML file; relative paths in it start from its own folder."""
        with _name_file(path):
            return cls._of(read_tables(path))

    @classmethod
    def default(cls) -> Config:
        """Return the built-in federation: handwritten digits, in reach of everybody."""
        file = resources.files("fedaccord.federation") / DEFAULT
        return cls.parse(file.read_text(encoding="utf-8"))

    @classmethod
    def parse(cls, toml: str, *, folder: Path | None = None) -> Config:
        """Read the text of a TOML file.

        toml: the text.
        folder: where relative paths start from; the current folder where left out.
        """
        return cls._of(_add_base(_parse(toml), folder))

    @classmethod
    def _of(cls, tables: Mapping[str, Any]) -> Config:
        check_known(tables, (*SECTIONS, "training", "algorithms", "extends"), "there is no section")
        sections = {
            name: read_section(kind, name, tables.get(name, {})) for name, kind in SECTIONS.items()
        }
        algorithms = read_algorithms(tables.get("algorithms"), tables.get("training", {}))
        own = {name: tables.get("algorithms", {}).get(name, {}) for name in algorithms}
        plans = {
            name: text(f"[algorithms.{name}] plan", table.get("plan", PLANS[0]))
            for name, table in own.items()
        }
        given = frozenset(f"{name}.{k}" for name in SECTIONS for k in tables.get(name, {}))
        return cls(**sections, algorithms=algorithms, plans=plans, given=given)

    def build(self, *, seed: int | None = None) -> Source:
        """Return what deals a federation to each trial; this reads data, trains, and needs torch.

        seed: of the deals; the audit's where left out.
        """
        building = imported("fedaccord.federation.config.build").Building(self)
        source: Source = building.source(self.audit.seed if seed is None else seed)
        return source

    def to_dict(self) -> dict[str, Any]:
        """Return every setting, by section; algorithms and their plans by name."""
        plain = {name: dataclasses.asdict(getattr(self, name)) for name in SECTIONS}
        algorithms = {n: a.to_dict() for n, a in self.algorithms.items()}
        return {**plain, "algorithms": algorithms, "plans": dict(self.plans)}


def read_tables(path: str | Path, *, extended_by: tuple[str, ...] = ()) -> dict[str, Any]:
    """Read the tables of a TOML file, with those that it takes over from the file it extends.

    path: the file.
    extended_by: the files that led here, none of which it may extend in turn.
    """
    with _name_file(path):
        folder, line = Path(path).parent, (*extended_by, os.path.realpath(path))
        return _add_base(_parse(read_text(path)), folder, line)


def _add_base(
    tables: dict[str, Any], folder: Path | None, line: tuple[str, ...] = ()
) -> dict[str, Any]:
    """Put tables over those of the file they extend, and files where they are looked for."""
    placed = {name: _locate_files(name, table, folder) for name, table in tables.items()}
    base = placed.pop("extends", None)
    if base is None:
        return placed
    path = (folder or Path()) / _expand(text("extends", base))
    if os.path.realpath(path) in line:
        raise InputError(f'extends = "{base}" leads back to a file that extends it; take one out')
    if len(line) > MOST_EXTENDED:
        raise InputError(f"more than {MOST_EXTENDED} files extend one another; take some out")
    below = read_tables(path, extended_by=line)
    # A fault of that file is told with its name.
    with _name_file(path):
        Config._of(below)
    return _merge(below, placed)


def _merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Lay a table over another: tables in both are merged in turn, other values replaced."""
    both = {
        name: _merge(below[name], value)
        for name, value in above.items()
        if isinstance(value, Mapping) and isinstance(below.get(name), Mapping)
    }
    return {**below, **above, **both}


def _locate_files(section: str, table: Any, folder: Path | None) -> Any:
    """Return a section with its files located; values that are not texts are refused later."""
    if not isinstance(table, Mapping):
        return table
    if section == "algorithms":
        return {name: _locate_files("algorithms.NAME", own, folder) for name, own in table.items()}
    words = PLANS if section == "algorithms.NAME" else ()
    found = {
        name: _locate(table[name], folder)
        for name in FILES.get(section, ())
        if isinstance(table.get(name), str) and table[name].strip() and table[name] not in words
    }
    return {**table, **found}


@contextlib.contextmanager
def _name_file(path: str | Path) -> Iterator[None]:
    """Name the file in a fault's sentence, where it is not named yet."""
    try:
        yield
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path} is not TOML: {error}") from None
    except InputError as error:
        sentence = str(error)
        raise InputError(sentence if str(path) in sentence else f"{path}: {sentence}") from None


def _parse(toml: str) -> dict[str, Any]:
    try:
        return tomllib.loads(toml)
    except tomllib.TOMLDecodeError:
        raise
    except RecursionError:
        raise InputError("brackets are nested too deeply for a config; close them") from None
    except ValueError as error:
        # Python reads no whole number of thousands of digits.
        raise InputError(f"a value cannot be read ({error})") from None


def _expand(path: str) -> Path:
    """Return a path with ~ put in full, or say why it is none."""
    try:
        if "\0" not in path:
            return Path(path).expanduser()
    except RuntimeError as error:
        raise InputError(f"{path!r} is not a path ({error}); write it in full") from None
    raise InputError(f"{path!r} is not a path: it has a character of code 0; take it out")


def _locate(path: str, folder: Path | None) -> str:
    """Return a file's place: in the config's folder, or in the data folder if only there."""
    if folder is None:
        return path
    beside = folder / _expand(path)
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
    _make_algorithm(Algorithm, "training", shared)
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
        kinds = ", ".join(ALGORITHMS)
        raise InputError(f'[{section}] needs a kind, one of {kinds}: kind = "fedavg"')
    word = check_choice(f"[{section}] kind", word, tuple(ALGORITHMS), hint=True)
    kind: type[Algorithm] = pkgutil.resolve_name(ALGORITHMS[word][1])
    own = {k: v for k, v in table.items() if k not in ("kind", "plan")}
    known = [*(f.name for f in dataclasses.fields(kind)), "plan"]
    check_known(own, known, f"[{section}] has no key")
    return _make_algorithm(kind, section, {**shared, **own})


def _make_algorithm(kind: type[Algorithm], section: str, values: Mapping[str, Any]) -> Algorithm:
    try:
        return kind(**values)
    except InputError as error:
        raise InputError(f"[{section}] {error}") from None
