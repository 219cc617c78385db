"""The sections of a config, each a dataclass: what may be asked, with its default, said once.

A section is filled from a table of a TOML file, from options of the command line, or from keyword
arguments. Each of its fields has a reader, which takes what a value is called and the value, and
returns the value as it is used or raises an InputError. A field with a help is an option of the
command line.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from fedaccord._checks import check_choice, check_known, check_real, check_whole
from fedaccord._measures import read_measure
from fedaccord.errors import InputError
from fedaccord.federation.defection.tactic import FILLERS
from fedaccord.federation.runs.trials import PLANNING

if TYPE_CHECKING:
    from fedaccord.allocation import Allocation

Reader: TypeAlias = Callable[[str, Any], Any]
Section = TypeVar("Section")
Result = TypeVar("Result")
# What is asked of each client: for all algorithms, by their names, or in a file.
Plans: TypeAlias = "Allocation | Mapping[str, Allocation] | str | None"

# Readers.


def whole(least: int = 1) -> Reader:
    """Return a reader of whole numbers that are not too small."""
    return functools.partial(check_whole, least=least)


def real(**bounds: Any) -> Reader:
    """Return a reader of numbers within bounds, those of `check_real`."""
    return functools.partial(check_real, **bounds)


def choice(*known: str) -> Reader:
    """Return a reader of one of a few words."""
    return functools.partial(check_choice, known=known, hint=True)


def count_or_all(what: str, value: Any) -> int | str:
    """Return a whole number of one or more, or "all"; a number may be written as text."""
    if value == "all":
        return "all"
    number = int(value) if isinstance(value, str) and value.strip().isdecimal() else value
    return check_whole(what, number, expected='a whole number of 1 or more, or "all"')


def part_or_rest(what: str, value: Any) -> float | str:
    """Return a number between 0 and 1, or "rest"."""
    expected = 'a number above 0 and below 1, or "rest"'
    return (
        "rest" if value == "rest" else check_real(what, value, above=0, below=1, expected=expected)
    )


def text(what: str, value: Any) -> str:
    """Return a text that is not blank."""
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"{what} must be a text in quotes; got {value!r}")
    return value


def switch(what: str, value: Any) -> bool:
    """Return true or false."""
    if not isinstance(value, bool):
        raise InputError(f"{what} must be true or false; got {value!r}")
    return value


def list_of(one: Reader, length: int | None = None) -> Reader:
    """Return a reader of lists of such values, of a given length or at least one."""

    def read(what: str, value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list | tuple) or not value or length not in (None, len(value)):
            size = "one value or more" if length is None else f"{length} values"
            raise InputError(f"{what} must be a list of {size}, in brackets; got {value!r}")
        return tuple(one(f"each of {what}", entry) for entry in value)

    return read


def distinct(some: Reader) -> Reader:
    """Return a reader of lists in which no value comes twice."""

    def read(what: str, value: Any) -> tuple[Any, ...]:
        found: tuple[Any, ...] = some(what, value)
        for entry in found:
            if found.count(entry) > 1:
                shown = f"{entry:g}" if isinstance(entry, float) else entry
                raise InputError(f"{what} lists {shown} twice; list it once")
        return found

    return read


def one_or_each(one: Reader) -> Reader:
    """Return a reader of one value for all, or of a list with one each."""
    several = list_of(one)

    def read(what: str, value: Any) -> Any:
        return several(what, value) if isinstance(value, list | tuple) else one(what, value)

    return read


# What is done with sections.


def key(
    reader: Reader, default: Any = None, *, help: str | None = None, metavar: str | None = None
) -> Any:
    """Return a field of a section.

    reader: reads its value.
    default: what it is where it is left out.
    help: of the option of the command line; None for no option.
    metavar: how the help shows the option's value.
    """
    known = {"reader": reader, "help": help, "metavar": metavar}
    return dataclasses.field(default=default, metadata=known)


def read_section(section: type[Section], name: str, table: Any) -> Section:
    """Return a section filled from a table of a TOML file, or raise an InputError.

    section: a dataclass whose fields were made by `key`.
    name: what the section is called, such as "training".
    table: what the file has for it.
    """
    if not isinstance(table, Mapping):
        raise InputError(f"{name} must be a section, [{name}]; got {table!r}")
    readers = _readers(section)
    check_known(table, readers, f"[{name}] has no key")
    return section(**{k: readers[k](f"[{name}] {k}", value) for k, value in table.items()})


def override(section: Section, **options: Any) -> Section:
    """Return a section with options of the command line in place of its own values.

    section: the section.
    options: by the keys they override; None where an option was not given.
    """
    readers = _readers(section)
    given = {
        name: readers[name](f"--{name.replace('_', '-')}", value)
        for name, value in options.items()
        if value is not None
    }
    return dataclasses.replace(section, **given)  # type: ignore[type-var]


def _readers(section: Any) -> dict[str, Reader]:
    return {f.name: f.metadata["reader"] for f in dataclasses.fields(section)}


def takes(
    section: type[Any], **defaults: Any
) -> Callable[[Callable[..., Result]], Callable[..., Result]]:
    """Let a function that takes options=, a section, take each field as a keyword argument.

    An argument that neither has raises Python's TypeError. The fields are in the function's
    signature, and in its docstring in the place of `options`.

    section: a dataclass.
    defaults: those that the function has in place of the section's.
    """
    names = [f.name for f in dataclasses.fields(section)]

    def decorate(function: Callable[..., Result]) -> Callable[..., Result]:
        @functools.wraps(function)
        def call(*positional: Any, **given: Any) -> Result:
            own = {name: given.pop(name) for name in names if name in given}
            if "options" not in given:
                given["options"] = section(**{**defaults, **own})
            elif own:
                raise TypeError(f"{function.__name__}() got options= and {', '.join(own)}=")
            return function(*positional, **given)

        ours = [
            p.replace(kind=p.KEYWORD_ONLY, default=defaults.get(p.name, p.default))
            for p in inspect.signature(section).parameters.values()
        ]
        theirs = inspect.signature(function).parameters.values()
        shown = [one for p in theirs for one in (ours if p.name == "options" else [p])]
        call.__signature__ = inspect.signature(function).replace(parameters=shown)  # type: ignore[attr-defined]
        fields = inspect.cleandoc(section.__doc__ or "").partition("\n\n")[2]
        document = inspect.cleandoc(function.__doc__ or "")
        call.__doc__ = document.replace(f"options: {section.__name__}.", fields)
        return call

    return decorate


# Sections.

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
    categories: tuple[str, ...] = key(distinct(list_of(text)), ())
    without: tuple[str, ...] = key(distinct(list_of(text)), ())
    sites: tuple[str, ...] = key(distinct(list_of(text)), ())
    event: str | None = key(text)

    def __post_init__(self) -> None:
        """Raise an InputError at a kind of file without a file."""
        if self.source in ("npz", "csv") and self.path is None:
            raise InputError(f'[data] source = "{self.source}" needs a path to the file')


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
        """Raise an InputError at options of the other method."""
        others = self.TRIALS if self.method == "loss" else self.LOSS
        for name in others:
            if getattr(self, name) is not None:
                other = "trials" if self.method == "loss" else "loss"
                raise InputError(
                    f'[difficulty] {name} belongs to method = "{other}", but the method is '
                    f'"{self.method}"; leave it out'
                )

    @property
    def options(self) -> dict[str, Any]:
        """The options that were given, by the names that the method's function has for them."""
        values = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        return {k: v for k, v in values.items() if k not in ("method", "scores") and v is not None}


def measure_name(what: str, value: Any) -> str:
    """Return a measure as MEASURES spells it."""
    return read_measure(value, what)


@dataclass(frozen=True)
class GoalSettings:
    """[[agents.goals]]: what the agents want of one measure.

    measure: one of MEASURES.
    target: the least, or of a measure that falls the most, that they want; one for all or one each.
    threshold: of a sensitivity or specificity, on the probability of the positive class.
    group: which points count, by a column of the table, such as "age >= 75"; all where left out.
    name: what the goal is called; by its measure and group where left out.
    """

    measure: str = key(measure_name, "accuracy")
    target: float | tuple[float, ...] = key(one_or_each(real()), 0.7)
    threshold: float | None = key(real(above=0, below=1))
    group: str | None = key(text)
    name: str = key(text, "")


def goal_table(what: str, value: Any) -> GoalSettings:
    """Return a goal out of a table of a TOML file."""
    found = read_section(GoalSettings, "[agents.goals]", value)
    for name in ("measure", "target"):
        if name not in value:
            raise InputError(f"[[agents.goals]] has no {name}: give every goal its {name}")
    return found


@dataclass(frozen=True)
class AgentSettings:
    """[agents]: mixtures of hard and easy points; or, where the data have sites, the sites.

    mixtures: the hard part of each agent's points, 0 to 1.
    names: what the agents are called; by their mixtures where left out.
    points: of each agent, training and validation together; one for all or one each.
    validation: the part of them that is for validation; of sites, "rest" is for all samples of a
        site but its points, which all train.
    requirement: the accuracy the agents want, or the value of another measure; one for all or
        one each.
    measure: what the requirement is a value of.
    goals: what the agents want in several measures or for groups, instead of a requirement.
    hard, easy: from and to which percentile of difficulty points are hard, and easy.
    """

    mixtures: tuple[float, ...] = key(list_of(real(least=0, most=1)), (1.0, 0.9, 0.1, 0.0))
    names: tuple[str, ...] | None = key(distinct(list_of(text)))
    points: int | tuple[int, ...] = key(one_or_each(whole(0)), 2_000)
    validation: float | str = key(part_or_rest, 0.2)
    requirement: float | tuple[float, ...] = key(one_or_each(real(above=0, most=1)), 0.7)
    hard: tuple[float, float] = key(list_of(PERCENTILE, 2), (65.0, 85.0))
    easy: tuple[float, float] = key(list_of(PERCENTILE, 2), (45.0, 65.0))
    measure: str = key(measure_name, "accuracy")
    goals: tuple[GoalSettings, ...] = key(list_of(goal_table), ())

    @property
    def wanted(self) -> tuple[GoalSettings, ...]:
        """The goals; none where agents want an accuracy, which is their requirement."""
        if self.goals or self.measure == "accuracy":
            return self.goals
        return (GoalSettings(measure=self.measure, target=self.requirement),)

    def check_goals(self, given: Collection[str]) -> None:
        """Raise an InputError at goals that are given twice.

        given: the keys that the config has.
        """
        if not self.goals:
            return
        for name in ("requirement", "measure"):
            if f"agents.{name}" in given:
                raise InputError(
                    f"[agents] has both {name} and goals: leave {name} out, and give every goal "
                    "its measure and target"
                )

    def check_mixtures(self) -> None:
        """Raise an InputError at what does not fit the mixtures; sites are checked with data."""
        count = len(self.mixtures)
        if self.names is not None and len(self.names) != count:
            raise InputError(
                f"[agents] names has {len(self.names)} entries for {count} mixtures; give "
                "one name per mixture"
            )
        each = {"points": self.points, "requirement": self.requirement}
        each |= {f"goals: the target of {goal.measure}": goal.target for goal in self.goals}
        for name, value in each.items():
            if isinstance(value, tuple) and len(value) != count:
                raise InputError(
                    f"[agents] {name} has {len(value)} entries for {count} mixtures; give "
                    "one for all, or one per mixture"
                )
        check_bands(self.hard, self.easy, names=("[agents] hard", "[agents] easy"))


@dataclass(frozen=True)
class ModelSettings:
    """[model]: a network that `model_factory` knows."""

    name: str = key(choice("paper", "cnn", "mlp", "logistic", "linear"), "mlp")
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


KEPT_DATA = "Also count defectors that afterwards continue training on all their own data."
PROTOCOLS = ("P1", "P2")
DEFECTORS = ("each", "random")
SCORED_ON = (
    'Judge models on this many further samples per agent, or on "all" of them. Default: on the '
    "agents' validation samples."
)
LEVEL = distinct(list_of(real(above=0, most=1)))


@dataclass(frozen=True)
class AuditOptions:
    """[audit], the keyword arguments of `defection_curves`, and options of `fedaccord audit`.

    levels: L, above 0 and at most 1.
    trials: how many times everything is done, at most.
    protocol: "P1" or "P2".
    plan: theta, for all algorithms or by the algorithm's name; in a config, a file. An algorithm
        that has none is held under P1 to all points, and under P2 to its own: the different points
        it used of each client, on average over trials that are not among those counted.
    defectors: "each" client in every trial, or one at "random", every client equally often.
    width: stop a level as soon as the 95 % intervals of its shares are this narrow; all intervals
        then hold at every look.
    scored_on: judge the final models on this many further samples of each client, which nobody
        trains or validates on, so that chance in measuring hardly counts; "all" takes as many as
        there are. Where left out, models are judged on the clients' validation samples.
    kept_data: whether defectors go on alone when training has ended, once with the samples that
        they gave and once with all that they have.
    filler: with what a defector fills its pledge up: "copies" of its samples, samples with
        shuffled "labels", "noise", or no samples at all: "idle" returns the model that it got,
        "random" adds noise to it. Nothing where left out.
    group: how many agents defect together.
    detect_copies: whether copies are found by their hashes, and count for nothing.
    seed: the random seed.
    """

    levels: tuple[float, ...] = key(
        LEVEL,
        (1.0, 0.75, 0.5, 0.25, 0.05),
        help="Fractions that a defector gives. Default: 1,.75,.5,.25,.05.",
    )
    trials: int = key(whole(), 20, help="Number of trials.", metavar="N")
    protocol: str = key(
        choice(*PROTOCOLS),
        "P1",
        help="P1: a defector gives part of its data. P2: part of what the plan asks.",
    )
    plan: Plans = key(  # noqa: RUF009
        text,
        help="The plan: the contribution asked of each agent.",
        metavar="ALLOCATION.(json|csv)",
    )
    defectors: str = key(
        choice(*DEFECTORS),
        "each",
        help="Which agents defect: each agent in every trial, or one at random.",
    )
    width: float | None = key(
        real(above=0, below=1),
        help="Stop a level once its 95 % intervals are this narrow.",
        metavar="W",
    )
    scored_on: str | int | None = key(count_or_all, help=SCORED_ON, metavar="N")
    kept_data: bool = key(switch, False, help=KEPT_DATA)
    filler: str | None = key(
        choice(*FILLERS),
        help="How a defector fakes the rest of its contribution: copies, labels, noise, idle or "
        "random.",
        metavar="WHAT",
    )
    group: int = key(whole(), 1, help="Number of agents that defect together.", metavar="N")
    detect_copies: bool = key(
        switch, False, help="Find copies by their hashes and do not count them."
    )
    seed: int = key(whole(0), 0, help="Random seed.", metavar="N")

    def __post_init__(self) -> None:
        """Raise an InputError at what no audit could be asked."""
        if self.filler is not None:
            check_choice("filler", self.filler, FILLERS)
        if self.detect_copies and self.filler != "copies":
            raise InputError('detect_copies needs filler = "copies"; leave it out otherwise')
        check_whole("group", self.group)
        if self.scored_on is not None:
            object.__setattr__(self, "scored_on", count_or_all("scored_on", self.scored_on))
        object.__setattr__(self, "levels", check_levels(self.levels))
        check_whole("trials", self.trials, most=PLANNING)
        check_choice("protocol", self.protocol, PROTOCOLS)
        check_choice("defectors", self.defectors, DEFECTORS)
        if self.width is not None:
            expected = "between 0 and 1, the width of the interval"
            check_real("width", self.width, above=0, below=1, expected=expected)
        check_whole("seed", self.seed, least=0, expected="a whole number, zero or more")


def check_levels(levels: Any) -> tuple[float, ...]:
    """Return levels that are parts of a contribution, each once, or raise an InputError."""
    expected = (
        "a number above 0 and at most 1, the fraction of its contribution that a defector gives"
    )
    found: list[float] = []
    for level in levels:
        found.append(check_real("a level", level, above=0, most=1, expected=expected))
        if found.count(found[-1]) > 1:
            raise InputError(f"the level {level:g} appears twice; give it once")
    if not found:
        raise InputError("the audit has no level; give at least one, such as 0.25")
    return tuple(found)


@dataclass(frozen=True)
class FrontierOptions:
    """[frontier], keyword arguments of `compare_algorithms`, and options of `fedaccord frontier`.

    levels: what part a defector gives; that of the goals must be among them.
    trials: how many times everything is done.
    defectors: "each" client in every trial, or one at "random".
    scored_on: judge the final models on this many further samples of each client, or on "all" that
        there are, as `defection_curves` does.
    seed: the random seed; in a config that leaves it out, the audit's.
    baseline: whose samples the others' are counted against; the first FedAvg where left out, or
        the first algorithm.
    pilots: how many pilots a measured plan may take.
    seeking: how many runs EQ-FED may take.
    probability: with which all are to be satisfied under a measured plan.
    prefer: which equilibrium a measured plan is: the smallest "total", or "firm": the stable plan
        in which defectors lose most.
    all_reach: the first criterion: all agents reach their goals in at least this share of runs.
    defector_reaches: the second criterion: a contributor that gives less than the plan asks reaches
        its goal in at most this share of runs.
    defector_gives: the part of what the plan asks that this contributor gives.
    others_reach: the third criterion: all the others reach their goals then in at least this share
        of runs.
    samples_used: the last criterion: at most this share of the baseline's samples is used.
    kept_data: whether defectors continue training alone afterwards, as in an audit.
    group: if above 1, as many agents defect together in a further audit by P2.
    fillers: how defectors fake the rest of their contributions, in a further audit by P2 for each.
    detect_copies: whether copies among the fillers are found by their hashes, and do not count.
    """

    levels: tuple[float, ...] = key(
        LEVEL,
        (1.0, 0.75, 0.5, 0.25),
        help="Fractions that a defector gives. Default: 1,.75,.5,.25.",
    )
    trials: int = key(whole(), 30, help="Number of trials.", metavar="N")
    defectors: str = key(
        choice(*DEFECTORS),
        "each",
        help="Which agents defect: each agent in every trial, or one at random.",
    )
    scored_on: str | int | None = key(count_or_all, help=SCORED_ON, metavar="N")
    seed: int | None = key(whole(0), help="Random seed.", metavar="N")
    baseline: str | None = key(text)
    pilots: int | None = key(whole(), help="Budget of pilots for a measured plan.", metavar="N")
    seeking: int | None = key(
        whole(), help="Budget of training runs for a sought plan.", metavar="N"
    )
    probability: float = key(real(above=0, below=1), 0.95)
    prefer: str = key(choice("total", "firm"), "total")
    all_reach: float = key(real(above=0, most=1), 0.95)
    defector_reaches: float = key(real(least=0, most=1), 0.10)
    defector_gives: float = key(real(above=0, below=1), 0.25)
    others_reach: float = key(real(above=0, most=1), 0.90)
    samples_used: float = key(real(above=0), 0.50)
    kept_data: bool = key(switch, False, help=KEPT_DATA)
    group: int = key(
        whole(), 1, help="Also train with this many agents that defect together.", metavar="N"
    )
    fillers: tuple[str, ...] = key(distinct(list_of(choice(*FILLERS))), ())
    detect_copies: bool = key(switch, False)

    def __post_init__(self) -> None:
        """Raise an InputError at copies to detect where nobody makes copies."""
        if self.detect_copies and "copies" not in self.fillers:
            raise InputError('detect_copies needs fillers = ["copies"]; leave it out otherwise')


SECTIONS: dict[str, type[Any]] = {
    "data": DataSettings,
    "pools": PoolSettings,
    "difficulty": DifficultySettings,
    "agents": AgentSettings,
    "model": ModelSettings,
    "pretraining": PretrainingSettings,
    "audit": AuditOptions,
    "frontier": FrontierOptions,
}
# Keys whose values are files, relative to the config's own folder.
FILES = {
    "data": ("path",),
    "difficulty": ("scores",),
    "pretraining": ("weights",),
    "audit": ("plan",),
    "algorithms.NAME": ("plan",),
}


def check_bands(
    hard: tuple[float, float], easy: tuple[float, float], *, names: tuple[str, str]
) -> None:
    """Raise an InputError at bands of percentiles that are reversed or overlap."""
    for name, (low, high) in zip(names, (hard, easy), strict=True):
        if not 0 <= low < high <= 100:
            raise InputError(
                f"{name} must go from a lower to a higher percentile between 0 and 100; "
                f"got {low:g} to {high:g}"
            )
    if easy[1] > hard[0]:
        raise InputError(
            f"{names[1]} ends at {easy[1]:g} and {names[0]} begins at {hard[0]:g}: the two "
            "bands must not overlap"
        )
