"""One process that has imported everything, and makes the processes of a deployment by forking.

Flower starts a new Python for every message to a client. With torch to import, four clients on two
cores take ten seconds for that, and a second to learn. Here every process is a fork instead: of its
own, with its own sockets, memory and end, and kill -9 is kill -9; only it need not import anything.

    python forking.py SOCKET

waits at a socket for requests: a line of JSON with a command and its arguments, a folder and the
environment, and with it the descriptors of standard output and error. The answer is a line with
the new process's id, and when it ends a line with its exit code. The shims that `write_shims`
makes ask for just that, so that Flower's own commands, looked for on the PATH, fork too.

When standard input closes, which it does however the tests end, all processes are ended.
"""

import contextlib
import ctypes
import gc
import importlib
import json
import os
import random
import selectors
import signal
import socket
import sys
import time
import traceback
from pathlib import Path

COMMANDS = {
    "flwr": "flwr.cli.app:app",
    "flower-superlink": "flwr.superlink.cli:flower_superlink",
    "flower-supernode": "flwr.supernode.cli:flower_supernode",
    "flower-superexec": "flwr.supercore.cli:flower_superexec",
    "flwr-serverapp": "flwr.superlink.cli:flwr_serverapp",
    "flwr-clientapp": "flwr.supernode.cli:flwr_clientapp",
}
# What apps import, torch's optimizers on their first step for one.
PRELOADED = (
    *("torch", "torch._dynamo", "numpy.random", "httpcore", "flwr.serverapp.strategy"),
    *("fedaccord.federation.flower.client", "fedaccord.federation.training.loop"),
    *("fedaccord.federation.flower.server", "sklearn.datasets"),
)

# Whoever ends the tests this way closes standard input too, and then there is much to end.
IGNORED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

# Intervals of heartbeats in seconds; the lesser is the least that a SuperLink takes.
PATIENT, IMPATIENT = 300, 10
LAST_WORDS = "this node will be killed"

SHIM = """#!{python} -ISs
import json, os, socket, sys
asked = {{"command": "{command}", "arguments": sys.argv[1:], "folder": os.getcwd()}}
asked["environment"] = dict(os.environ)
with socket.socket(socket.AF_UNIX) as here:
    here.connect({address!r})
    socket.send_fds(here, [json.dumps(asked).encode() + b"\\n"], [1, 2])
    answers = here.makefile()
    # Not until its end: other forks may have the socket too.
    pid, code = answers.readline(), answers.readline()
    sys.exit(int(code))
"""


def write_shims(folder: Path, address: str) -> None:
    """Write commands with the names of Flower's into a folder, to be put first on the PATH."""
    folder.mkdir()
    for command in COMMANDS:
        shim = folder / command
        shim.write_text(SHIM.format(python=sys.executable, command=command, address=address))
        shim.chmod(0o755)


class Process:
    """A process that was asked for: its id, and its exit code once it has ended."""

    def __init__(
        self, address: str, command: str, *arguments: object, folder: Path, log: Path, **settings
    ) -> None:
        asked = {
            "command": command,
            "arguments": [str(argument) for argument in arguments],
            "folder": str(folder),
            "environment": {**os.environ, **settings},
        }
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(address)
        with log.open("ab") as output:
            line = json.dumps(asked).encode() + b"\n"
            socket.send_fds(self._socket, [line], [output.fileno(), output.fileno()])
        self._answers = self._socket.makefile()
        self.pid = int(self._answers.readline())
        self.code: int | None = None

    def wait(self, seconds: float) -> int:
        """Wait for the end, and give the exit code."""
        if self.code is None:
            self._socket.settimeout(seconds)
            self.code = int(self._answers.readline())
            self.close()
        return self.code

    def close(self) -> None:
        """Wait no more."""
        self._answers.close()
        self._socket.close()

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal, if it has not been seen to end."""
        if self.code is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)


class _Hurried:
    """The module time, with pauses of a fifth."""

    def __getattr__(self, name):
        return getattr(time, name)

    @staticmethod
    def sleep(seconds: float) -> None:
        time.sleep(seconds / 5)


def shorten_pauses() -> None:
    """Let Flower's processes ask more often, which it has no options for.

    SuperNodes and ServerApps look every 3 s whether there is something for them.
    """
    from flwr.superlink.grid import http_grid
    from flwr.supernode import start_client_internal

    http_grid.time = start_client_internal.time = _Hurried()


def lengthen_patience() -> None:
    """Give up no process of Flower's that a slow machine keeps waiting, but one that says it goes.

    Who says nothing for twice the interval of heartbeats, 30 s, is given up. Here they are sent
    more often, and it takes minutes. To a node SIGUSR1 says that it will be killed: with its next
    heartbeat it asks to be given up as soon as a SuperLink ever does, and prints LAST_WORDS.
    """
    from flwr.supercore import heartbeat
    from flwr.supercore.corestate import in_memory_corestate, sql_corestate
    from flwr.supernode import fleet_http_connection
    from flwr.supernode.fleet_http_client import FleetHttpClient

    for module in (in_memory_corestate, sql_corestate):
        module.HEARTBEAT_DEFAULT_INTERVAL = PATIENT
    fleet_http_connection.HEARTBEAT_DEFAULT_INTERVAL = PATIENT
    heartbeat.HEARTBEAT_DEFAULT_INTERVAL = IMPATIENT
    send = FleetHttpClient.SendNodeHeartbeat

    def send_and_tell(client, request):
        answer = send(client, request)
        if request.heartbeat_interval == IMPATIENT:
            print(LAST_WORDS, flush=True)  # noqa: T201 - into its log
        return answer

    def hurry(*_signal: object) -> None:
        fleet_http_connection.HEARTBEAT_DEFAULT_INTERVAL = IMPATIENT

    FleetHttpClient.SendNodeHeartbeat = send_and_tell
    signal.signal(signal.SIGUSR1, hurry)


def serve(address: str) -> None:
    """Fork on request until standard input closes; then end every process that is left."""
    entries = {name: _entry(place) for name, place in COMMANDS.items()}
    for module in PRELOADED:
        with contextlib.suppress(ModuleNotFoundError):
            importlib.import_module(module)
    shorten_pauses()
    lengthen_patience()
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)
    # So that no child goes through all of this looking for garbage.
    gc.freeze()
    waiting: dict[int, socket.socket] = {}
    with socket.socket(socket.AF_UNIX) as door, selectors.DefaultSelector() as selector:
        door.bind(address)
        door.listen()
        selector.register(door, selectors.EVENT_READ)
        selector.register(sys.stdin, selectors.EVENT_READ)
        while True:
            ready = [key.fileobj for key, _ in selector.select(0.05)]
            _tell_ends(waiting)
            if sys.stdin in ready:
                break
            if door in ready:
                asker, _ = door.accept()
                pid = _fork(asker, entries, [door, selector])
                waiting[pid] = asker
    _end(waiting)


def _entry(place: str):
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)


def _fork(asker: socket.socket, entries: dict, inherited: list) -> int:
    line, descriptors, _, _ = socket.recv_fds(asker, 1 << 20, 2)
    while not line.endswith(b"\n"):
        line += asker.recv(1 << 20)
    pid = os.fork()
    if pid:
        for descriptor in descriptors:
            os.close(descriptor)
        asker.sendall(f"{pid}\n".encode())
        print(pid, json.loads(line)["command"], flush=True)  # noqa: T201 - into its log
        return pid
    code = 70
    try:
        for one in [*inherited, asker]:
            one.close()
        _become(json.loads(line), descriptors)
        code = _exit_code(entries[json.loads(line)["command"]])
    finally:
        # Nothing may get out of here into the parent's loop.
        if sys.exc_info()[0] is not None:
            traceback.print_exc()
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _become(asked: dict, descriptors: list[int]) -> None:
    """Take over all that a process is given when it is started."""
    os.setsid()
    if sys.platform == "linux":
        # PR_SET_PDEATHSIG: nobody outlives the one process that could end it.
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    for number in IGNORED:
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for target, descriptor in zip((1, 2), descriptors, strict=True):
        os.dup2(descriptor, target)
        os.close(descriptor)
    os.chdir(asked["folder"])
    os.environ.clear()
    os.environ.update(asked["environment"])
    sys.argv = [asked["command"], *asked["arguments"]]
    # What Python puts there for a script.
    sys.path[0] = str(Path(sys.executable).parent)
    random.seed()


def _exit_code(entry) -> int:
    try:
        entry()
    except SystemExit as end:
        if isinstance(end.code, str):
            sys.stderr.write(end.code + "\n")
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


def _tell_ends(waiting: dict[int, socket.socket]) -> None:
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                break
            with waiting.pop(pid) as asker, contextlib.suppress(OSError):
                asker.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())


def _end(waiting: dict[int, socket.socket]) -> None:
    """End every process: politely, then not."""
    for number, seconds in ((signal.SIGTERM, 5.0), (signal.SIGKILL, 5.0)):
        for pid in waiting:
            os.kill(pid, number)
        deadline = time.monotonic() + seconds
        while waiting and time.monotonic() < deadline:
            _tell_ends(waiting)
            time.sleep(0.02)


if __name__ == "__main__":
    serve(sys.argv[1])
