"""A deployment of Flower on this machine: a SuperLink and SuperNodes, TLS, node authentication.

    with Deployment(folder, ["Harbour", "Hill"]) as deployment:
        run = deployment.start(app, rounds=3)
        deployment.kill("Hill")
        deployment.start_node("Hill")
        print(run.wait())

Everything is on loopback and in the folder: keys, logs, Flower's own files. When the block is left,
however that comes about, all processes end.
"""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from federation.flower.forking import LAST_WORDS, Process, write_shims
from processes import PATIENCE, QUIET, free_port

from fedaccord.federation.flower.keys import Keys, make_keys

CONNECTION = "trial"
# Tasks are taken up soon.
SETTINGS = {
    **QUIET,
    "FLWR_SUPEREXEC_TASK_POLL_INTERVAL": "0.25",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "PYTHONUNBUFFERED": "1",
    "NO_PROXY": "127.0.0.1,localhost",
}


class Deployment:
    """A SuperLink and one registered SuperNode per name.

    folder: an empty one, of its own.
    names: of the clients, under which their nodes are registered.
    strangers: for whom keys are made too, and who are not registered.
    data: for each client the file that its node's config names.
    """

    def __init__(
        self,
        folder: Path,
        names: Sequence[str],
        *,
        strangers: Sequence[str] = (),
        data: Mapping[str, Path] | None = None,
    ) -> None:
        self.folder = folder
        self.data = data or {}
        self.names = tuple(names)
        self.keys: Keys = make_keys(folder / "keys", [*names, *strangers])
        self.nodes: dict[str, Process] = {}
        self._beginnings: dict[str, int] = {}
        self._processes: list[Process] = []
        # A socket's path may have no more than 107 bytes, and a test's folder may.
        self._sockets = tempfile.TemporaryDirectory(prefix="fa-")
        self._address = str(Path(self._sockets.name) / "forking")
        self._port = free_port()
        self._runs = 0

    def __enter__(self) -> "Deployment":
        write_shims(self.folder / "bin", self._address)
        home = self.folder / "home"
        home.mkdir()
        (home / "config.toml").write_text(
            f'[superlink]\ndefault = "{CONNECTION}"\n\n[superlink.{CONNECTION}]\n'
            f'address = "127.0.0.1:{self._port}"\nroot-certificates = "{self.keys.authority}"\n'
        )
        with (self.folder / "forking.log").open("wb") as output:
            self._forking = subprocess.Popen(
                [sys.executable, Path(__file__).with_name("forking.py"), self._address],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                env={**os.environ, **SETTINGS},
            )
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_fault: object) -> None:
        self._forking.stdin.close()
        self._forking.wait(PATIENCE)
        for process in self._processes:
            process.close()
        self._sockets.cleanup()

    def _start(self) -> None:
        self.until(lambda: Path(self._address).exists(), "anything forks")
        self._start_superlink()
        for name in self.names:
            self.flwr("supernode", "register", self.keys.public(name), CONNECTION, "--name", name)
        for name in self.names:
            self.start_node(name)
        for name in self.names:
            self.until(lambda name=name: self.is_connected(name), f"{name} is connected")

    def _start_superlink(self) -> None:
        keys = self.keys
        self._process(
            "flower-superlink",
            *("--host", "127.0.0.1", "--port", self._port),
            *("--ssl-ca-certfile", keys.authority),
            *("--ssl-certfile", keys.certificate, "--ssl-keyfile", keys.certificate_key),
            *("--enable-supernode-auth", "--disable-runtime-dependency-installation"),
            log="superlink",
        )
        self.until(lambda: "Uvicorn running" in self.log("superlink"), "the SuperLink listens")

    def start_node(self, name: str) -> Process:
        """Start the SuperNode of a name, with its key; its log goes on where it ended."""
        self._beginnings[name] = len(self.log(name))
        own = ["--node-config", f'data="{self.data[name]}"'] if name in self.data else []
        self.nodes[name] = self._process(
            "flower-supernode",
            *("--superlink", f"127.0.0.1:{self._port}", "--port", free_port()),
            *("--root-certificates", self.keys.authority),
            *("--auth-supernode-private-key", self.keys.clients[name]),
            *own,
            log=name,
        )
        return self.nodes[name]

    def is_connected(self, name: str) -> bool:
        """Tell whether the SuperNode of a name, started last, has been let in."""
        return "SuperNode ID:" in self._own_log(name)

    def node_ids(self, name: str) -> list[int]:
        """Give the ids that the SuperLink gave the node of a name, each time it was started."""
        return [int(found) for found in re.findall(r"SuperNode ID: (\d+)", self.log(name))]

    def kill(self, name: str) -> None:
        """End a SuperNode with kill -9, of which its SuperLink hears nothing for 20 s."""
        self.nodes[name].signal(signal.SIGUSR1)
        self.until(lambda: LAST_WORDS in self._own_log(name), f"{name} has sent a heartbeat")
        self.nodes[name].signal(signal.SIGKILL)
        assert self.nodes[name].wait(PATIENCE) == -signal.SIGKILL

    def stop(self, name: str) -> None:
        """End a SuperNode as a user would, with SIGTERM."""
        self.nodes[name].signal(signal.SIGTERM)
        self.nodes[name].wait(PATIENCE)

    @contextlib.contextmanager
    def server_asleep(self) -> Iterator[None]:
        """Let the ServerApp of the last run see nothing of what happens in the block.

        Its SuperLink gives it up if that takes longer than all that the tests have patience for.
        """
        found = re.findall(r"^(\d+) flwr-serverapp$", self.log("forking"), flags=re.MULTILINE)
        os.kill(int(found[-1]), signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(int(found[-1]), signal.SIGCONT)

    def flwr(self, *arguments: object) -> str:
        """Run a command of flwr's that must succeed, and give what it prints."""
        before = len(self.log("flwr"))
        code = self._process("flwr", *arguments, log="flwr").wait(PATIENCE)
        printed = self.log("flwr")[before:]
        assert code == 0, f"flwr {arguments} left with {code}: {printed}"
        return printed

    def start(self, app: Path, **config: object) -> "Run":
        """Start a run of an app, with values for the keys of its config."""
        self._runs += 1
        log = f"run-{self._runs}"
        values = " ".join(f"{key.replace('_', '-')}={_toml(v)}" for key, v in config.items())
        arguments = ["run", app, CONNECTION, "--stream", *(["-c", values] if values else [])]
        return Run(self, log, self._process("flwr", *arguments, log=log))

    def log(self, name: str) -> str:
        """Give what a process printed so far: a node by its name, superlink, flwr, run-1, ..."""
        path = self._log_path(name)
        return path.read_text(errors="replace") if path.exists() else ""

    def until(self, happened: Callable[[], bool], what: str) -> None:
        """Wait until something has happened."""
        deadline = time.monotonic() + PATIENCE
        while not happened():
            assert self._forking.poll() is None, self.log("forking")
            assert time.monotonic() < deadline, f"in vain until {what}: {self.all_logs()}"
            time.sleep(0.05)

    def all_logs(self) -> str:
        """Give the end of every log, for a test that fails."""
        logs = sorted(self.folder.glob("*.log"))
        return "\n".join(f"--- {path.name}\n{self.log(path.stem)[-3000:]}" for path in logs)

    def _process(self, command: str, *arguments: object, log: str) -> Process:
        path = f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
        process = Process(
            self._address,
            command,
            *arguments,
            folder=self.folder,
            log=self._log_path(log),
            PATH=path,
            FLWR_HOME=str(self.folder / "home"),
            **SETTINGS,
        )
        self._processes.append(process)
        return process

    def _own_log(self, name: str) -> str:
        """Give what the node of a name printed since it was started last."""
        return self.log(name)[self._beginnings[name] :]

    def _log_path(self, name: str) -> Path:
        return self.folder / f"{name}.log"


class Run:
    """A run of an app: what its ServerApp printed, and how it ended."""

    def __init__(self, deployment: Deployment, log: str, process: Process) -> None:
        self._deployment = deployment
        self._log = log
        self._process = process

    @property
    def log(self) -> str:
        """What the ServerApp printed so far."""
        return self._deployment.log(self._log)

    def until(self, text: str, *, times: int = 1) -> None:
        """Wait until the ServerApp has printed a text so many times."""
        self._deployment.until(
            lambda: self.log.count(text) >= times or self._process.code is not None,
            f"{self._log} prints {text}",
        )

    def wait(self) -> str:
        """Wait for the end of a run that must succeed, and give its log."""
        self._process.wait(PATIENCE)
        found = re.search(r"started run (\d+)", self.log)
        assert found, self._deployment.all_logs()
        listed = self._deployment.flwr("ls", CONNECTION, "--run-id", found[1], "--format", "json")
        ended = json.loads(listed)["runs"][0]["status"]
        assert ended == "finished:completed", f"{ended}: {self._deployment.all_logs()}"
        return self.log


def _toml(value: object) -> str:
    return str(value).lower() if isinstance(value, bool | int | float) else f"'{value}'"
