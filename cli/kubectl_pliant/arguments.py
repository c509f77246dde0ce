"""The command line: commands, options, help."""

from __future__ import annotations

import argparse
from argparse import ArgumentParser, Namespace
from typing import Any, Callable

from . import __version__, commands
from .job_list import ORDERS
from .kubectl import Connection
from .world import World

_HELP = "Shows and changes elastic training jobs. It calls kubectl, with its credentials."

Run = Callable[[World, Namespace], None]


def connection_of(given: Namespace) -> Connection:
    return Connection(
        kubeconfig=getattr(given, "kubeconfig", None),
        context=getattr(given, "context", None),
        namespace=getattr(given, "namespace", None),
        all_namespaces=getattr(given, "all_namespaces", False),
    )


def _connection_options(everywhere: bool) -> ArgumentParser:
    options = ArgumentParser(add_help=False)
    group = options.add_argument_group("cluster")
    group.add_argument("--kubeconfig", metavar="FILE", help="as of kubectl")
    group.add_argument("--context", metavar="NAME", help="as of kubectl")
    scope = group.add_mutually_exclusive_group()
    scope.add_argument("-n", "--namespace", metavar="NAME", help="as of kubectl")
    if everywhere:
        scope.add_argument("-A", "--all-namespaces", action="store_true", help="jobs of all namespaces")
    return options


class _Commands:
    def __init__(self, program: ArgumentParser) -> None:
        self._found = program.add_subparsers(metavar="COMMAND", required=True)

    def add(
        self, name: str, run: Run, about: str, example: str, *, everywhere: bool = False, **options: Any
    ) -> ArgumentParser:
        made: ArgumentParser = self._found.add_parser(
            name,
            help=about,
            description=f"{about[0].upper()}{about[1:]}.",
            epilog=f"Example: {example}",
            parents=[_connection_options(everywhere)],
            allow_abbrev=False,
            **options,
        )
        made.set_defaults(run=run)
        return made


def _output(command: ArgumentParser, *, wide: bool = False) -> None:
    forms = ["table", "wide", "json"] if wide else ["table", "json"]
    command.add_argument("-o", "--output", choices=forms, default="table", help="form of the output (default: table)")


def parser() -> ArgumentParser:
    program = ArgumentParser(
        prog="kubectl pliant",
        description=_HELP,
        allow_abbrev=False,
        epilog="kubectl pliant COMMAND --help has the options of a command and an example.",
        formatter_class=argparse.HelpFormatter,
    )
    program.add_argument("--version", action="version", version=f"kubectl-pliant {__version__}")
    all_commands = _Commands(program)

    command = all_commands.add(
        "list", commands.list_jobs, "list jobs with their GPUs, progress and reason",
        "kubectl pliant list -A --sort waiting", everywhere=True,
    )  # fmt: skip
    command.add_argument("-q", "--queue", metavar="QUEUE", help="only jobs of this queue")
    command.add_argument("--sort", choices=ORDERS, default="name", help="order (default: name)")
    _output(command, wide=True)

    command = all_commands.add(
        "explain", commands.explain, "say in sentences what a job has, why, and what its owner can do",
        "kubectl pliant explain digits -n team-a",
    )  # fmt: skip
    command.add_argument("job", metavar="JOB", help="name of the job")
    _output(command)
    return program
