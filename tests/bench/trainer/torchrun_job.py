"""The rival of ElasticJob: the same training under torchrun's elastic launcher, one agent per
learner. A new agent is a node that joins, a stopped agent one that leaves."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import commits
import mortal
import trainers
from commits import Commit
from sizes import SIZES

_LAUNCHER = Path(__file__).with_name("torchrun.py")
_LEARNER = Path(__file__).with_name("torch_learner.py")

_ENVIRONMENT = {
    "USE_LIBUV": "0",
    # In torch 2.6, if launcher and workers share their stores, no node can join a second time.
    "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
}


def _free_port() -> int:
    """torchrun's store has to be named before it listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Agent:
    def __init__(self, popen: subprocess.Popen, log: Path, commits_file: Path) -> None:
        self.popen = popen
        self.log = log
        self._commits_file = commits_file

    def running(self) -> bool:
        return self.popen.poll() is None

    def commits(self) -> list[Commit]:
        return commits.read(self._commits_file)

    def workers(self) -> list[int]:
        """The process that trains now: one pid, or none while the agent replaces it."""
        children = Path(f"/proc/{self.popen.pid}/task/{self.popen.pid}/children")
        return [int(pid) for pid in children.read_text().split()]

    def kill(self) -> None:
        """Kills the process that trains; the agent starts another."""
        for worker in self.workers():
            os.kill(worker, signal.SIGKILL)

    def die_in_reduction(self, share: float) -> float:
        """Lets that process die: see mortal.die."""
        return mortal.die(self._commits_file, share)

    def vanish(self) -> None:
        """Kills the agent and the processes that it started."""
        workers = self.workers() if self.running() else []
        self.popen.kill()
        self.popen.wait()
        for worker in workers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(worker, signal.SIGKILL)


class TorchrunJob:
    """`last_call`: seconds that a rendezvous waits for more nodes; None: torchrun's default.
    `core_of`: the core of each agent, by its number."""

    def __init__(
        self,
        model: str,
        last_call: int | None,
        core_of: Callable[[int], int] = trainers.core_of,
    ) -> None:
        self._core_of = core_of
        self._scratch = tempfile.TemporaryDirectory(prefix="pliant-bench-torchrun-")
        self._folder = Path(self._scratch.name)
        self._agents: list[Agent] = []
        self.shards = SIZES[model][1]
        settings = [] if last_call is None else [f"--rdzv-conf=last_call_timeout={last_call}"]
        self._command = [
            sys.executable, "-B", str(_LAUNCHER), "--nnodes=1:4",
            "--nproc-per-node=1", "--max-restarts=1000", "--rdzv-backend=c10d", "--rdzv-id=bench",
            f"--rdzv-endpoint=127.0.0.1:{_free_port()}", *settings,
            "--local-addr=127.0.0.1", str(_LEARNER), model,
            f"--snapshot={self._folder / 'snapshot'}",
        ]  # fmt: skip

    def __enter__(self) -> "TorchrunJob":
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        for agent in self._agents:
            agent.vanish()
        if error is not None:
            for agent in self._agents:
                lines = agent.log.read_text(errors="replace").splitlines()
                print(agent.log, *lines[-15:], sep="\n  ", file=sys.stderr)
        self._scratch.cleanup()

    def join(self, count: int = 1) -> list[Agent]:
        return [self._start() for _ in range(count)]

    def leave(self, agents: Sequence[Agent]) -> None:
        """Removes agents like lost nodes: in torch 2.6 an agent that is asked to stop closes the
        rendezvous, and so the other agents stop, too."""
        for agent in agents:
            agent.vanish()

    def _start(self) -> Agent:
        number = len(self._agents)
        file = self._folder / f"commits-{number}"
        log = self._folder / f"agent-{number}.log"
        core = self._core_of(number)
        with log.open("w") as output:
            popen = subprocess.Popen(
                ["taskset", "--cpu-list", str(core), *self._command, str(file)],
                env=trainers.environment(**_ENVIRONMENT),
                stdout=output,
                stderr=output,
            )
        self._agents.append(Agent(popen, log, file))
        return self._agents[-1]
