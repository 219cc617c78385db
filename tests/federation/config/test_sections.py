"""A section is written once: in configs, on the command line and as keyword arguments."""

import dataclasses
import inspect
import re

import pytest
import typer
from commands import run
from federation.made_up import MadeUp, by_points, made_up
from typer.testing import CliRunner

from fedaccord import compare_algorithms
from fedaccord.cli.options import add_options
from fedaccord.errors import InputError
from fedaccord.federation import defection_curves, seek_equilibrium
from fedaccord.federation.algorithms.base import FedAvg
from fedaccord.federation.config.load import Config
from fedaccord.federation.config.sections import (
    AuditOptions,
    FrontierOptions,
    key,
    override,
    read_section,
    real,
    takes,
    whole,
)
from fedaccord.federation.eqfed.seek import SeekOptions

FUNCTIONS = {
    defection_curves: AuditOptions,
    compare_algorithms: FrontierOptions,
    seek_equilibrium: SeekOptions,
}
COMMANDS = {"audit": AuditOptions, "frontier": FrontierOptions}


@dataclasses.dataclass(frozen=True)
class Patient(AuditOptions):
    """An audit with one more option.

    patience: how long to wait.
    """

    patience: int = key(whole(), 3, help="How long to wait.", metavar="N")


@takes(Patient)
def wait(source, *, options, workers=1):
    """Wait.

    source: for what.
    options: Patient.
    workers: who waits.
    """
    return options


def test_an_option_that_is_added_to_a_section_is_everywhere() -> None:
    assert read_section(Patient, "audit", {"patience": 7}).patience == 7
    assert wait("x").patience == 3
    assert wait("x", patience=7, levels=[0.5]) == Patient(patience=7, levels=(0.5,))
    assert "patience" in inspect.signature(wait).parameters
    assert "source: for what.\npatience: how long to wait.\nworkers: who waits." in wait.__doc__
    app, found = typer.Typer(), []

    @app.command()
    @add_options(Patient, first=("levels",))
    def command(options: dict, workers: int = 1, results: str = "") -> None:
        found.append(override(Patient(), **options))

    shown = CliRunner().invoke(app, ["--help"]).output
    assert re.search(
        r"--levels.*--workers.*--patience +N +How long to wait\..*--results", shown, re.S
    )
    assert CliRunner().invoke(app, ["--patience", "9", "--levels", "1,.5"]).exit_code == 0
    assert found == [Patient(patience=9, levels=(1.0, 0.5))]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda one: one.__name__)
def test_every_field_is_a_keyword_argument_with_its_default(function) -> None:
    parameters = inspect.signature(function).parameters
    for field in dataclasses.fields(FUNCTIONS[function]):
        # A config may leave the comparison's seed to the audit's.
        default = 0 if field.name == "seed" else field.default
        assert parameters[field.name].default == default
        assert re.search(rf"^{field.name}: ", function.__doc__, re.M)
    assert "options" not in parameters


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda one: one.__name__)
def test_an_argument_that_nobody_knows_is_a_type_error(function) -> None:
    with pytest.raises(TypeError, match=rf"{function.__name__}\(\) .*argument 'trails'"):
        function(MadeUp(), FedAvg(), trails=3)
    with pytest.raises(TypeError, match="got options= and trials="):
        function(MadeUp(), FedAvg(), options=FUNCTIONS[function](), trials=3)


def test_a_section_of_a_config_is_what_the_audit_takes(monkeypatch) -> None:
    made_up(monkeypatch, by_points)
    config = Config.parse("[audit]\ntrials = 2\nlevels = [1, 0.5]\nseed = 4")
    found = defection_curves(MadeUp(), FedAvg(), options=config.audit)
    assert found.options is config.audit
    again = defection_curves(MadeUp(), FedAvg(), trials=2, levels=[1, 0.5], seed=4)
    assert again.options == found.options
    assert again.curves == found.curves


@pytest.mark.parametrize("command", COMMANDS)
def test_every_field_with_a_help_is_an_option(command) -> None:
    shown = " ".join(run(command, "--help").stdout.split())
    for field in dataclasses.fields(COMMANDS[command]):
        assert (f"--{field.name.replace('_', '-')} " in shown) == bool(field.metadata["help"])


def test_options_are_read_as_keys_are() -> None:
    asked = override(AuditOptions(trials=9), trials=None, width=0.5)
    assert (asked.trials, asked.width) == (9, 0.5)
    with pytest.raises(InputError, match="--width must be a number above 0 and below 1; got 2"):
        override(AuditOptions(), width=2)
    with pytest.raises(InputError, match="rate must be a number above 0; got 'x'"):
        real(above=0)("rate", "x")
