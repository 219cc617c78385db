"""The commands about Flower: an app to start from, keys for a deployment."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Annotated

import typer

from fedaccord.cli.app import app
from fedaccord.errors import InputError
from fedaccord.report.terminal import emit_text, plain
from fedaccord.wording import count

if TYPE_CHECKING:
    from pathlib import Path

    from fedaccord.federation.flower.keys import Keys

flower = typer.Typer(
    add_completion=False,
    rich_markup_mode="rich",
    suggest_commands=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Run a real federation with Flower.",
)
app.add_typer(flower, name="flower")

# The name of the connection in Flower's config, in the commands that are printed.
CONNECTION = "federation"
PORT = 8000


@flower.command()
def init(
    folder: Annotated[
        str, typer.Argument(metavar="DIR", help="Folder to create. It must be new or empty.")
    ],
) -> None:
    """Write a Flower app that is ready to run: four hospitals with digits. Adapt it to your data.

    Its README.md has the commands for a simulation and for a deployment.
    """
    from fedaccord.federation.flower.templates import write_app

    made = write_app(folder)
    emit_text(
        _join_lines(
            f"The app {made.project} is in {folder}; its Python package is {made.package}.",
            "README.md there has the commands that run it.",
        )
    )


@flower.command()
def keys(
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="Folder for the keys.")],
    names: Annotated[
        list[str],
        typer.Argument(metavar="NAME...", help="Names of the clients, such as hospitals."),
    ],
    host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="HOST",
            help="Address at which clients reach the server. Repeatable. Default: this machine.",
        ),
    ] = None,
) -> None:
    """Make the keys of a deployment, for the server and each client, and print the next steps.

    Existing keys are kept: run the same command with new names to add clients.
    """
    if not folder or not folder.isprintable():
        raise InputError(
            f"the folder {folder!r} has characters that cannot be typed; choose a plain name"
        )
    from fedaccord.federation.flower.keys import make_keys

    made = make_keys(folder, names, hosts=host)
    emit_text(
        _join_lines(_count_files(made), *_list_next_steps(made, host[0] if host else "127.0.0.1"))
    )


def _join_lines(*lines: str) -> str:
    """Return lines one below the other, with nothing hidden in them."""
    return "\n".join(plain(line) for line in lines)


def _count_files(keys: Keys) -> str:
    files = count(len(keys.made), "file")
    return f"{files} made in {keys.folder}. Files that end in .key are private: do not share them."


def _list_next_steps(keys: Keys, host: str) -> list[str]:
    return [
        "",
        "# the server; anyone who reaches its port can register clients and start runs,",
        "# so let others reach only the paths under /v1/fleet/",
        _join_command(
            "flower-superlink",
            *("--host", "127.0.0.1", "--port", PORT),
            *("--ssl-ca-certfile", _write_path(keys.authority)),
            *("--ssl-certfile", _write_path(keys.certificate)),
            *("--ssl-keyfile", _write_path(keys.certificate_key)),
            *("--enable-supernode-auth", "--disable-runtime-dependency-installation"),
        ),
        "",
        "# once, in config.toml in ~/.flwr or in the folder that FLWR_HOME names",
        f"[superlink.{CONNECTION}]",
        f'address = "127.0.0.1:{PORT}"',
        f"root-certificates = {_write_toml(keys.authority.resolve())}",
        "",
        "# once for each client",
        *(
            _join_command(
                "flwr supernode register",
                _write_path(keys.public(name)),
                CONNECTION,
                *_write_name(name),
            )
            for name in keys.clients
        ),
        "",
        "# at each client, which needs ca.crt and its own key",
        *(_start_node(keys, name, host) for name in keys.clients),
        "",
        "# the run",
        f"flwr run APP {CONNECTION} --stream",
    ]


def _start_node(keys: Keys, name: str, host: str) -> str:
    return _join_command(
        "flower-supernode",
        *("--superlink", f"[{host}]:{PORT}" if ":" in host else f"{host}:{PORT}"),
        *("--root-certificates", _write_path(keys.authority)),
        *("--auth-supernode-private-key", _write_path(keys.clients[name])),
    )


def _join_command(command: str, *arguments: object) -> str:
    return f"{command} {shlex.join(map(str, arguments))}"


def _write_path(path: Path) -> str:
    """Write a path so that no command takes it for an option."""
    return f"./{path}" if str(path).startswith("-") else str(path)


def _write_name(name: str) -> tuple[str, ...]:
    return (f"--name={name}",) if name.startswith("-") else ("--name", name)


def _write_toml(path: Path) -> str:
    """Write a path as a string of TOML, which has JSON's escapes."""
    return json.dumps(str(path), ensure_ascii=False)
