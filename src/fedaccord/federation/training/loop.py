"""The one loop around every algorithm: draw, step, test the goal, record the round.

A run depends on its seed alone. These have their own random streams: which samples a client gives,
the batches it draws, the start of the model, dropout, and the samples of a goal test. A client's
streams depend on its name. So if one client gives less, no other client's draws or masks change; a
client needs no memory of the rounds before; and evaluating more often does not change the model.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from fedaccord._checks import Indices, Vector, frozen
from fedaccord.allocation import Allocation
from fedaccord.errors import InputError
from fedaccord.federation.algorithms.base import Algorithm, Counts
from fedaccord.federation.clients import Client, Federation, Weights
from fedaccord.federation.defection.tactic import FAKE_UPDATES, Tactic
from fedaccord.federation.history import GoalValues, History, Session
from fedaccord.federation.models.networks import (
    ClientRows,
    dropouts,
    find_direct,
    join_clients,
    keep_in_torch,
    ready_dropout,
)
from fedaccord.federation.training.rng import Draws, derive_seed, draw_goal_rows, stream
from fedaccord.federation.training.steps import (
    Optimizer,
    compares_samples,
    find_losses,
    new_optimizer,
)

if TYPE_CHECKING:
    from fedaccord.federation.training.deceit import FakeUpdates

Batch: TypeAlias = tuple[Tensor, Tensor]
# The losses of samples, as torch or as the native block returns them.
Losses: TypeAlias = Tensor | NDArray[np.float32]
Contributions: TypeAlias = Allocation | Mapping[str, int] | Sequence[int] | Counts


def train(
    federation: Federation,
    algorithm: Algorithm,
    *,
    contributions: Contributions | None = None,
    seed: int = 0,
    tactic: Tactic | None = None,
) -> History:
    """Train the federation's model and return what happened.

    federation: the clients and the model.
    algorithm: how much each client draws, and how the model is updated.
    contributions: how many of its samples each client gives, in the clients' order or by name;
        all of them where left out. The samples of a smaller contribution are a subset of those of
        a larger one.
    seed: the random seed of the run.
    tactic: what some clients do beyond giving less; nothing where left out.
    """
    brought = check_contributions(federation, contributions)
    check_limits(federation, algorithm.limits(brought))
    if tactic is not None:
        from fedaccord.federation.training.deceit import deceive

        federation = deceive(federation, brought, tactic, seed=seed)
    if algorithm.trains_alone:
        clients = range(len(federation.clients))
        return History.side_by_side(
            [_train(federation.only(i), algorithm, brought[i : i + 1], seed) for i in clients]
        )
    history = _train(federation, algorithm, brought, seed, tactic)
    return dataclasses.replace(history, tactic=tactic)


def _train(
    federation: Federation,
    algorithm: Algorithm,
    brought: Counts,
    seed: int,
    tactic: Tactic | None = None,
) -> History:
    session = Session(algorithm, federation.names, brought, federation.requirements, seed=seed)
    with reproducibly(seed):
        model = make_model(federation)
        step = choose_step(
            *(model, session, federation.clients),
            fake=_fake_updates(federation, tactic, seed),
        )
        pools = start_draws(federation, brought, seed)
        validation = Validation(federation, seed)
        personal = PersonalModels(federation, algorithm, seed) if algorithm.personal else None
        measure = validation.measure if personal is None else personal.measure
        checkpoints: dict[str, Weights] = {}
        for n in range(algorithm.rounds):
            sent = copy_weights(model) if algorithm.withholds else {}
            counts = session.allot()
            drawn = draw_all(federation.clients, pools, counts, session.brought)
            if personal is not None:
                personal.step(model, drawn)
            losses = step(drawn)
            session.record_round(counts, np.array([pool.unique for pool in pools]), losses)
            if algorithm.withholds:
                checkpoints |= withhold(session, model, sent, measure)
            diverged = not np.isfinite(losses[counts > 0]).all()
            if algorithm.evaluates(n) and not diverged:
                session.record_accuracies(measure(model))
                diverged = not np.isfinite(session.accuracies).all()
            if algorithm.tests(n) and not diverged:
                points = algorithm.goal_test_points
                tested = (
                    session.accuracies if points is None else validation.test(model, points, n + 1)
                )
                leaving = [federation.names[i] for i in session.test(tested)]
                checkpoints |= {name: copy_weights(model) for name in leaving}
            if session.ended and not diverged and np.isnan(session.accuracies).any():
                # The last accuracies are known, in whichever round it ends.
                session.record_accuracies(measure(model))
                diverged = not np.isfinite(session.accuracies).all()
            if diverged:
                session.record_divergence()
            if diverged or session.ended:
                break
        history = session.history(copy_weights(model), checkpoints)
        if personal is not None:
            history = dataclasses.replace(history, checkpoints=personal.copy_weights())
    return score_history(federation, history)


def _fake_updates(federation: Federation, tactic: Tactic | None, seed: int) -> FakeUpdates | None:
    """Return what replaces the updates of clients that only pretend to train, if any do."""
    if tactic is None or tactic.filler not in FAKE_UPDATES:
        return None
    from fedaccord.federation.training.deceit import FakeUpdates

    names = tuple(federation.names[i] for i in tactic.clients)
    return FakeUpdates(names, noisy=tactic.filler == "random", seed=seed)


def check_contributions(federation: Federation, given: Contributions | None) -> Counts:
    """Return each client's contribution, or raise an InputError that names the client."""
    points = federation.points
    if given is None:
        return points
    if isinstance(given, Mapping):
        given = Allocation(list(given.values()), list(given))
    allocation = given if isinstance(given, Allocation) else Allocation(np.asarray(given))
    values = allocation.ordered_for(federation.names).contributions
    if len(values) != len(points):
        raise InputError(f"{len(points)} clients need one contribution each; got {len(values)}")
    whole = values.astype(np.int64)
    for name, value, most in zip(federation.names, values, points, strict=True):
        if value != int(value):
            raise InputError(f"{name} cannot give {value:g} samples; use a whole number")
        if value > most:
            raise InputError(f"{name} cannot give {value:g} samples: it has {most}")
    if not whole.any():
        raise InputError("all contributions are 0; give at least one client a contribution")
    return whole


def check_limits(federation: Federation, limits: Counts) -> None:
    """Raise an InputError at a client that lacks the points it holds in reserve."""
    for name, limit, most in zip(federation.names, limits, federation.points, strict=True):
        if limit > most:
            raise InputError(
                f"{name} may have to give {limit} samples, its reserve included, and it has "
                f"{most}; lower its reserve"
            )


def withhold(
    session: Session,
    model: nn.Module,
    sent: dict[str, NDArray[Any]],
    measure: Callable[[nn.Module], Vector],
) -> dict[str, Weights]:
    """Return what those keep that get no further model: the weights they were sent last.

    session: after a round.
    model: as it is now.
    sent: its weights before the round, which everybody has that was not left out before.
    measure: returns everybody's accuracy.
    """
    leaving = session.part()
    if not len(leaving):
        return {}
    now = copy_weights(model)
    _load(model, sent)
    session.keep(leaving, measure(model)[leaving])
    _load(model, now)
    return {session.names[i]: sent for i in leaving}


def _load(model: nn.Module, weights: Weights) -> None:
    model.load_state_dict({name: torch.from_numpy(value) for name, value in weights.items()})


@contextlib.contextmanager
def reproducibly(seed: int) -> Iterator[None]:
    """Run with torch's generator seeded and on one thread, and leave both as they were.

    Results depend on how sums are split over threads.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(derive_seed(seed, "torch"))
            yield
    finally:
        torch.set_num_threads(threads)


def make_model(federation: Federation) -> nn.Module:
    """Make the model a run starts from; no row is masked before it is readied for its client."""
    model = federation.start()
    ready_dropout(model, [], seed=0)
    return model.train()


def copy_weights(model: nn.Module) -> dict[str, NDArray[Any]]:
    """Copy a model's parameters and buffers, by name."""
    return {name: value.detach().numpy().copy() for name, value in model.state_dict().items()}


def give_streams(model: nn.Module, seed: int) -> None:
    """Set up a random stream for each dropout of ours, for a client that trains alone."""
    for place, module in enumerate(dropouts(model)):
        module.stream = stream(seed, "dropout", place)


def start_draws(federation: Federation, brought: Counts, seed: int) -> list[Draws]:
    """Return what draws each client's samples."""
    pairs = zip(federation.clients, brought.tolist(), strict=True)
    return [Draws(client.name, client.points, count, seed=seed) for client, count in pairs]


def draw_all(
    clients: Sequence[Client], pools: Sequence[Draws], counts: Counts, brought: Counts
) -> list[Drawn]:
    """Draw a round's samples of all clients, out of as many different ones as each gives now."""
    drawn = []
    every = zip(clients, pools, counts.tolist(), brought.tolist(), strict=True)
    for client, pool, count, most in every:
        pool.resize(most)
        drawn.append(Drawn(client, pool.drawn, pool.draw(count)))
    return drawn


class Validation:
    """The validation samples of all clients, on which accuracies are measured together."""

    def __init__(self, federation: Federation, seed: int) -> None:
        clients = self._clients = federation.clients
        self._names = federation.names
        self._seed = seed
        self._inputs = torch.cat([client.validation_inputs for client in clients])
        self._labels = torch.cat([client.validation_labels for client in clients])
        self._sizes = [len(client.validation_labels) for client in clients]

    def measure(self, model: nn.Module) -> Vector:
        """Measure all clients' accuracies, or where their goals stand, on all samples."""
        return self._judge(self._clients, find_scores(model, self._inputs), self._labels)

    def test(self, model: nn.Module, count: int, round_number: int) -> Vector:
        """Measure all clients' accuracies on some samples each, drawn again each round."""
        starts = np.cumsum([0, *self._sizes[:-1]])
        chosen = [
            start + draw_goal_rows(name, size, count, seed=self._seed, round_number=round_number)
            for start, name, size in zip(starts, self._names, self._sizes, strict=True)
        ]
        rows = torch.from_numpy(np.concatenate(chosen))
        own = zip(self._clients, chosen, starts, strict=True)
        clients = [
            client.take_validation(mine - start) if client.goals else client
            for client, mine, start in own
        ]
        sizes = [len(mine) for mine in chosen]
        scores = find_scores(model, self._inputs[rows])
        return self._judge(clients, scores, self._labels[rows], sizes)

    def _judge(
        self,
        clients: Sequence[Client],
        scores: Tensor,
        labels: Tensor,
        sizes: list[int] | None = None,
    ) -> Vector:
        cut = self._sizes if sizes is None else sizes
        if not any(client.goals for client in clients):
            starts = np.cumsum([0, *cut[:-1]])
            return np.asarray(np.add.reduceat(check_right(scores, labels), starts) / cut)
        parts = zip(clients, scores.split(cut), labels.split(cut), strict=True)
        return np.array([judge(client, *part) for client, *part in parts])


def score_history(federation: Federation, history: History) -> History:
    """Return a history with each client's accuracy on its scored points, if all clients have any.

    It also has what came of each goal, if clients have goals. A client that left before the end is
    judged by the model that it left with. The algorithm does not see these accuracies.
    """
    is_scored = all(client.scored_labels is not None for client in federation.clients)
    has_goals = any(client.goals for client in federation.clients)
    if not (is_scored or has_goals):
        return history
    scored = np.full(len(federation.clients), np.nan)
    found: list[GoalValues] = []
    with reproducibly(history.seed):
        model = make_model(federation)
        loaded: Weights | None = None
        for i, client in enumerate(federation.clients):
            weights = history.checkpoints.get(client.name)
            if weights is None and history.diverged:
                found.append(value_goals(client, None))
                continue
            chosen = history.weights if weights is None else weights
            if chosen is not loaded:
                model.load_state_dict({n: torch.as_tensor(np.array(v)) for n, v in chosen.items()})
                loaded = chosen
            if is_scored:
                assert client.scored_inputs is not None and client.scored_labels is not None
                scores = find_scores(model, client.scored_inputs)
                scored[i] = judge(client, scores, client.scored_labels, scored=True)
            if has_goals:
                found.append(value_goals(client, model))
    return dataclasses.replace(
        history,
        scored=frozen(scored) if is_scored else None,
        goals=GoalValues.join(found) if has_goals else None,
    )


def value_goals(client: Client, model: nn.Module | None) -> GoalValues:
    """Return what a model makes of a client's goals; nothing is known without a model."""
    from fedaccord.federation.measures import find_outputs

    goals = client.listed_goals
    whole = client.replace(goals=goals)
    unknown = np.full(len(goals), np.nan)
    values, deviations = unknown, unknown
    scored = None if client.scored_inputs is None else unknown
    if model is not None:
        outputs = find_outputs(find_scores(model, client.validation_inputs).numpy())
        values, deviations = whole.measure(outputs), whole.deviate(outputs)
        if client.scored_inputs is not None:
            outputs = find_outputs(find_scores(model, client.scored_inputs).numpy())
            scored = whole.measure(outputs, scored=True)
    spare = [goal.spare(value) for goal, value in zip(goals, values.tolist(), strict=True)]
    return GoalValues(
        clients=(client.name,) * len(goals),
        names=tuple(goal.name for goal in goals),
        targets=np.array([goal.target for goal in goals]),
        reached=np.array(spare) >= 0,
        values=values,
        deviations=deviations,
        scored=scored,
    )


def judge(client: Client, scores: Tensor, labels: Tensor, *, scored: bool = False) -> float:
    """Return a client's accuracy, or where it stands if it has goals; NaN after divergence.

    client: with all the points that were scored.
    scores: of its validation, or scored, points.
    labels: of these points.
    scored: whether they are the scored points.
    """
    if not client.goals:
        return float(check_right(scores, labels).mean())
    from fedaccord.federation.goals import judge_goals
    from fedaccord.federation.measures import find_outputs

    outputs = find_outputs(scores.numpy())
    return judge_goals(client.goals, labels.numpy(), outputs, scored=scored)


def is_right(model: nn.Module, inputs: Tensor, labels: Tensor) -> Vector:
    """Return for each point whether the model names its class: 1, 0, or NaN where it names none.

    A score of minus infinity is a class ruled out; one of NaN, or of infinity, is divergence.
    """
    return check_right(find_scores(model, inputs), labels)


def check_right(scores: Tensor, labels: Tensor) -> Vector:
    """Return for each point whether its best score is that of its class, as `is_right` does."""
    best = scores.max(dim=1)
    right: Vector = (best.indices.numpy() == labels.numpy()).astype(np.float64)
    right[~np.isfinite(best.values.numpy())] = np.nan
    return right


def find_scores(model: nn.Module, inputs: Tensor) -> Tensor:
    """Return the model's scores of points, as it is when it does not train."""
    if (direct := find_direct(model)) is not None and direct.takes(inputs):
        return direct.score(inputs)
    was_training = model.training
    model.eval()
    # A user's model may draw random numbers even now; those must not shift training's.
    with torch.random.fork_rng(devices=[]), torch.inference_mode():
        chunk = getattr(model, "evaluate_chunk", None) or max(len(inputs), 1)
        scores = torch.cat([model(part) for part in inputs.split(chunk)])
    model.train(was_training)
    return scores


class PersonalModels:
    """A model for each client, which it trains on its own samples and near the server's model.

    Each has its own optimizer, which lasts. The server's model does not depend on them.

    federation: the clients.
    algorithm: with the strength of the pull, `personal`.
    seed: of the run.
    """

    def __init__(self, federation: Federation, algorithm: Algorithm, seed: int) -> None:
        self._clients = federation.clients
        self._strength, self._seed = algorithm.personal, seed
        start = copy_weights(make_model(federation))
        self._models = {}
        for client in federation.clients:
            model = make_model(federation)
            model.load_state_dict({n: torch.as_tensor(np.array(w)) for n, w in start.items()})
            rate = algorithm.learning_rate
            self._models[client.name] = model, new_optimizer(model, algorithm.optimizer, rate)

    def step(self, server: nn.Module, drawn: Sequence[Drawn]) -> None:
        """Let each client step its own model on the samples of a round."""
        pull = Pull(server, self._strength)
        for mine in drawn:
            if len(mine):
                model, optimizer = self._models[mine.client]
                ready_dropout(model, [mine.rows], seed=self._seed)
                take_step(model.train(), optimizer, *mine.batch, pull=pull)

    def measure(self, server: nn.Module) -> Vector:
        """Measure each client's accuracy with its own model."""
        pairs = [(self._models[client.name][0], client) for client in self._clients]
        return np.array(
            [judge(c, find_scores(m, c.validation_inputs), c.validation_labels) for m, c in pairs]
        )

    def copy_weights(self) -> dict[str, Weights]:
        """Copy the parameters of each client's model, by client."""
        return {name: copy_weights(model) for name, (model, _) in self._models.items()}


# One round's step of the model, from the samples that each client drew.


@dataclass(frozen=True)
class Drawn:
    """Samples of one client.

    owner: the client.
    before: how many samples it had drawn before these.
    chosen: which of its samples these are.
    """

    owner: Client
    before: int
    chosen: Indices

    def __len__(self) -> int:
        return len(self.chosen)

    @property
    def client(self) -> str:
        """The client's name."""
        return self.owner.name

    @property
    def inputs(self) -> Tensor:
        """What the model takes."""
        return self.owner.inputs[torch.from_numpy(self.chosen)]

    @property
    def labels(self) -> Tensor:
        """What the model is to say."""
        return self.owner.labels[torch.from_numpy(self.chosen)]

    @property
    def batch(self) -> Batch:
        """Inputs and labels."""
        return self.inputs, self.labels

    @property
    def rows(self) -> ClientRows:
        """Whose they are, for dropout."""
        return ClientRows(self.client, self.before, len(self))

    def parts(self, count: int) -> Iterator[Drawn]:
        """Divide the samples into parts of nearly equal size; some may be empty."""
        before = self.before
        for part in np.array_split(self.chosen, count) if count > 1 else [self.chosen]:
            yield Drawn(self.owner, before, part)
            before += len(part)


# Takes each client's samples, steps the model, gives each client's mean loss (NaN for none).
Stepper: TypeAlias = Callable[[Sequence[Drawn]], Vector]


def choose_step(
    model: nn.Module,
    session: Session,
    clients: Sequence[Client],
    *,
    fake: FakeUpdates | None = None,
) -> Stepper:
    """Choose the step that an algorithm asks for."""
    algorithm = session.algorithm
    if algorithm.form == "local":
        return lambda drawn: local_step(model, session, drawn, fake)
    optimizer = new_optimizer(model, algorithm.optimizer, algorithm.learning_rate)
    # The mean of the clients' gradients, weighted by samples, is the gradient of all samples
    # together, which is quicker to find. An algorithm with a mean of its own goes the long way,
    # and so do fake updates, and a model in which samples of a batch change each other's scores.
    mixes_samples = compares_samples(clients[0].labels) or any(map(is_batch_norm, model.modules()))
    quick = algorithm.averages and not mixes_samples and fake is None
    long_way = functools.partial(find_mean_gradient, fake=fake)
    find: Callable[..., Sequence[Tensor]] = find_gradient if quick else long_way
    joined = join_clients(model, clients) if quick else None

    def step(drawn: Sequence[Drawn]) -> Vector:
        losses: list[list[Losses]] = [[] for _ in drawn]
        for parts in zip(*(mine.parts(algorithm.local_batches) for mine in drawn), strict=True):
            if any(len(part) for part in parts):
                found: Sequence[Losses] = (
                    find(model, session, parts)
                    if joined is None
                    else joined.set_gradient([part.chosen for part in parts])
                )
                for mine, loss in zip(losses, found, strict=True):
                    mine.append(loss)
                if quick and algorithm.hears:
                    session.hear(np.array([_mean([loss]) for loss in found]))
                optimizer.step()
        return np.array([_mean(mine) for mine in losses])

    return step


def find_gradient(model: nn.Module, session: Session, drawn: Sequence[Drawn]) -> Sequence[Tensor]:
    """Set the gradient of the samples of all clients put together; return each client's losses."""
    ready_dropout(model, [mine.rows for mine in drawn], seed=session.seed)
    inputs, labels = (torch.cat(part) for part in zip(*(m.batch for m in drawn), strict=True))
    losses: Sequence[Tensor] = set_gradient(model, inputs, labels).split([len(m) for m in drawn])
    return losses


def find_mean_gradient(
    model: nn.Module, session: Session, drawn: Sequence[Drawn], fake: FakeUpdates | None = None
) -> Sequence[Tensor]:
    """Set the algorithm's own mean of the clients' gradients; return each client's losses."""
    gradients, losses = [], []
    for mine in drawn:
        loss = torch.empty(0)
        if len(mine):
            ready_dropout(model, [mine.rows], seed=session.seed)
            gradient, loss = find_client_gradient(model, mine.batch)
            if fake is not None and mine.client in fake:
                gradient = fake.make(mine.client, torch.zeros_like(gradient))
            gradients.append(gradient)
        losses.append(loss)
    session.hear(np.array([_mean([loss]) for loss in losses]))
    mean = aggregate(session, gradients, [len(mine) for mine in drawn])
    if fake is not None:
        fake.observe(mean)
    parameters = list(model.parameters())
    slopes = mean.split([parameter.numel() for parameter in parameters])
    for parameter, slope in zip(parameters, slopes, strict=True):
        parameter.grad = slope.reshape(parameter.shape).clone()
    return losses


def local_step(
    model: nn.Module, session: Session, drawn: Sequence[Drawn], fake: FakeUpdates | None = None
) -> Vector:
    """Train each client from the server's model, batch by batch, and average the models."""
    algorithm, server = session.algorithm, _read(model)
    updates, losses = [], []
    for mine in drawn:
        loss = float("nan")
        if len(mine):
            _write(model, server)
            ready_dropout(model, [mine.rows], seed=session.seed)
            loss = update_locally(
                model,
                mine.batch,
                batch_size=algorithm.batch_size,
                optimizer=algorithm.optimizer,
                learning_rate=algorithm.learning_rate,
                proximal=algorithm.proximal,
            )
            if fake is not None and mine.client in fake:
                updates.append(fake.make(mine.client, server))
            else:
                updates.append(_read(model))
        losses.append(loss)
    if updates:
        session.hear(np.array(losses))
        mean = aggregate(session, updates, [len(mine) for mine in drawn])
        _write(model, check_update(session.advance(server, mean), mean, session, "advance"))
        if fake is not None:
            fake.observe(_read(model) - server)
    return np.array(losses)


def update_locally(
    model: nn.Module,
    batch: Batch,
    *,
    batch_size: int,
    optimizer: str,
    learning_rate: float,
    proximal: float = 0.0,
) -> float:
    """Do what one client does in a round of the local form: step from where the model is.

    The model is changed in place, by an optimizer that starts afresh. Returns the mean over the
    samples of the loss that each had before its step.

    model: the server's, in training, its dropout readied for these samples.
    batch: the client's samples, inputs and labels; one or more.
    batch_size: m, how many samples a step is on; the last may be on fewer.
    optimizer: "adam" or "sgd".
    learning_rate: eta.
    proximal: mu, how strongly steps are pulled back to where the model is now.
    """
    if optimizer == "adam":
        # Adam's first step is as long where a gradient is next to nothing. All steps are among the
        # first here, so the smallest difference of rounding would grow.
        keep_in_torch(model)
    stepping = new_optimizer(model, optimizer, learning_rate)
    parts = zip(*(tensor.split(batch_size) for tensor in batch), strict=True)
    pull = Pull(model, proximal) if proximal else None
    return _mean([take_step(model, stepping, *part, pull=pull) for part in parts])


def find_client_gradient(model: nn.Module, batch: Batch) -> tuple[Tensor, Tensor]:
    """Do what one client does in a step of the pooled form: find the gradient of its mean loss.

    Returns one flat vector, in the order of model.parameters() and with zeros for those that the
    loss does not depend on, and the loss of each sample.

    model: the server's, in training, its dropout readied for these samples.
    batch: the client's samples, inputs and labels; one or more.
    """
    losses = set_gradient(model, *batch)
    slopes = ((torch.zeros_like(p) if p.grad is None else p.grad) for p in model.parameters())
    return torch.cat([slope.flatten() for slope in slopes]), losses


def aggregate(session: Session, updates: list[Tensor], counts: Sequence[int]) -> Tensor:
    """Return an algorithm's one update, and check that it is one.

    session: of the algorithm.
    updates: of the clients that drew samples.
    counts: how many each of all clients drew.
    """
    every = np.array(counts)
    clients = np.flatnonzero(every)
    mean = session.combine(updates, every[clients], clients.tolist())
    return check_update(mean, updates[0], session, "aggregate")


def check_update(found: Any, like: Tensor, session: Session, hook: str) -> Tensor:
    """Return what a hook of an algorithm returned, or raise an InputError at another shape."""
    if not isinstance(found, Tensor) or found.shape != like.shape or found.dtype != like.dtype:
        got = f"{tuple(found.shape)} of {found.dtype}" if isinstance(found, Tensor) else repr(found)
        raise InputError(
            f"{hook} of {session.algorithm.name} must return a tensor like its arguments, of shape "
            f"{tuple(like.shape)} and {like.dtype}; got {got[:80]}"
        )
    return found


class Pull:
    """Pulls a model back to where another is: adds strength / 2 * |w - anchor|^2 to its loss.

    anchor: the model that it is pulled to, as it is now.
    strength: of the pull.
    """

    def __init__(self, anchor: nn.Module, strength: float) -> None:
        self._anchor = [parameter.detach().clone() for parameter in anchor.parameters()]
        self._strength = strength

    def add_gradient(self, model: nn.Module) -> None:
        """Add the gradient of the pull to the parameters'."""
        for parameter, anchor in zip(model.parameters(), self._anchor, strict=True):
            pull = self._strength * (parameter.detach() - anchor)
            parameter.grad = pull if parameter.grad is None else parameter.grad + pull


def take_step(
    model: nn.Module,
    optimizer: Optimizer,
    inputs: Tensor,
    labels: Tensor,
    *,
    pull: Pull | None = None,
) -> Tensor:
    """Step once along the gradient of the mean loss, and return each sample's loss before it."""
    losses = set_gradient(model, inputs, labels)
    if pull is not None:
        pull.add_gradient(model)
    optimizer.step()
    return losses


def set_gradient(model: nn.Module, inputs: Tensor, labels: Tensor) -> Tensor:
    """Set the parameters' gradient to that of the mean loss; return each sample's loss.

    A model with a `train_chunk` gets that number of samples at a time: a part that fits the cache
    is faster, and the sum of the parts is the same.
    """
    if (direct := find_direct(model)) is not None and direct.takes(inputs, labels):
        return torch.from_numpy(direct.set_gradient(inputs, labels))
    model.zero_grad()
    chunk = getattr(model, "train_chunk", None) or len(labels)
    losses = []
    with _spare_single_sample(model, len(labels)):
        for some_inputs, some_labels in zip(inputs.split(chunk), labels.split(chunk), strict=True):
            loss = find_losses(model(some_inputs), some_labels)
            (loss.sum() / len(labels)).backward()
            losses.append(loss.detach())
    return torch.cat(losses)


@contextlib.contextmanager
def _spare_single_sample(model: nn.Module, samples: int) -> Iterator[None]:
    """Let batch normalisation use its running means where a batch is one sample.

    One sample has no spread to be normalised by, and torch refuses it.
    """
    layers = [m for m in model.modules() if is_batch_norm(m) and m.training] if samples == 1 else []
    for layer in layers:
        layer.eval()
    try:
        yield
    finally:
        for layer in layers:
            layer.train()


def is_batch_norm(module: nn.Module) -> bool:
    """Return whether a layer makes the samples of a batch change each other's scores."""
    return isinstance(module, nn.modules.batchnorm._BatchNorm)


def _mean(losses: Sequence[Losses]) -> float:
    tensors = [loss for loss in losses if isinstance(loss, Tensor) and len(loss)]
    if tensors:
        return float(torch.cat(tensors).mean())
    values = [value for loss in losses for value in loss.tolist()]
    return math.fsum(values) / len(values) if values else math.nan


def _state(model: nn.Module) -> Iterator[Tensor]:
    """Return all that is averaged: parameters, and buffers such as running means."""
    yield from model.parameters()
    yield from (buffer for buffer in model.buffers() if buffer.is_floating_point())


def _read(model: nn.Module) -> Tensor:
    return torch.cat([tensor.detach().flatten() for tensor in _state(model)])


def _write(model: nn.Module, vector: Tensor) -> None:
    tensors = list(_state(model))
    with torch.no_grad():
        for tensor, part in zip(tensors, vector.split([t.numel() for t in tensors]), strict=True):
            tensor.copy_(part.reshape(tensor.shape))
