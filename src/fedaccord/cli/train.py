"""The commands about training: train, and what comes before it: difficulty, pretrain, search."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedaccord._checks import check_whole
from fedaccord.cli.app import (
    Interrupted,
    Wording,
    add_wording,
    app,
    check_folder,
    check_report,
    command_line,
    complain_of,
    present,
)
from fedaccord.cli.destinations import Written, check_destination
from fedaccord.cli.options import (
    CACHE,
    AsJson,
    CacheFolder,
    ConfigFile,
    PartOption,
    ReportFile,
    choose_algorithms,
    prepare_building,
    read_config,
    read_part,
)
from fedaccord.errors import InputError
from fedaccord.federation.config.sections import override
from fedaccord.report.terminal import progress, show_count

if TYPE_CHECKING:
    from fedaccord.allocation import Allocation
    from fedaccord.federation.algorithms.base import Algorithm
    from fedaccord.federation.config.load import Config
    from fedaccord.federation.config.sections import DifficultySettings
    from fedaccord.federation.history import History
    from fedaccord.federation.runs.execute import Source


@app.command()
@add_wording
def train(
    wording: Wording,
    config_file: ConfigFile = None,
    algorithm: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Algorithm of the config, or a built-in one. Default: the config's first.",
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option(metavar="N", help="Random seed.")] = None,
    trial: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="Trial whose partition of the data to use, counted from 0 as in an audit.",
        ),
    ] = 0,
    contributions: Annotated[
        str | None,
        typer.Option(
            metavar="ALLOCATION.(json|csv)",
            help="Contribution of each agent. Default: all of its samples.",
        ),
    ] = None,
    save: Annotated[
        str | None, typer.Option(metavar="HISTORY.csv", help="Write every round to this file.")
    ] = None,
    cache: CacheFolder = None,
    as_json: AsJson = False,
    report: ReportFile = None,
) -> int:
    """Train a federation once, and show which agents reach their goals.

    The exit code is 0 if all agents reach their goals at the last evaluation, and 1 otherwise.
    """
    config = read_config(config_file)
    chosen = choose_algorithms(config, None if algorithm is None else [algorithm], path=config_file)
    name, settings = next(iter(chosen.items()))
    start = override(config.audit, seed=seed).seed
    check_whole("--trial", trial, least=0)
    brought = None if contributions is None else _load_contributions(contributions)
    if save is not None:
        check_destination(
            save, (".csv",), keep=contributions, what="history", written=Written.HISTORY
        )
    check_report(report, keep=config_file)
    source = prepare_building(config, cache or CACHE).source(start)
    from fedaccord.report import training as pages

    with progress(f"training {settings.rounds:,} rounds of {name}"):
        history = _train_as_in_audit(source, settings, trial, start, brought)
    if save is not None:
        history.save(save)
    return present(
        record=lambda: {"algorithm_name": name, "trial": trial, **history.to_dict()},
        parts=lambda: pages.show_run(history, name),
        page=lambda: pages.train_page(history, name, command=command_line()),
        report=report,
        as_json=as_json,
        wording=wording,
        names=source.names,
        success=bool(history.satisfied.all()),
    )


def _train_as_in_audit(
    source: Source, settings: Algorithm, trial: int, seed: int, contributions: Allocation | None
) -> History:
    """Train as an audit with this seed does in this trial, so that one of its runs can be seen."""
    from fedaccord.federation.training.loop import train as run
    from fedaccord.federation.training.rng import derive_seed

    own = derive_seed(seed, "trial", trial)
    return run(source.deal(trial), settings, contributions=contributions, seed=own)


def _load_contributions(path: str) -> Allocation:
    """Read what each agent contributes, and pass on what the reader noticed."""
    from fedaccord.allocation import Allocation

    brought = Allocation.load(path)
    complain_of(brought.notes)
    return brought


@app.command()
@add_wording
def difficulty(
    wording: Wording,
    config_file: ConfigFile = None,
    method: Annotated[
        str | None,
        typer.Option(
            help="Scoring method: trials (as in the paper) or loss. Default: the config's."
        ),
    ] = None,
    trials: Annotated[
        int | None, typer.Option(metavar="N", help="Number of trials, for the method trials.")
    ] = None,
    save: Annotated[
        str | None, typer.Option(metavar="SCORES.npz", help="Write the scores to this file.")
    ] = None,
    part: PartOption = None,
    cache: CacheFolder = None,
    as_json: AsJson = False,
    report: ReportFile = None,
) -> None:
    """Score how hard the agents' samples are, and show the bands of easy and hard samples.

    Finished trials are stored, so the same command continues after an interruption.
    """
    config = read_config(config_file)
    asked = _choose_method(config, method, trials)
    one = read_part(part)
    if one is not None and asked.method != "trials":
        raise InputError("--part needs the method trials; add --method trials, or leave --part out")
    if save is not None:
        check_destination(save, (".npz",), keep=config_file, what="file of scores")
    check_report(report, keep=config_file)
    building = prepare_building(config, cache or CACHE)
    try:
        scores = building.new_scores(asked.method, asked.options, part=one)
    except KeyboardInterrupt:
        kept = "; finished trials are stored, and the same command continues from there"
        raise Interrupted(f"interrupted{kept if asked.method == 'trials' else ''}") from None
    if save is not None:
        scores.save(save)
    from fedaccord.federation.data.pretraining import Bands

    bands = Bands(config.agents.hard, config.agents.easy)
    found = {
        name: {"points": len(pool), "mean": float(scores.values[pool].mean())}
        for name, pool in zip(("hard", "easy"), bands.pools(scores), strict=True)
    }
    means = {f"{name}, mean": band["mean"] for name, band in found.items()}
    head = f"difficulty by {asked.method}"
    rows = {"samples" if key == "points" else key: n for key, n in scores.summary().items()}
    record = {"summary": scores.summary(), "bands": found, "provenance": scores.provenance}
    present(
        record=lambda: {"method": asked.method, **record},
        parts=lambda: [_pages().list_pairs(head, {**rows, **means})],
        page=lambda: _pages().difficulty_page(scores, bands, command=command_line()),
        report=report,
        as_json=as_json,
        wording=wording,
    )


def _choose_method(config: Config, method: str | None, trials: int | None) -> DifficultySettings:
    """Return the config's settings, or a method's defaults if the user chose another method."""
    if trials is not None and method is None:
        method = "trials"
    settings = dataclasses.replace(config.difficulty, scores=None)
    if method is not None and method != settings.method:
        # Options of one method mean nothing to the other.
        settings = override(type(settings)(), method=method)
    return override(settings, trials=trials)


@app.command()
@add_wording
def pretrain(
    wording: Wording,
    config_file: ConfigFile = None,
    save: Annotated[
        str | None, typer.Option(metavar="WEIGHTS.npz", help="Write the weights to this file.")
    ] = None,
    cache: CacheFolder = None,
    as_json: AsJson = False,
    report: ReportFile = None,
) -> None:
    """Train the network on the pre-training pool, before federated training."""
    config = read_config(config_file)
    if config.pretraining.batches == 0:
        raise InputError(
            "[pretraining] batches is 0 in this config; set it to the number of batches to train"
        )
    if save is not None:
        check_destination(save, (".npz",), keep=config_file, what="file of weights")
    check_report(report, keep=config_file)
    weights = prepare_building(config, cache or CACHE).new_weights()
    if save is not None:
        weights.save(save)
    facts = {"accuracy": weights.accuracy, "batches": weights.batches}
    looks = [{"batches": batches, "accuracy": found} for batches, found in weights.record]
    rows = {"samples": weights.provenance["points"], "batches": weights.batches}
    present(
        record=lambda: {**facts, "record": looks, "provenance": dict(weights.provenance)},
        parts=lambda: [_pages().list_pairs("pre-training", {**rows, "accuracy": weights.accuracy})],
        page=lambda: _pages().pretrain_page(weights, command=command_line()),
        report=report,
        as_json=as_json,
        wording=wording,
    )


@app.command()
@add_wording
def search(
    wording: Wording,
    config_file: ConfigFile = None,
    draws: Annotated[int, typer.Option(metavar="N", help="Number of random choices to try.")] = 40,
    epochs: Annotated[
        float | None,
        typer.Option(
            metavar="E",
            help=(
                "Passes over the samples for each choice. Default: 1, or more until "
                "10,000 samples are used."
            ),
        ),
    ] = None,
    results: Annotated[
        str | None,
        typer.Option(
            metavar="FILE.sqlite",
            help="File that stores every choice tried, so that a search can continue.",
        ),
    ] = None,
    cache: CacheFolder = None,
    as_json: AsJson = False,
    report: ReportFile = None,
) -> None:
    """Try random learning rates and batch sizes on the pre-training pool; list the best first."""
    config = read_config(config_file)
    check_whole("--draws", draws)
    if epochs is not None and not 0 < epochs < float("inf"):
        raise InputError(f"--epochs must be a number above 0; got {epochs:g}")
    if results is not None:
        check_folder(results, "--results")
    check_report(report, keep=config_file)
    building = prepare_building(config, cache or CACHE)
    try:
        with show_count(f"trying {draws} choices") as told:
            found = building.search(draws=draws, epochs=epochs, path=results, progress=told)
    except KeyboardInterrupt:
        kept = (
            f"; finished choices are stored in {results}, and the same command continues from there"
        )
        raise Interrupted(f"interrupted{kept if results is not None else ''}") from None
    seed = config.pools.seed
    present(
        record=lambda: {"draws": [dataclasses.asdict(draw) for draw in found]},
        parts=lambda: [_pages().list_search(found).table("terminal")],
        page=lambda: _pages().search_page(found, seed=seed, command=command_line()),
        report=report,
        as_json=as_json,
        wording=wording,
    )


def _pages() -> Any:
    from fedaccord.report import preparation

    return preparation
