"""What several commands share: arguments and options, and what they stand for."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import tomllib
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from fedaccord._checks import check_known, check_workers, cores
from fedaccord._io.numbers import Marks, read_share
from fedaccord.cli.app import Interrupted
from fedaccord.errors import InputError
from fedaccord.report.terminal import complain, show_count
from fedaccord.wording import count, pluralize

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from fedaccord.federation.algorithms.base import Algorithm
    from fedaccord.federation.config.build import Building, Counter
    from fedaccord.federation.config.load import Config
    from fedaccord.federation.runs.execute import Engine, Source
    from fedaccord.federation.runs.parts import Part
    from fedaccord.federation.runs.store import RunStore

# Where finished runs, and scores and start weights, are kept unless an option names a place.
RESULTS = "fedaccord.sqlite"
CACHE = "fedaccord.cache"

# Numbers.


def read_probability(given: str | float) -> float:
    """Return a probability of the command line, which may be in per cent, as 95%."""
    try:
        return read_share(str(given), "it", Marks())
    except InputError as error:
        raise typer.BadParameter(str(error)) from None


# Input.

GameFile = Annotated[
    str,
    typer.Argument(
        metavar="GAME.json|MEASURES.csv",
        help="The game file, or a table of pilots with several measures.",
    ),
]
ConfigFile = Annotated[
    str | None,
    typer.Argument(
        metavar="CONFIG.toml",
        help="The federation's config. Default: the built-in one (handwritten digits).",
    ),
]

SheetName = Annotated[
    str | None,
    typer.Option(
        "--sheet",
        metavar="NAME",
        help="Sheet of an .xlsx file. Default: the first visible sheet with headings of a table.",
    ),
]

# Goals, limits and time.

Goals = Annotated[
    list[str] | None,
    typer.Option(
        metavar="X|NAME=X",
        help="Accuracy that all agents want, or one by name. Repeatable.",
    ),
]
Limits = Annotated[
    list[str] | None,
    typer.Option(
        metavar="N|NAME=N",
        help="The most samples that an agent can give from now on; pilots may have used more. "
        "Repeatable.",
    ),
]
HistogramsFile = Annotated[
    str | None,
    typer.Option(metavar="HISTOGRAMS.csv", help="Label counts that fill gaps in the pilots."),
]
TimeLimit = Annotated[float, typer.Option(metavar="SECONDS", help="Time limit for each solver.")]

# Output.

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON with all digits.")]
ReportFile = Annotated[
    str | None,
    typer.Option("--report", metavar="FILE.html", help="Write an HTML page to this file."),
]

# Where runs are made, and what keeps them.

Workers = Annotated[
    int | None,
    typer.Option(metavar="N", help="Parallel runs. Default: one per core."),
]
EngineName = Annotated[str, typer.Option(help="Where to run: local, flower (simulation) or ray.")]
Address = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS", help="Address of a Ray cluster: auto, host:port or ray://host:port."
    ),
]
Results = Annotated[
    str, typer.Option(metavar="FILE.sqlite", help="File that stores every finished run.")
]
PartOption = Annotated[
    str | None,
    typer.Option(
        "--part",
        metavar="I/N",
        help="Run only part I of N and store it by itself. 'fedaccord merge' joins the parts.",
    ),
]
CacheFolder = Annotated[
    str | None,
    typer.Option(
        "--cache",
        metavar="FOLDER",
        help=f"Folder for scores and start weights. Default: {CACHE}.",
    ),
]


# Options that are fields of a section of a config.


def add_options(section: type[Any], *, first: Sequence[str] = ()) -> Callable[..., Any]:
    """Return a command an option for every field of a section that has a help.

    The command gets them as `options`, a dict with None for those that were not given.

    section: a dataclass of `config.sections`.
    first: those that come before --workers in the help; the others come before --results.
    """
    fields = {f.name: f for f in dataclasses.fields(section) if f.metadata["help"]}
    lists = {name for name, f in fields.items() if str(f.type).startswith("tuple")}

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def call(**given: Any) -> Any:
            options = {name: given.pop(name) for name in fields}
            for name in lists:
                options[name] = _read_numbers(options[name], f"--{name}")
            return command(**given, options=options)

        hints = get_type_hints(command, include_extras=True)
        ours = {name: _parameter(f) for name, f in fields.items()}
        shown: list[inspect.Parameter] = []
        for parameter in inspect.signature(command).parameters.values():
            if parameter.name == "workers":
                shown += [ours.pop(name) for name in first]
            if parameter.name == "results":
                shown += ours.values()
            if parameter.name != "options":
                shown.append(parameter.replace(annotation=hints[parameter.name]))
        call.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
        call.__annotations__ = {parameter.name: parameter.annotation for parameter in shown}
        return call

    return decorate


def _parameter(field: dataclasses.Field[Any]) -> inspect.Parameter:
    # The annotation, or its name where annotations are postponed: int or "int | None".
    name = str(getattr(field.type, "__name__", field.type)).partition(" ")[0]
    kind = {"int": int, "float": float, "bool": bool}.get(name, str)
    # A switch has no --no- form: a config that turns it on is there to be changed.
    named = [f"--{field.name.replace('_', '-')}"] if kind is bool else []
    known = {key: field.metadata[key] for key in ("metavar", "help")}
    option = typer.Option(*named, **known)
    hint = Annotated[kind | None, option]  # type: ignore[valid-type]
    return inspect.Parameter(
        field.name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None, annotation=hint
    )


def _read_numbers(text: str | None, option: str) -> list[float] | None:
    """Return the numbers between commas, as in 1,.5,.25."""
    if text is None:
        return None
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise InputError(
            f'{option} must be numbers separated by commas, such as 1,.5; got "{text}"'
        ) from None


# The config, and what is made of it.


def read_config(path: str | None) -> Config:
    """Return the config of a file, or the built-in one."""
    from fedaccord.federation.config.load import Config

    return Config.default() if path is None else Config.load(path)


def choose_algorithms(
    config: Config, names: Sequence[str] | None, *, path: str | None
) -> Mapping[str, Algorithm]:
    """Return the chosen algorithms: of the config, or with its [training].

    config: the config.
    names: the user's choice; all of the config's where left out.
    path: where the config is from, None for the built-in one.
    """
    from fedaccord.federation.algorithms import ALGORITHMS
    from fedaccord.federation.config.load import DEFAULT, read_algorithms, read_tables

    if not names:
        return config.algorithms
    usual = [name for name, *_ in ALGORITHMS.values()]
    check_known(names, dict.fromkeys((*config.algorithms, *usual)), "the config has no algorithm")
    unnamed: dict[str, Any] = {name: {} for name in names if name not in config.algorithms}
    if not unnamed:
        return {name: config.algorithms[name] for name in names}
    builtin = resources.files("fedaccord.federation") / DEFAULT
    tables = tomllib.loads(builtin.read_text("utf-8")) if path is None else read_tables(path)
    known = {**config.algorithms, **read_algorithms(unnamed, tables.get("training", {}))}
    return {name: known[name] for name in names}


def prepare_building(config: Config, cache: str | Path) -> Building:
    """Prepare to make what a config describes, saying on a terminal what is under way.

    config: what to make.
    cache: the folder for scores and weights.
    """
    from fedaccord.federation.config.build import Building

    if config.model.name == "paper" and config.model.engine == "auto":
        from fedaccord.federation.models.fused import why_not

        reason = why_not()
        if reason is not None:
            complain(reason)
    return Building(config, cache=cache, stage=_show_stage)


@contextmanager
def _show_stage(what: str) -> Iterator[Counter]:
    with show_count(what) as show:
        yield show


def build_source(config: Config, seed: int, *, results: str, cache: str | None) -> Source:
    """Return a config's federation.

    config: read from a file, or the built-in one.
    seed: of its deals.
    results: the file that keeps runs.
    cache: the folder for scores and weights; that of the results where it is None.
    """
    return prepare_building(config, cache or Path(results).parent / CACHE).source(seed)


# Runs.


def choose_engine(
    name: str, workers: int | None, address: str | None
) -> tuple[Callable[..., Engine], int | None]:
    """Return what makes the engine, and its workers, or raise an InputError.

    name: of the engine.
    workers: how many runs at a time, by the user's choice.
    address: of a Ray cluster.
    """
    from fedaccord.federation.runs.execute import ENGINES

    if name not in ENGINES:
        raise InputError(f"--engine must be one of {', '.join(ENGINES)}; got {name!r}")
    if name == "ray":
        from fedaccord.federation.runs.ray import check_request

        check_request(workers, address)
        return functools.partial(ENGINES[name], address=address), workers
    if address is not None:
        raise InputError("--address needs --engine ray; add that, or leave --address out")
    if workers is not None:
        check_workers(workers)
    return ENGINES[name], cores() if workers is None and name == "local" else workers


@contextmanager
def explain_interrupt(results: str) -> Iterator[None]:
    """Have Ctrl-C say how many runs a file keeps, and how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        # Counted in the file itself: a run may have been committed and not yet been reported.
        there = count_kept(results)
        raise Interrupted(
            f"interrupted: {there:,} finished {pluralize(there, 'run is', 'runs are')} "
            f"stored in {results}; the same command continues from there"
        ) from None


def complain_of_versions(versions: Sequence[str]) -> None:
    """Say so where runs that are compared were not all made with the same versions."""
    if len(versions) > 1:
        complain(f"the runs come from {len(versions)} different versions: {'; '.join(versions)}")


def describe_kept(runs: int, results: str) -> str:
    """Return how many runs a file keeps."""
    return f"{count(runs, 'run')} {pluralize(runs, 'is', 'are')} stored in {results}"


@contextmanager
def open_results(results: str, part: Part | None) -> Iterator[str | RunStore]:
    """Return what keeps runs, a part's own file if there is a part; Ctrl-C says how to go on.

    results: the file of all runs.
    part: to be made; None for all runs.
    """
    if part is None:
        with explain_interrupt(results):
            yield results
        return
    from fedaccord.federation.runs.store import RunStore

    file = str(part.name_file(results))
    with explain_interrupt(file), RunStore(file, part=part) as store:
        yield store


def read_part(part: str | None) -> Part | None:
    """Return the part that --part names, or raise an InputError."""
    if part is None:
        return None
    from fedaccord.federation.runs.parts import Part

    return Part.parse(part)


def count_kept(results: str) -> int:
    """Return how many runs a file keeps."""
    from fedaccord.federation.runs.store import RunStore

    with RunStore(results) as store:
        return len(store)
