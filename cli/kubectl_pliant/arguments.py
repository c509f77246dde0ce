"""The command line: commands, options, help."""

from __future__ import annotations

import argparse
import re
from argparse import ArgumentParser, Namespace
from typing import Callable, NoReturn

from . import commands
from .completion import SCRIPTS
from .errors import WRONG_USE, CommandError
from .job_list import ORDERS
from .kubectl import Connection
from .text import harmless
from .world import World

_HELP = "Shows and changes elastic training jobs. It calls kubectl, with its credentials."
_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")

Run = Callable[[World, Namespace], None]


def connection_of(given: Namespace) -> Connection:
    return Connection(
        kubeconfig=given.kubeconfig,
        context=given.context,
        namespace=given.namespace,
        all_namespaces=getattr(given, "all_namespaces", False),  # not every command has it
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


class _Parser(ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise CommandError(f"{harmless(message)}; {self.prog} --help says more", WRONG_USE)


class _Commands:
    def __init__(self, program: ArgumentParser) -> None:
        self._found = program.add_subparsers(metavar="COMMAND", required=True)

    def add(self, name: str, run: Run, about: str, example: str, *, everywhere: bool = False) -> ArgumentParser:
        made: ArgumentParser = self._found.add_parser(
            name,
            help=about,
            description=f"{about[0].upper()}{about[1:]}.",
            epilog=f"Example: {example}",
            parents=[_connection_options(everywhere)],
            allow_abbrev=False,
        )
        made.set_defaults(run=run)
        return made


def _output(command: ArgumentParser, *, wide: bool = False) -> None:
    forms = ["table", "wide", "json"] if wide else ["table", "json"]
    command.add_argument("-o", "--output", choices=forms, default="table", help="form of the output (default: table)")


def _operator(command: ArgumentParser) -> None:
    command.add_argument(
        "--operator-namespace", type=namespace_name, default="pliant-system", metavar="NAME",
        help="namespace of the operator (default: pliant-system)",
    )  # fmt: skip


def namespace_name(text: str) -> str:
    if not _NAMESPACE.fullmatch(text):
        raise argparse.ArgumentTypeError("must be a name of lower-case letters, digits and '-'")
    return text


def whole_number(least: int, most: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not (text.isascii() and text.isdecimal() and len(text) < 10 and least <= int(text) <= most):
            raise argparse.ArgumentTypeError(f"must be a whole number from {least} to {most}, for example {least}")
        return int(text)

    return read


_SECONDS_OF = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def duration(text: str) -> int:
    """Seconds of a text such as 2h."""
    number, unit = text[:-1], text[-1:]
    if not (number.isascii() and number.isdecimal() and len(number) < 7 and int(number) > 0 and unit in _SECONDS_OF):
        raise argparse.ArgumentTypeError("must be a number with one of the units s, m, h and d, for example 2h")
    return int(number) * _SECONDS_OF[unit]


def _edits(all_commands: _Commands) -> None:
    for name, run, about, example, number in (
        ("priority", commands.priority, "set the priority of a job", "priority digits 8000", ("N", "priority", 10000)),
        ("scale", commands.scale, "set the most learners of a job", "scale digits 4", ("N", "max_learners", 1024)),
        ("suspend", commands.suspend, "make a job write a checkpoint and release all GPUs", "suspend digits", None),
        ("resume", commands.resume, "let a suspended job continue", "resume digits", None),
    ):
        command = all_commands.add(name, run, about, f"kubectl pliant {example}")
        command.add_argument("job", metavar="JOB", help="name of the job")
        if number:
            metavar, field, most = number
            command.add_argument(field, metavar=metavar, type=whole_number(1, most), help=f"from 1 to {most}")
        command.add_argument(
            "--timeout", type=whole_number(1, 3600), default=30, metavar="SECONDS",
            help="how long to wait for the operator (default: 30)",
        )  # fmt: skip
        _output(command)


def _logs(all_commands: _Commands) -> None:
    about = "print the output of all learners of a job"
    command = all_commands.add("logs", commands.logs, about, "kubectl pliant logs -f digits")
    command.add_argument("job", metavar="JOB", help="name of the job")
    form = command.add_mutually_exclusive_group()
    form.add_argument("-f", "--follow", action="store_true", help="until the job ends, across resizes and crashes")
    form.add_argument(
        "--kept", action="store_true", help="of learners that ended, from the checkpoint volume, by a pod that reads it"
    )
    command.add_argument("--image", help="image of that pod, with sh and coreutils (default: that of the learners)")
    command.add_argument("--learner", type=whole_number(0, 999999999), metavar="N", help="only this learner")
    command.add_argument(
        "--tail", type=whole_number(0, 999999999), metavar="N", help="only the last N lines of each learner"
    )


def parser() -> ArgumentParser:
    program = _Parser(
        prog="kubectl pliant",
        description=_HELP,
        allow_abbrev=False,
        epilog="kubectl pliant COMMAND --help has the options of a command and an example.",
    )
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
    command.add_argument("--deep", action="store_true", help="for administrators: ask the operator about its last plan")
    _operator(command)
    _output(command)
    _edits(all_commands)
    _logs(all_commands)

    about = "show pools, queues and jobs with their GPUs, live"
    command = all_commands.add("top", commands.top, about, "kubectl pliant top -A", everywhere=True)
    command.add_argument("--once", action="store_true", help="print once, as it also does into a pipe")
    _output(command)

    about = "list what happened to a job, oldest first"
    command = all_commands.add("history", commands.history, about, "kubectl pliant history digits")
    command.add_argument("job", metavar="JOB", help="name of the job")
    _output(command, wide=True)

    about = "list queues and pools with their shares"
    _output(all_commands.add("queues", commands.queues, about, "kubectl pliant queues"), wide=True)

    about = "list the GPU-hours of the jobs that exist"
    _output(all_commands.add("cost", commands.cost, about, "kubectl pliant cost -A", everywhere=True))

    about = "open the page of the operator in a browser, or save it, for administrators"
    command = all_commands.add("ui", commands.ui, about, "kubectl pliant ui --save gpus.html --since 2h")
    command.add_argument("--no-browser", dest="browser", action="store_false", help="only print its address")
    command.add_argument("--save", metavar="FILE", help="write it to this file, which needs no cluster, and end")
    command.add_argument(
        "--since", type=duration, metavar="TIME", help="with --save: how far it goes back, such as 30m or 2h (default: 1h)"
    )
    _operator(command)

    about = "say what a change of queues, jobs or nodes would do, for administrators"
    example = "kubectl pliant whatif --set queue.research.weight=300 --set nodes+=2x8"
    command = all_commands.add("whatif", commands.whatif, about, example)
    command.add_argument(
        "--set", dest="edits", metavar="CHANGE", action="append", required=True, help="may be repeated"
    )
    command.add_argument("--all", action="store_true", help="also jobs that do not change")
    command.add_argument("--forward", action="store_true", help="also simulate the cluster to the end of its jobs")
    _operator(command)

    about = "print a script that completes words in a shell"
    command = all_commands.add("completion", commands.completion, about, "source <(kubectl pliant completion bash)")
    command.add_argument("shell", choices=sorted(SCRIPTS))

    _output(
        all_commands.add("version", commands.version, "print the version of kubectl-pliant", "kubectl pliant version")
    )
    return program
