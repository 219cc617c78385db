"""What a config describes, made: data, pools, difficulty, start weights, and who deals them out.

Scores and weights take seconds to minutes. They are kept in a folder, under a name that is a
digest of all they depend on, and are read from there the next time.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import time
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from fedaccord.errors import InputError
from fedaccord.federation.config.load import Config
from fedaccord.federation.config.sections import AgentSettings
from fedaccord.federation.data.dataset import Dataset, Preparation, load_data
from fedaccord.federation.data.pretraining import (
    Bands,
    Pair,
    PretrainedWeights,
    Scores,
    loss_scores,
    pretrain,
)
from fedaccord.federation.models.networks import ModelFactory, model_factory
from fedaccord.federation.partition import Dealer, SiteDealer

if TYPE_CHECKING:
    from fedaccord.federation.data.search import Draw
    from fedaccord.federation.goals import GoalRule
    from fedaccord.federation.runs.parts import Part

# What is made in fewer seconds of computing is not worth a file.
WORTH_KEEPING = 10.0
# Shares of all points that pools get where the config does not say, and the most they get.
PRETRAINING = (4, 30_000)
VALIDATION = (10, 10_000)
# Of the arithmetic of scores and weights: raised when it changes, so that what is kept of the old
# one is not taken for the new. The names of the first version do not have it: what was kept before
# there were versions is still found.
RESULTS = 1
# How much of the pre-training pool the network that scores by loss is measured on.
HOLDOUT = 10

# The sections that divide points among agents, and what they may say of agents that are sites.
OF_POOLS = ("pools", "difficulty", "pretraining", "agents")
BESIDE_SITES = (
    "agents.points",
    "agents.validation",
    "agents.requirement",
    "agents.measure",
    "agents.goals",
    "pretraining.weights",
)
# How many points each choice of a search sees at least: one pass over a small pool tells nothing.
SEEN = 10_000

# Told what is under way; gives a context, and in it whom to tell how much is done, of how much.
Counter: TypeAlias = Callable[[int, int], None]
Stage: TypeAlias = Callable[[str], contextlib.AbstractContextManager[Counter | None]]
Kept = TypeVar("Kept", Scores, PretrainedWeights)


@dataclasses.dataclass(frozen=True, eq=False)
class Pools:
    """The points of a data set, divided.

    pretraining, validation: disjoint from the agents' points; None for none.
    agents: what agents are dealt from.
    """

    pretraining: Dataset | None
    validation: Dataset | None
    agents: Dataset


class Building:
    """Makes what a config describes, each part when it is first asked for.

    config: what to make.
    cache: the folder that keeps scores and weights; None keeps none.
    stage: told what is under way; says nothing where left out.
    """

    def __init__(
        self, config: Config, *, cache: str | Path | None = None, stage: Stage | None = None
    ) -> None:
        self.config = config
        self._cache = None if cache is None else Path(cache)
        self._stage: Stage = stage or (lambda _: contextlib.nullcontext())

    @cached_property
    def data(self) -> Dataset:
        """The data set."""
        given = dataclasses.asdict(self.config.data)
        if given["source"] in ("npz", "csv"):
            kind, path = given["source"], given.pop("path")
            if not path.lower().endswith(f".{kind}"):
                raise InputError(
                    f'[data] source = "{kind}" needs a file that ends in .{kind}; got {path}'
                )
            given["source"] = path
        kind = "classes"
        if rules := _make_rules(self.config.agents):
            from fedaccord.federation.goals import find_labels

            kind = find_labels([rule.make(0) for rule in rules], "[agents]")
        if (kind == "times") != (given["event"] is not None):
            raise InputError(
                "[data] event names the column that says whether the event took place; give it "
                "with a goal in the C-index, and with no other"
            )
        with self._stage("reading the data"):
            return load_data(**given, amounts=kind == "amounts")

    @cached_property
    def model(self) -> ModelFactory:
        """What makes the network."""
        wanted = self.config.model
        return model_factory(
            wanted.name,
            self.data.input_shape,
            len(self.data.classes),
            engine=wanted.engine,  # type: ignore[arg-type]
            predicts=self.data.kind,
        )

    @cached_property
    def pools(self) -> Pools:
        """The points, divided."""
        if self.data.sites is not None:
            raise InputError(
                f"{self.data.source} has sites, which keep all their samples: no pool is left to "
                "score or to pre-train on"
            )
        if self.data.kind != "classes":
            raise InputError(
                f"goals about {self.data.kind} need [data] site, whose agents they are"
            )
        wanted = self.config.pools
        sizes = {
            "pretraining": _size(wanted.pretraining, len(self.data), PRETRAINING),
            "validation": _size(wanted.validation, len(self.data), VALIDATION),
            "agents": wanted.agents or 0,
        }
        named = {name: size for name, size in sizes.items() if size}
        try:
            parts = (
                self.data.split(*named.values(), seed=wanted.seed, rest="agents" not in named)
                if named
                else (self.data,)
            )
        except InputError as error:
            raise InputError(f"[pools] {error}") from None
        found = dict(zip(dict.fromkeys([*named, "agents"]), parts, strict=True))
        return Pools(found.get("pretraining"), found.get("validation"), found["agents"])

    @cached_property
    def scores(self) -> Scores:
        """How hard the agents' points are."""
        wanted, pool = self.config.difficulty, self.pools.agents
        if wanted.scores is not None:
            scores = Scores.load(wanted.scores)
            if scores.pool != pool.sha256:
                raise InputError(
                    f"the scores in {wanted.scores} are for other samples than this config has: "
                    "score its samples with 'fedaccord difficulty'"
                )
            return scores
        return self.new_scores(wanted.method, wanted.options)

    def new_scores(
        self, method: str, options: dict[str, Any], *, part: Part | None = None
    ) -> Scores:
        """Score the agents' points, or read the scores that are kept.

        method: "loss" or "trials".
        options: of the method, those that are not to be its defaults.
        part: the part of the trials to run, in a file of its own; None for all of them.
        """
        pools, seed = self.pools, self.config.pools.seed
        beside = "pretraining" if method == "loss" else "validation"
        other = getattr(pools, beside)
        if other is None:
            raise InputError(f"difficulty by {method} needs samples in [pools] {beside}; add some")
        what = ("scores", method, options, seed, other.sha256, pools.agents.sha256, self._network)
        digest = _digest(*what)

        def make(told: Counter | None) -> Scores:
            if method == "loss":
                kept = {"holdout": max(1, len(other) // HOLDOUT)}
                return loss_scores(
                    pools.agents, self.model, reference=other, seed=seed, **{**kept, **options}
                )
            from fedaccord.federation.data.difficulty import trial_scores

            # Further trials go on from those in the file.
            same = {name: value for name, value in options.items() if name != "trials"}
            name = f"trials-{_digest(same, *what[3:])}.sqlite"
            file = None if self._cache is None else self._folder() / name
            return trial_scores(
                *(pools.agents, self.model),
                holdout=other,
                seed=seed,
                path=file if part is None or file is None else part.name_file(file),
                part=part,
                progress=told,
                **options,
            )

        stage = f"scoring {len(pools.agents):,} samples by {method}"
        return self._read_or_make(f"scores-{digest}.npz", Scores, stage, make)

    @cached_property
    def weights(self) -> PretrainedWeights | None:
        """What the network has learnt before; None for nothing."""
        path = self.config.pretraining.weights
        if path is None:
            return self.new_weights() if self.config.pretraining.batches else None
        # Weights that may have seen the agents' points are refused.
        weights, pool = PretrainedWeights.load(path), self.pools.pretraining
        seen = weights.provenance.get("pool")
        # Those made elsewhere do not say on what, and are taken.
        if seen is not None and (pool is None or seen != pool.sha256):
            raise InputError(
                f"the weights in {path} were pre-trained on other samples than this config has in "
                "that pool, perhaps on its agents': pre-train again with 'fedaccord pretrain "
                "CONFIG', or restore the earlier [pools]"
            )
        return weights

    def new_weights(self) -> PretrainedWeights:
        """Pre-train the network, or read the weights that are kept."""
        wanted, pools, seed = self.config.pretraining, self.pools, self.config.pools.seed
        if pools.pretraining is None:
            raise InputError("pre-training needs samples in [pools] pretraining; add some")
        options = {k: v for k, v in dataclasses.asdict(wanted).items() if k != "weights"}
        learnt, measured = pools.pretraining, pools.validation
        seen = (learnt.sha256, None if measured is None else measured.sha256)

        def make(_: Counter | None) -> PretrainedWeights:
            (inputs, labels), validation = self._prepare_pools()
            made = pretrain(self.model, inputs, labels, seed=seed, validation=validation, **options)
            known = {**made.provenance, "pool": learnt.sha256}
            return dataclasses.replace(made, provenance=known)

        digest = _digest("weights", options, seed, seen, self._network)
        stage = f"pre-training on {len(learnt):,} samples"
        return self._read_or_make(f"weights-{digest}.npz", PretrainedWeights, stage, make)

    def search(
        self, *, draws: int, epochs: float | None, path: str | Path | None, progress: Counter | None
    ) -> tuple[Draw, ...]:
        """Try random hyperparameters on the pre-training pool.

        draws, path, progress: as `search_hyperparameters` has them.
        epochs: how often each choice goes through the pool; enough to see SEEN points where None.
        """
        from fedaccord.federation.data.search import search_hyperparameters

        if self.pools.pretraining is None or self.pools.validation is None:
            raise InputError(
                "a search needs samples in [pools] pretraining and [pools] validation; add some"
            )
        train, validation = self._prepare_pools()
        assert validation is not None
        return search_hyperparameters(
            *(self.model, train),
            validation=validation,
            draws=draws,
            epochs=max(1.0, SEEN / len(train[1])) if epochs is None else epochs,
            seed=self.config.pools.seed,
            path=path,
            progress=progress,
        )

    def source(self, seed: int) -> Dealer | SiteDealer:
        """Return what deals a federation to each trial."""
        wanted = self.config.agents
        if self.data.sites is not None:
            return self._build_sites(wanted, seed)
        options = {
            name: value for name, value in vars(wanted).items() if name not in ("goals", "measure")
        }
        hard, easy = Bands(options.pop("hard"), options.pop("easy")).pools(self.scores)
        return Dealer(
            *(self.pools.agents, hard, easy),
            model=self.model,
            weights=self.weights,
            seed=seed,
            goals=_make_rules(wanted),
            **options,
        )

    def _build_sites(self, wanted: AgentSettings, seed: int) -> SiteDealer:
        for name in sorted(self.config.given):
            section, _, key = name.partition(".")
            if section in OF_POOLS and name not in BESIDE_SITES:
                raise InputError(
                    f"{self.data.source} has sites, which are the agents and have their own "
                    f"samples: leave out [{section}] {key}"
                )
        weights = self.config.pretraining.weights
        return SiteDealer(
            self.data,
            model=self.model,
            validation=wanted.validation,
            requirement=wanted.requirement,
            weights=None if weights is None else PretrainedWeights.load(weights),
            seed=seed,
            most=wanted.points if "agents.points" in self.config.given else None,
            goals=_make_rules(wanted),
        )

    @property
    def _network(self) -> list[Any]:
        return [self.model.name, self.model.input_shape, self.model.classes]

    def _prepare_pools(self) -> tuple[Pair, Pair | None]:
        """Return the pre-training and the validation pool as the network takes them."""
        pools = self.pools
        assert pools.pretraining is not None
        preparation = Preparation.fit(pools.pretraining.inputs, pools.pretraining.columns)

        def pair(pool: Dataset) -> Pair:
            return preparation.apply(pool.inputs), pool.labels

        measured = None if pools.validation is None else pair(pools.validation)
        return pair(pools.pretraining), measured

    def _folder(self) -> Path:
        assert self._cache is not None
        try:
            self._cache.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"cannot make the folder {self._cache}: {error.strerror}") from None
        return self._cache

    def _read_or_make(
        self, name: str, kind: type[Kept], stage: str, make: Callable[[Counter | None], Kept]
    ) -> Kept:
        """Read what is kept under a name, or make it, and keep it if that took long."""
        file = None if self._cache is None else self._cache / name
        if file is not None and file.exists():
            return kind.load(file)
        started = time.process_time()
        with self._stage(stage) as told:
            made = make(told)
        if file is not None and time.process_time() - started >= WORTH_KEEPING:
            # Where nothing can be written, it is made again the next time: no reason to stop now.
            with contextlib.suppress(InputError):
                self._folder()
                made.save(file)
        return made


def _make_rules(wanted: AgentSettings) -> tuple[GoalRule, ...]:
    if not wanted.wanted:
        return ()
    from fedaccord.federation.goals import GoalRule

    return tuple(GoalRule(**vars(goal)) for goal in wanted.wanted)


def _size(wanted: int | None, points: int, usual: tuple[int, int]) -> int:
    part, most = usual
    return min(points // part, most) if wanted is None else wanted


def _digest(*parts: Any) -> str:
    named = parts if RESULTS == 1 else (RESULTS, *parts)
    return hashlib.sha256(json.dumps(named, sort_keys=True).encode()).hexdigest()[:16]
