"""What the commands about training share: the config, options that override it, and building."""

from __future__ import annotations

import contextlib
import dataclasses
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedaccord._lazy import imported
from fedaccord.errors import InputError
from fedaccord.report.terminal import complain

if TYPE_CHECKING:
    from fedaccord.federation.algorithms.base import Algorithm
    from fedaccord.federation.config.build import Building, Counter
    from fedaccord.federation.config.load import Config


def read_config(path: str | None) -> Config:
    """Read a config, or give the built-in one."""
    from fedaccord.federation.config.load import Config

    return Config.default() if path is None else Config.load(path)


def overridden(section: Any, **options: Any) -> Any:
    """Give a section of a config with the options that were given in place of its own values.

    section: the section.
    options: by the keys they override; None where an option was not given.
    """
    readers = {f.name: f.metadata["reader"] for f in dataclasses.fields(section)}
    given = {
        name: readers[name](f"--{name.replace('_', '-')}", value)
        for name, value in options.items()
        if value is not None
    }
    return dataclasses.replace(section, **given)


def chosen_algorithms(
    config: Config, names: Sequence[str] | None, *, path: str | None
) -> Mapping[str, Algorithm]:
    """Give the algorithms that were asked for: of the config, or with its [training].

    config: the config.
    names: what was asked for; all of the config's where left out.
    path: where the config is from, None for the built-in one.
    """
    from fedaccord.federation.algorithms import ALGORITHMS
    from fedaccord.federation.config.load import read_algorithms
    from fedaccord.federation.config.settings import check_known

    if not names:
        return config.algorithms
    usual = [name for name, *_ in ALGORITHMS.values()]
    known = dict.fromkeys((*config.algorithms, *usual))
    check_known(names, known, "the config has no algorithm")
    unnamed: dict[str, Any] = {name: {} for name in names if name not in config.algorithms}
    made = read_algorithms(unnamed, _training_section(path)) if unnamed else {}
    return {name: made[name] if name in made else config.algorithms[name] for name in names}


def _training_section(path: str | None) -> Any:
    """Read what all algorithms of a config share, out of a file that has been checked."""
    from fedaccord.federation.config.load import DEFAULT, read_tables

    builtin = resources.files("fedaccord.federation") / DEFAULT
    if path is None:
        return tomllib.loads(builtin.read_text(encoding="utf-8")).get("training", {})
    return read_tables(path).get("training", {})


def numbers(text: str | None, option: str) -> list[float] | None:
    """Read numbers between commas, as in 1,.5,.25."""
    if text is None:
        return None
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise InputError(
            f'{option} must be numbers between commas, as 1,.5; got "{text}"'
        ) from None


def building_of(config: Config, cache: str | Path) -> Building:
    """Prepare to make what a config describes, saying on a terminal what is under way.

    config: what to make.
    cache: the folder for scores and weights.
    """
    module = imported("fedaccord.federation.config.build")
    if config.model.name == "paper" and config.model.engine == "auto":
        reason = imported("fedaccord.federation.models.fused").why_not()
        if reason is not None:
            complain(reason)
    building: Building = module.Building(config, cache=cache, stage=_stage)
    return building


@contextlib.contextmanager
def _stage(what: str) -> Iterator[Counter]:
    from fedaccord.report.live import show_count

    with show_count(what) as told:
        yield told
