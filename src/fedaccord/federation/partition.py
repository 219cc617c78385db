"""From a pool of samples, or from sites, to a federation: every trial has its own partition."""

from __future__ import annotations

import copy
import dataclasses
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedaccord._checks import Indices, Vector, as_numbers, check_choice, check_whole, frozen
from fedaccord.errors import FedaccordError, InputError
from fedaccord.federation.algorithms.base import Counts
from fedaccord.federation.clients import Client, Federation, Weights
from fedaccord.federation.data.dataset import Dataset, Preparation
from fedaccord.federation.data.pretraining import ModelMaker
from fedaccord.federation.training.rng import stream

if TYPE_CHECKING:
    from fedaccord.federation.goals import ClientGoal, GoalRule, Mask
    from fedaccord.federation.runs.execute import Source

HALVES = ("first", "second")
# Validates on all points of a site that do not train.
REST = "rest"
# All hard, 90 % hard, 90 % easy and all easy: the paper's four.
MIXTURES = (1.0, 0.9, 0.1, 0.0)


class Dealing:
    """What both dealers do with the places of points that they deal."""

    names: tuple[str, ...]
    requirements: Vector
    model: ModelMaker
    weights: Weights | None
    rules: tuple[GoalRule, ...]

    def indices(self, trial: int) -> list[tuple[Indices, Indices]]:
        """Return the places of every client's training and validation points."""
        raise NotImplementedError

    def count_further(self) -> Counts:
        """Return how many further points of its distribution the data have for each client."""
        raise NotImplementedError

    def further_indices(self, trial: int, count: int) -> list[Indices]:
        """Return the places of further points of each client's distribution.

        Nobody trains or validates on them in this trial. Two clients may have some in common,
        since they are only looked at.

        trial: which one, from 0.
        count: how many for each client, at most what `count_further` says.
        """
        raise NotImplementedError

    @property
    def _parts(self) -> tuple[Dataset, int, tuple[Any, ...]]:
        """The data, how many points are hard, and all options that the deals depend on."""
        raise NotImplementedError

    def deal(self, trial: int, *, scored: int = 0) -> Federation:
        """Return the federation of a trial, always the same for a trial.

        trial: which one, from 0.
        scored: on how many further points each client's final model is to be judged; what clients
            train and validate on does not depend on it.
        """
        data, dealt = self._parts[0], self.indices(trial)
        further: list[Indices] | None = None
        if scored:
            further = self.further_indices(trial, scored)
            check_apart(dealt, further, self.names)
        training = np.concatenate([train for train, _ in dealt])
        preparation = Preparation.fit(data.inputs[training], data.columns)

        def points(places: Indices) -> tuple[NDArray[np.float32], NDArray[Any]]:
            return preparation.apply(data.inputs[places]), data.labels[places]

        looked_at = [None] * len(dealt) if further is None else [points(own) for own in further]
        clients = []
        for n, (name, (train, validation)) in enumerate(zip(self.names, dealt, strict=True)):
            own = None if further is None else further[n]
            wanted: dict[str, Any] = {"requirement": float(self.requirements[n])}
            if self.rules:
                wanted = {"goals": self._make_goals(n, validation, own)}
            clients.append(
                Client(name, points(train), points(validation), scored=looked_at[n], **wanted)
            )
        return Federation(clients, self.model, weights=self.weights)

    @property
    def measures(self) -> tuple[str, ...]:
        """What clients want, by the names of their goals; an accuracy where there are none."""
        return tuple(rule.make(0).name for rule in self.rules) or ("accuracy",)

    def _make_goals(
        self, position: int, validation: Indices, further: Indices | None
    ) -> list[ClientGoal]:
        """Return a client's goals, with the points of its own that are in their groups."""
        found = []
        for rule, mask in zip(self.rules, self._groups, strict=True):
            parts = [None if mask is None or p is None else mask[p] for p in (validation, further)]
            found.append(rule.make(position, *parts))
        return found

    @cached_property
    def _groups(self) -> list[Mask | None]:
        """Which points of the data are in the group of each goal; None for all."""
        if not self.rules:
            return []
        from fedaccord.federation.goals import find_group

        data = self._parts[0]
        return [None if rule.group is None else find_group(rule.group, data) for rule in self.rules]

    @cached_property
    def fingerprint(self) -> str:
        """A digest of all that the deals depend on."""
        data, hard, options = self._parts
        if self.rules:
            options = (*options, [(rule.group, rule.make(0).key) for rule in self.rules])
        # The first trial's federation answers for names, goals, model and weights.
        parts = (type(self).__name__, data.sha256, hard, options, self.deal(0).fingerprint)
        return hashlib.sha256(repr(parts).encode()).hexdigest()


@dataclass(frozen=True, eq=False)
class Dealer(Dealing):
    """Deals every trial's clients fresh points from a pool of hard and a pool of easy ones.

    No point is dealt twice in a trial. Only the two pools are kept, as they were read.

    pool: the data set that the pools are parts of.
    hard, easy: the places of the hard and of the easy points in it.
    mixtures: the hard part of each client's points, from 0 to 1.
    points: how many points each client gets, training and validation together.
    validation: the part of them that is for validation.
    requirement: the accuracy the clients want, one for all or one each.
    names: what the clients are called; by their mixtures where left out.
    model: makes a new model.
    weights: the parameters to start from; None for the model's own.
    seed: of all deals.
    goals: what the clients want in other measures, in place of the requirement.
    """

    pool: Dataset = field(repr=False)
    hard: Indices = field(repr=False)
    easy: Indices = field(repr=False)
    mixtures: tuple[float, ...]
    sizes: Counts = field(repr=False)
    validation: float
    requirements: Vector
    names: tuple[str, ...]
    model: ModelMaker = field(repr=False)
    weights: Weights | None = field(repr=False)
    seed: int
    rules: tuple[GoalRule, ...] = ()

    def __init__(
        self,
        pool: Dataset,
        hard: ArrayLike,
        easy: ArrayLike,
        *,
        model: ModelMaker,
        mixtures: Sequence[float] = MIXTURES,
        points: int | Sequence[int] = 2_000,
        validation: float = 0.2,
        requirement: float | Sequence[float] = 0.7,
        names: Sequence[str] | None = None,
        weights: Weights | None = None,
        seed: int = 0,
        goals: Sequence[GoalRule] = (),
    ) -> None:
        mixed = tuple(float(m) for m in as_numbers(mixtures, "mixtures").ravel())
        if not mixed:
            raise InputError("a partition needs at least one client; give a mixture for each")
        named = tuple(map(str, names)) if names is not None else mixture_names(mixed)
        if len(named) != len(mixed):
            raise InputError(f"{len(mixed)} mixtures came with {len(named)} names")
        for name, part in zip(named, mixed, strict=True):
            if not 0 <= part <= 1:
                raise InputError(f"the hard part of {name} must lie in 0 to 1; got {part:g}")
        hard_places, easy_places = (_places(p, len(pool)) for p in (hard, easy))
        if len(np.intersect1d(hard_places, easy_places)):
            raise InputError("a sample is both in the hard and in the easy pool; keep it in one")
        kept = pool.take(np.concatenate([hard_places, easy_places]))
        sizes = _whole(read_each(points, named, "points", "one of points"), named)
        # A frozen dataclass is filled through its dict.
        vars(self).update(
            pool=kept,
            hard=frozen(np.arange(len(hard_places))),
            easy=frozen(np.arange(len(hard_places), len(kept))),
            mixtures=mixed,
            sizes=sizes,
            validation=check_part(validation),
            requirements=_read_wanted(requirement, goals, named),
            names=named,
            model=model,
            weights=weights,
            seed=seed,
            rules=tuple(goals),
        )
        for name, size in zip(named, sizes, strict=True):
            check_divisible(name, int(size))
        self._check_pools()
        # Whatever a client, the model or the weights object to, they do so here.
        self.deal(0)

    @property
    def points(self) -> Counts:
        """How many training points each client gets."""
        return frozen(self.sizes - self._held_out)

    @property
    def _held_out(self) -> Counts:
        return np.array([validation_points(int(n), self.validation) for n in self.sizes])

    @property
    def _hard_counts(self) -> Counts:
        return np.rint(np.array(self.mixtures) * self.sizes).astype(np.int64)

    def _check_pools(self) -> None:
        hard = int(self._hard_counts.sum())
        for name, pool, needed in (
            ("hard", self.hard, hard),
            ("easy", self.easy, int(self.sizes.sum()) - hard),
        ):
            if needed > len(pool):
                raise InputError(
                    f"{len(self.names)} clients need {needed:,} {name} samples and the pool has "
                    f"{len(pool):,}; widen the {name} band or use fewer samples"
                )

    def indices(self, trial: int) -> list[tuple[Indices, Indices]]:
        """Return the places in the pool of every client's training and validation points."""
        hard, easy = (
            stream(self.seed, "deal", trial, name).permutation(pool)
            for name, pool in (("hard", self.hard), ("easy", self.easy))
        )
        dealt = []
        for n, (size, count) in enumerate(zip(self.sizes, self._hard_counts, strict=True)):
            mine, hard = hard[:count], hard[count:]
            rest, easy = easy[: size - count], easy[size - count :]
            own = stream(self.seed, "split", trial, n).permutation(np.concatenate([mine, rest]))
            held_out = self._held_out[n]
            dealt.append((own[held_out:], own[:held_out]))
        return dealt

    def count_further(self) -> Counts:
        """Return how many further points of its mixture the pools have for each client."""
        dealt = int(self._hard_counts.sum())
        hard, easy = len(self.hard) - dealt, len(self.easy) - int(self.sizes.sum()) + dealt
        sizes = np.arange(hard + easy + 1)

        def most(mixture: float) -> int:
            of_hard = np.rint(mixture * sizes)
            # Both counts grow with the size, so whatever fits is a first part.
            return int(sizes[(of_hard <= hard) & (sizes - of_hard <= easy)].max())

        return np.array([most(mixture) for mixture in self.mixtures])

    def further_indices(self, trial: int, count: int) -> list[Indices]:
        """Return the places of further points, hard and easy in each client's mixture."""
        dealt = np.concatenate([places for both in self.indices(trial) for places in both])
        hard, easy = (np.setdiff1d(pool, dealt) for pool in (self.hard, self.easy))
        found = []
        for n, mixture in enumerate(self.mixtures):
            random, of_hard = stream(self.seed, "scored", trial, n), round(mixture * count)
            own = (random.permutation(hard)[:of_hard], random.permutation(easy)[: count - of_hard])
            found.append(np.concatenate(own))
        return found

    @property
    def _parts(self) -> tuple[Dataset, int, tuple[Any, ...]]:
        options = (self.mixtures, self.validation, self.seed, self.sizes.tolist())
        return self.pool, len(self.hard), options


@dataclass(frozen=True, eq=False)
class SiteDealer(Dealing):
    """Makes every site a client; every trial splits each site's samples again.

    Classes are split in proportion, and the groups of goals within each class. Medians and scales
    are those of all sites' training points together, which a real federation would have to share.

    data: points with sites.
    validation: the part of each site's points that is for validation; "rest" for all of its points
        but `most`.
    requirement: the accuracy the sites want, one for all or one each in the order of site_names.
    model: makes a new model.
    weights: the parameters to start from; None for the model's own.
    seed: of all splits.
    most: how many points of each site are dealt, for training and validation together, at most;
        one for all or one each. All of them where left out. The others are further points. Where
        the rest is for validation, how many points train.
    goals: what the sites want in other measures, in place of the requirement.
    """

    data: Dataset = field(repr=False)
    validation: float | str
    requirements: Vector
    names: tuple[str, ...] = field(repr=False)
    model: ModelMaker = field(repr=False)
    weights: Weights | None = field(repr=False)
    seed: int
    most: tuple[int, ...] | None = None
    rules: tuple[GoalRule, ...] = ()

    def __init__(
        self,
        data: Dataset,
        *,
        model: ModelMaker,
        validation: float | str = 0.2,
        requirement: float | Sequence[float] = 0.7,
        weights: Weights | None = None,
        seed: int = 0,
        most: int | Sequence[int] | None = None,
        goals: Sequence[GoalRule] = (),
    ) -> None:
        if data.sites is None:
            raise InputError(
                f"{data.source} has no sites; name the column that says which site a sample "
                "belongs to"
            )
        vars(self).update(
            data=data,
            validation=REST if validation == REST else check_part(validation),
            requirements=_read_wanted(requirement, goals, data.site_names),
            names=data.site_names,
            rules=tuple(goals),
            model=model,
            weights=weights,
            seed=seed,
            most=None if most is None else self._read_most(most, data.site_names),
        )
        if validation == REST and most is None:
            raise InputError("to validate on the rest, say how many samples of each site train")
        for name, count in zip(self.names, self._dealt, strict=True):
            check_divisible(name, count)
        self.deal(0)

    @staticmethod
    def _read_most(most: int | Sequence[int], names: tuple[str, ...]) -> tuple[int, ...]:
        given = [most] * len(names) if isinstance(most, int) else list(most)
        if len(given) != len(names):
            raise InputError(
                f"{len(names)} sites need one number of samples each; got {len(given)}"
            )
        return tuple(
            check_whole(f"the samples of {n}", m) for n, m in zip(names, given, strict=True)
        )

    @cached_property
    def _dealt(self) -> list[int]:
        """How many points of each site are dealt."""
        sizes = [len(members) for members in self._members]
        if self.most is None or self.validation == REST:
            return sizes
        return [*map(min, sizes, self.most)]

    @cached_property
    def _held_out(self) -> list[int]:
        """How many of them are for validation."""
        if isinstance(self.validation, str):
            assert self.most is not None
            return [max(1, n - m) for n, m in zip(self._dealt, self.most, strict=True)]
        return [validation_points(n, self.validation) for n in self._dealt]

    @cached_property
    def _members(self) -> list[Indices]:
        return [np.flatnonzero(self.data.sites == n) for n in range(len(self.names))]

    @cached_property
    def _strata(self) -> NDArray[np.int64]:
        """What is split in proportion: classes, each in and out of the groups of the goals."""
        strata = self.data.strata
        for mask in self._groups:
            if mask is not None:
                strata = 2 * strata + mask
        return np.asarray(strata)

    @property
    def points(self) -> Counts:
        """How many training points each site has."""
        return frozen(np.array(self._dealt) - np.array(self._held_out))

    def indices(self, trial: int) -> list[tuple[Indices, Indices]]:
        """Return the places of every site's training and validation points."""
        return [self._split(trial, site)[:2] for site in range(len(self.names))]

    def _split(self, trial: int, site: int) -> tuple[Indices, Indices, Indices]:
        """Return the places of a site's training, validation and further points."""
        members, count = self._members[site], self._dealt[site]
        random = stream(self.seed, "deal", trial, self.names[site])
        order = members[_spread(self._strata[members], random)]
        held_out = self._held_out[site]
        return random.permutation(order[held_out:count]), order[:held_out], order[count:]

    def count_further(self) -> Counts:
        """Return how many points each site has that are not dealt."""
        counts = zip(self._members, self._dealt, strict=True)
        return np.array([len(members) - dealt for members, dealt in counts], dtype=np.int64)

    def further_indices(self, trial: int, count: int) -> list[Indices]:
        """Return the places of further points of each site."""
        return [self._split(trial, site)[2][:count] for site in range(len(self.names))]

    @property
    def _parts(self) -> tuple[Dataset, int, tuple[Any, ...]]:
        most = () if self.most is None else (self.most,)
        return self.data, 0, (self.validation, self.seed, *most)


class ChangedSource:
    """A source whose clients are those of another, changed by `change`.

    source: a federation, or what deals one to each trial.
    what: what is changed, for the fingerprint.
    """

    def __init__(self, source: Source, *what: Any) -> None:
        self.names = source.names
        self.requirements = source.requirements
        self.points = source.points
        parts = repr((source.fingerprint, *what))
        self.fingerprint = hashlib.sha256(parts.encode()).hexdigest()
        self.source = source

    def deal(self, trial: int) -> Federation:
        """Return the federation of a trial, with its clients changed."""
        whole = self.source.deal(trial)
        return whole.replace([self.change(n, client) for n, client in enumerate(whole.clients)])

    def change(self, position: int, client: Client) -> Client:
        """Return the client as it is here."""
        raise NotImplementedError


class Halved(ChangedSource):
    """A source whose clients are measured on one half of their validation points.

    Whatever is chosen because accuracies came out well has had luck among its reasons; points that
    were not looked at then have no part in that luck. So a plan is chosen by the first half and
    verified by the second. A client's halves are drawn by its name and a seed, every class in
    proportion: the same in each trial of a federation whose points are given.

    source: a federation, or what deals one to each trial.
    half: "first" or "second".
    seed: of the draw.
    """

    def __init__(self, source: Source, half: str, *, seed: int = 0) -> None:
        check_choice("half", half, HALVES)
        super().__init__(source, "half", half, seed)
        self._half = HALVES.index(half)
        self._seed = seed

    def change(self, position: int, client: Client) -> Client:
        """Return the client with one half of its validation points."""
        labels = client.validation_labels.numpy()
        if len(labels) < len(HALVES):
            raise InputError(
                f"{client.name} has one validation sample, and a plan is verified on other samples "
                "than it was chosen by: give it more"
            )
        # Shuffled and sorted by class: every other one is half of each class.
        shuffled = stream(self._seed, "halves", client.name).permutation(len(labels))
        # Of times the events count: a column of their labels.
        classes = labels if labels.ndim == 1 else labels[:, 1]
        order = shuffled[np.argsort(classes[shuffled], kind="stable")]
        rows = np.sort(order[self._half :: len(HALVES)])
        return client.take_validation(rows)


class _WithGoals(ChangedSource):
    """A source of a user's own, with other goals."""

    def __init__(self, source: Source, goals: Vector) -> None:
        super().__init__(source, goals.tolist())
        self.requirements = goals

    def change(self, position: int, client: Client) -> Client:
        """Return the client with its goal here."""
        return client.with_requirement(float(self.requirements[position]))


def set_goals(source: Source, goals: Vector) -> Source:
    """Return a source whose clients have other goals, and all else as it was."""
    if np.array_equal(source.requirements, goals):
        return source
    changed = _WithGoals(source, frozen(np.array(goals, dtype=float)))
    if isinstance(source, Federation):
        return changed.deal(0)
    if isinstance(source, Dealing):
        dealer = copy.copy(source)
        vars(dealer).pop("fingerprint", None)
        vars(dealer)["requirements"] = changed.requirements
        if dealer.rules:
            if len(dealer.rules) > 1 or not dealer.rules[0].is_share:
                raise InputError(
                    f"{dealer.names[0]} has goals that one number does not replace: change the "
                    "goals themselves"
                )
            rule = dataclasses.replace(dealer.rules[0], target=tuple(changed.requirements.tolist()))
            vars(dealer)["rules"] = (rule,)
        return dealer
    return changed


def _read_wanted(
    requirement: float | Sequence[float], goals: Sequence[GoalRule], names: Sequence[str]
) -> Vector:
    """Return what each client's accuracy, or where it stands, is compared with."""
    if not goals:
        return read_each(requirement, names, "requirements", "one of requirements")
    for rule in goals:
        read_each(rule.target, names, "targets", "one target")
    return frozen(np.array([goals[0].make(n).requirement for n in range(len(names))]))


def check_apart(
    dealt: Sequence[tuple[Indices, Indices]], further: Sequence[Indices], names: Sequence[str]
) -> None:
    """Raise a FedaccordError if a client is to be judged on a point that anybody uses.

    dealt: the places of every client's training and validation points.
    further: the places of the points that each client is to be judged on.
    names: the clients'.
    """
    used = np.concatenate([places for both in dealt for places in both])
    for name, own in zip(names, further, strict=True):
        if len(np.intersect1d(own, used)) or len(np.unique(own)) < len(own):
            raise FedaccordError(
                f"{name} would be judged on a sample that is also used in training or validation, "
                "or that appears twice; correct the code that divides the data"
            )


def find_measures(source: Source) -> tuple[str, ...]:
    """Return what the clients of a source want; an accuracy if the source does not say."""
    if isinstance(source, ChangedSource):
        return find_measures(source.source)
    return tuple(getattr(source, "measures", ("accuracy",)))


def varies_by_trial(source: Source, one: int, other: int) -> bool:
    """Return whether a source has different partitions in two trials."""
    if isinstance(source, Federation):
        return False
    return source.deal(one).fingerprint != source.deal(other).fingerprint


def _spread(labels: NDArray[np.int64], random: np.random.Generator) -> Indices:
    """Shuffle points so that any first part has every class in proportion."""
    place = np.empty(len(labels))
    for label in np.unique(labels):
        members = random.permutation(np.flatnonzero(labels == label))
        # Evenly over 0 to 1, from a random start: so a class of one point can fall anywhere.
        place[members] = (np.arange(len(members)) + random.random()) / len(members)
    return np.argsort(place, kind="stable")


def mixture_names(mixtures: Sequence[float]) -> tuple[str, ...]:
    """Name clients by their mixtures, "90% hard" or "100% easy", numbered where these repeat."""
    plain = [f"{100 * m:g}% hard" if m >= 0.5 else f"{100 * (1 - m):g}% easy" for m in mixtures]
    return tuple(
        name if plain.count(name) == 1 else f"{name} {plain[: n + 1].count(name)}"
        for n, name in enumerate(plain)
    )


def validation_points(size: int, part: float) -> int:
    """Return how many samples are for validation: at least one, and not all."""
    return min(max(1, round(part * size)), size - 1)


def check_part(validation: float | str) -> float:
    """Return a validation part, or raise an InputError if it leaves nothing on either side."""
    if isinstance(validation, str) or not 0 < validation < 1:
        raise InputError(f"the validation part must lie between 0 and 1; got {validation!r}")
    return float(validation)


def check_divisible(name: str, size: int) -> None:
    """Raise an InputError at a client that cannot have both a training and a validation point."""
    if size < 2:
        count = {0: "no data", 1: "one point"}.get(size, f"{size} points")
        raise InputError(
            f"{name} has {count}; it needs two samples or more, some to train on and some to "
            "validate: give it more, or leave it out"
        )


def _places(places: ArrayLike, points: int) -> Indices:
    array = np.asarray(places)
    if array.ndim != 1 or array.dtype.kind not in "ui":
        raise InputError("pools must be lists of positions of samples, whole numbers")
    if len(array) and not (array.min() >= 0 and array.max() < points):
        raise InputError(f"pools must lie in 0 to {points - 1}, the places of the data set")
    if len(np.unique(array)) < len(array):
        raise InputError("a sample is twice in one pool; keep it once")
    return array.astype(np.intp)


def _whole(sizes: Vector, names: Sequence[str]) -> Counts:
    for name, size in zip(names, sizes, strict=True):
        if size != np.rint(size) or not abs(size) < 2**53:
            raise InputError(f"the points of {name} must be a whole number; got {size:g}")
    return frozen(sizes.astype(np.int64))


def read_each(values: ArrayLike, names: Sequence[str], what: str, one: str) -> Vector:
    """Return a number for each client, or raise an InputError.

    values: one for all, or one each.
    names: the clients'.
    what: the numbers are called.
    one: of them is called, for messages.
    """
    numbers = as_numbers(values, what)
    if numbers.ndim == 0:
        numbers = np.repeat(numbers, len(names))
    if numbers.shape != (len(names),):
        raise InputError(
            f"{len(names)} clients need {one} each, in this order: {', '.join(names)}; got "
            f"{numbers.size}"
        )
    return frozen(numbers)
