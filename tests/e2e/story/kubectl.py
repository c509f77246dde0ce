"""Runs kubectl as a user would."""

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from .errors import StoryError


_PLUGINS = Path(__file__).resolve().parents[3] / "cli"  # has kubectl-pliant


class Kubectl:
    def __init__(self, program: str, namespace: str, user: str = "") -> None:
        self._program = program
        self.namespace = namespace
        self._user = user

    def within(self, namespace: str) -> "Kubectl":
        return Kubectl(self._program, namespace, self._user)

    def acting_as(self, user: str) -> "Kubectl":
        """With the rights of another user. The caller must have the right to impersonate."""
        return Kubectl(self._program, self.namespace, user)

    def run(self, *arguments: str, stdin: str | None = None) -> str:
        result = self.attempt(*arguments, stdin=stdin)
        if result.returncode != 0:
            raise StoryError(f"kubectl {' '.join(arguments)}: {result.stderr.strip()}")
        return result.stdout

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """A process whose output may be read while it runs."""
        return subprocess.Popen(
            [self._program, "--namespace", self.namespace, *arguments],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip

    def attempt(self, *arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess:
        return subprocess.run(
            [self._program, "--namespace", self.namespace, *(["--as", self._user] if self._user else []), *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
        )

    def pliant(self, command: str, *arguments: str) -> str:
        """Runs `kubectl pliant` of this checkout."""
        _, line, environment = self.pliant_program(command, *arguments)
        result = subprocess.run(line, env=environment, capture_output=True, text=True, check=False)
        if result.returncode != 0:
            raise StoryError(f"kubectl pliant {command} {' '.join(arguments)}: {result.stderr.strip()}")
        return result.stdout

    def start_pliant(self, command: str, *arguments: str, stderr: IO[str]) -> subprocess.Popen[str]:
        _, line, environment = self.pliant_program(command, *arguments)
        return subprocess.Popen(
            line,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        )

    def pliant_program(self, command: str, *arguments: str) -> tuple[str, list[str], Mapping[str, str]]:
        """The program, its arguments and its environment, as for os.execve."""
        path = os.pathsep.join([str(_PLUGINS), str(Path(self._program).parent), os.environ["PATH"]])
        line = [self._program, "pliant", command, "--namespace", self.namespace, *arguments]
        return self._program, line, {**os.environ, "PATH": path}

    def json(self, *arguments: str) -> Mapping:
        return json.loads(self.run(*arguments, "-o", "json"))

    def apply(self, manifest: Mapping) -> None:
        self.run("apply", "-f", "-", stdin=json.dumps(manifest))
