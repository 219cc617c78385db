"""Who is to take part, what each wants and a plan asks of it, and how training is to be done.

All of it is checked before anything begins.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fedaccord._checks import Vector, as_plain, check_whole, is_real
from fedaccord._io.files import check_replaceable
from fedaccord.allocation import Allocation
from fedaccord.errors import InputError
from fedaccord.federation.algorithms.base import Algorithm
from fedaccord.federation.remote import protocol
from fedaccord.federation.remote.protocol import LARGEST, Order, clip
from fedaccord.federation.training.rng import stream

Requirements = float | Mapping[str, float]
Plan = Allocation | Mapping[str, float] | str | Path

# A client's own name is not to fill the logs.
LONGEST_NAME = 200
# Contributions of a plan that are whole but for rounding are not rounded up.
NEARLY = 1e-9


def read_plan(plan: Plan | None) -> Allocation | None:
    """Read a plan in whatever form it is given."""
    if plan is None or isinstance(plan, Allocation):
        return plan
    if isinstance(plan, Mapping):
        return Allocation(list(plan.values()), list(plan))
    return Allocation.load(plan)


def find_name_fault(name: Any) -> str | None:
    """Return why nobody can be called so, as the end of a sentence on the name; None if possible.

    Names are read without the spaces around them, so one with such spaces is nobody's.
    """
    if not isinstance(name, str):
        return "is no text"
    if not name.strip():
        return "is empty"
    if len(name) > LONGEST_NAME:
        return f"is longer than {LONGEST_NAME} characters"
    if not name.isprintable():
        return "has characters that cannot be printed"
    return None if name == name.strip() else "begins or ends with a space"


def name_members(requirements: Requirements, plan: Allocation | None) -> list[str] | None:
    """Return the members' names, where requirements or plan name them, and check what is known.

    Those of the requirements come first, and their order is the members'. None where no client is
    named: then every client that is there takes part.
    """
    wanted = list(requirements) if isinstance(requirements, Mapping) else None
    planned = None if plan is None or plan.agents is None else list(plan.agents)
    names = planned if wanted is None else wanted
    if names is None:
        # One for all is checked by any name.
        read_requirements(requirements, ["each client"])
        if plan is not None:
            raise InputError(
                "the plan does not name the agents of its contributions; add their names"
            )
        return None
    if not names:
        raise InputError("no client is named; name the clients, or give one requirement for all")
    for name in [*names, *(planned or ())]:
        fault = find_name_fault(name)
        if fault is not None:
            raise InputError(f"no client can be called {clip(repr(name), 60)}: it {fault}")
    twice = next((name for name, times in Counter(names).items() if times > 1), None)
    if twice is not None:
        raise InputError(f"{twice} is named twice; give each client one line")
    read_requirements(requirements, names)
    if plan is not None:
        round_quotas(plan, names)
    return names


def read_requirements(requirements: Requirements, names: Sequence[str]) -> Vector:
    """Return the accuracy that each member wants, in the order of the names."""
    if not isinstance(requirements, Mapping):
        requirements = dict.fromkeys(names, requirements)
    for name in names:
        if name not in requirements:
            raise InputError(f"no requirement is given for {name}; say what accuracy it wants")
        given: Any = requirements[name]
        if not (is_real(as_plain(given)) and 0 < given <= 1):
            raise InputError(
                f"the requirement of {name} must be an accuracy above 0 and at most 1; got "
                f"{given!r}"
            )
    return np.array([float(requirements[name]) for name in names])


def round_quotas(plan: Allocation, names: Sequence[str]) -> dict[str, int]:
    """Read a plan as quotas, each rounded up to a whole point: who gives less may fall short.

    plan: who gives how much.
    names: of the members; a plan without names has their order.
    """
    values = plan.ordered_for(names).contributions.tolist()
    if len(values) != len(names):
        raise InputError(
            f"the plan has {len(values)} contributions for {len(names)} clients; give one for each"
        )
    if not any(values):
        raise InputError("the plan asks no client for any sample; it must ask at least one")
    for name, value in zip(names, values, strict=True):
        if value > LARGEST:
            raise InputError(f"the plan asks {name} for {value:g} samples, which no client has")
    quotas = [math.ceil(value - NEARLY * max(value, 1)) for value in values]
    if not any(quotas):
        raise InputError(
            f"the plan asks no client for more than {max(values):g} samples, 0 when rounded; "
            "it must ask at least one client for a whole sample"
        )
    return dict(zip(names, quotas, strict=True))


def round_reserves(plan: Allocation | None, names: Sequence[str]) -> list[int] | None:
    """Return what a plan has each client hold in reserve, rounded up; None where it has none."""
    held = None if plan is None else plan.ordered_for(names).reserve
    return None if held is None else [math.ceil(n - NEARLY * max(n, 1)) for n in held.tolist()]


def check_selection(algorithm: Algorithm, fraction_train: float) -> None:
    """Refuse to select some clients where all must deliver in each round."""
    if algorithm.withholds and fraction_train < 1:
        raise InputError(
            f"{algorithm.name} sends its model to clients that deliver in each round: let "
            "fraction_train be 1"
        )


def sort_names(names: Iterable[str]) -> list[str]:
    """Sort names as people do: "client 10" after "client 9"."""

    def size(digits: str) -> tuple[int, str]:
        # Not as an int: Python reads none of thousands of digits.
        counted = digits.lstrip("0")
        return (len(counted) if digits else -1), counted

    def parts(name: str) -> tuple[list[tuple[str, tuple[int, str]]], str]:
        pairs = re.findall("([^0-9]*)([0-9]*)", name)
        return [(text, size(digits)) for text, digits in pairs], name

    return sorted(names, key=parts)


def select_members(
    names: Sequence[str], here: Collection[str], count: int, *, seed: int, place: tuple[str, int]
) -> list[str]:
    """Choose some of the members that are there, by the run's seed alone.

    A framework's own choice goes by the ids of nodes, which change, and by a random state that
    anybody may touch.

    names: of all members.
    here: who is there.
    count: how many to choose.
    seed: of the run.
    place: what they are chosen for, and in which round.
    """
    # The order of everybody, so that who is chosen hardly depends on who else is there.
    order = stream(seed, "selection", *place).permutation(len(names))
    there = [i for i in order if names[i] in here]
    return [names[i] for i in sorted(there[:count])]


def choose_algorithm(
    kind: type[Algorithm], given: Algorithm | None, chosen: Mapping[str, Any]
) -> Algorithm:
    """Make the algorithm out of its settings, or see to it that the one given runs here."""
    if given is None and kind is Algorithm:
        raise InputError("say which algorithm to run, such as algorithm=MwFed()")
    if given is not None and chosen:
        raise InputError(
            f"{min(chosen)} is a setting of the algorithm; set it where the algorithm is made"
        )
    algorithm = given or kind(**{"form": "local", "evaluate_every": 1, **chosen})
    if not isinstance(algorithm, kind):
        raise InputError(f"this strategy runs {kind.name}; got {algorithm.name}")
    if algorithm.trains_alone:
        raise InputError("clients that learn alone need no server; use train() at each")
    if algorithm.form == "pooled" and algorithm.local_batches > 1:
        raise InputError(
            "in the pooled form a round with remote clients is one step: set local_batches to 1, "
            'or form to "local"'
        )
    return algorithm


def check_options(stop_at_goal: Any, node_deadline: Any, ask_for: Sequence[str], seed: int) -> None:
    """Refuse options of a strategy that it could not keep."""
    if stop_at_goal is not None:
        expected = "a whole number of 1 or more, or None"
        check_whole("stop_at_goal", stop_at_goal, expected=expected)
    if not (isinstance(node_deadline, int | float) and 0 <= node_deadline < math.inf):
        raise InputError(f"node_deadline must be a number of seconds; got {node_deadline!r}")
    for what in ask_for:
        if what not in protocol.EXTRAS:
            raise InputError(
                f"clients can be asked for {' and '.join(protocol.EXTRAS)}; got {what!r}"
            )
    # Refuses a seed that is none; records hold no larger one.
    stream(seed, "selection")
    if seed > protocol.LARGEST:
        raise InputError(f"the seed must be below 2**63; got {seed}")


def check_config(config: Mapping[str, Any], kind: type[Order]) -> None:
    """Refuse a user's own values under keys that the strategy writes, and would write over."""
    # A framework's own server may leave the round in the config that it is given.
    own = {field.name.replace("_", "-") for field in dataclasses.fields(kind)} - {"server-round"}
    taken = sorted(own & set(config))
    if taken:
        raise InputError(
            f"the config for clients has {taken[0]}, which the strategy sets itself; pass it to "
            "the strategy if it is a setting there, or rename it"
        )


def check_history_file(path: str | Path | None) -> None:
    """Refuse a file that could not be written, before any time goes into what it is to hold."""
    if path is None:
        return
    try:
        there = Path(path).parent.is_dir()
        if there:
            check_replaceable(path)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"the history cannot be written to {str(path)!r}: {reason}") from None
    if not there:
        raise InputError(f"the folder of {path} is not there; make it first")
