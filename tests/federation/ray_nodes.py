"""A Ray cluster of several nodes on this machine, each a process that can be killed."""

import contextlib
import functools
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from processes import QUIET, free_port, processes, told, until

from fedaccord.federation.runs.processes import ONE_THREAD

RAY = Path(sys.executable).with_name("ray")
SETTINGS = {
    **QUIET,
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "1",
    # Half a minute is too little on a busy machine.
    "RAY_CLIENT_SERVER_CHECK_CHANNEL_TIMEOUT_S": "240",
}


ASK = """
import sys
from ray._raylet import GcsClient
print(len(GcsClient(address=sys.argv[1]).get_all_node_info(timeout=60)))
"""


def asked(address, environment):
    """Ask a Ray how many nodes it has, in an environment with its token or without."""
    command = [sys.executable, "-c", ASK, address]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240)


def listens(port):
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5):
        return True
    return False


class Node:
    """A node of a cluster, started by the command that the page on Ray gives."""

    def __init__(self, log, *options, cpus=1):
        self._process = subprocess.Popen(
            [
                *(RAY, "start", "--block", f"--num-cpus={cpus}", "--object-store-memory=90000000"),
                *("--min-worker-port=0", "--max-worker-port=0", *options),
            ],
            # Without the tests' one thread, which would make things right by chance.
            env={key: value for key, value in os.environ.items() if key not in ONE_THREAD}
            | SETTINGS,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    @property
    def raylet(self):
        """The process that all the workers of the node are children of."""
        return until(self._raylet, "a node's raylet runs")

    def _raylet(self):
        assert self._process.poll() is None, "a node did not start"
        found = processes()
        mine = [pid for pid, one in found.items() if one.parent == self._process.pid]
        return next((pid for pid in mine if found[pid].name == "raylet"), None)

    def stop(self):
        self._process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(60)
        self._process.kill()
        self._process.wait()


class Cluster:
    """A head with one CPU, and the nodes that join it; leaves no process and no file behind."""

    def __init__(self, cpus=1):
        self.port, self.client_port = free_port(), free_port()
        self.address = f"127.0.0.1:{self.port}"
        # Short, for there are sockets in it.
        self._folder = Path(tempfile.mkdtemp(prefix="ray-", dir="/tmp"))
        self._log = (self._folder / "log").open("wb")
        self.nodes = []
        self.head = self._start(
            *("--head", f"--port={self.port}", f"--ray-client-server-port={self.client_port}"),
            *("--include-dashboard=false", f"--temp-dir={self._folder}"),
            cpus=cpus,
        )
        for port in (self.port, self.client_port):
            until(functools.partial(listens, port), "the head listens")

    def _start(self, *options, **more):
        self.nodes.append(Node(self._log, *options, **more))
        return self.nodes[-1]

    def add(self):
        """Start another node with one CPU."""
        return self._start(f"--address={self.address}")

    def stop(self):
        for node in reversed(self.nodes):
            node.stop()
        self._log.close()
        # Whatever a killed node has left.
        for pid in self._left():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _left(self):
        for pid in processes():
            if str(self._folder).encode() in told(pid):
                yield pid

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.stop()
