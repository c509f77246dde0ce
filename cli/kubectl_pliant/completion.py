"""kubectl pliant completion: scripts for shells, and the words that may come next."""

from __future__ import annotations

import argparse
from argparse import ArgumentParser
from collections.abc import Callable, Sequence

from .errors import CommandError
from .job_pages import list_jobs
from .kubectl import Connection, Kubectl
from .names import is_name

_SECONDS = 5.0  # a shell waits for it
_MAX_JOBS = 1000

# The words of the candidates are names of commands, options and jobs, in which a shell finds nothing to expand.
SCRIPTS = {
    "bash": """_kubectl_pliant() {
  local found
  found=$(kubectl-pliant __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2> /dev/null)
  COMPREPLY=($(compgen -W "$found" -- "${COMP_WORDS[COMP_CWORD]}"))
}
complete -F _kubectl_pliant kubectl-pliant""",
    "zsh": """#compdef kubectl-pliant
_kubectl_pliant() {
  local -a found
  found=("${(@f)$(kubectl-pliant __complete "${(@)words[2,CURRENT]}" 2> /dev/null)}")
  compadd -- "${found[@]}"
}
compdef _kubectl_pliant kubectl-pliant""",
}


def commands_of(program: ArgumentParser) -> dict[str, ArgumentParser]:
    for action in program._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def candidates(program: ArgumentParser, words: Sequence[str], jobs: Callable[[], list[str]]) -> list[str]:
    """What the last word may become. `jobs` lists the names of jobs, if they are needed."""
    *before, last = words or [""]
    commands = commands_of(program)
    if not before:
        return [each for each in commands if each.startswith(last)]
    command = commands.get(before[0])
    if command is None:
        return []
    found = _in_command(command, before[1:], last, jobs)
    return [each for each in found if each.startswith(last)]


def _in_command(command: ArgumentParser, before: Sequence[str], last: str, jobs: Callable[[], list[str]]) -> list[str]:
    options = {text: action for action in command._actions for text in action.option_strings}
    previous = options.get(before[-1]) if before else None
    if previous is not None and previous.nargs != 0:
        return [str(each) for each in previous.choices or ()]
    if last.startswith("-"):
        return sorted(options)
    positional = [action for action in command._actions if not action.option_strings]
    given = _positional(before, options)
    if given >= len(positional):
        return []
    action = positional[given]
    return jobs() if action.dest == "job" else [str(each) for each in action.choices or ()]


def _positional(before: Sequence[str], options: dict[str, argparse.Action]) -> int:
    """How many words are neither options nor their values."""
    count, is_value = 0, False
    for word in before:
        if is_value:
            is_value = False
        elif word.startswith("-"):
            is_value = word in options and options[word].nargs != 0
        else:
            count += 1
    return count


def job_names(words: Sequence[str]) -> list[str]:
    """The jobs of the namespace that the words name. None if the cluster does not answer: a shell shows no errors."""
    given = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for option in ("--kubeconfig", "--context"):
        given.add_argument(option)
    given.add_argument("-n", "--namespace")
    try:
        known, _ = given.parse_known_args(list(words))
        kubectl = Kubectl(Connection(known.kubeconfig, known.context, known.namespace))
        found = [each.name for each in list_jobs(kubectl, _SECONDS)]
    except (CommandError, SystemExit):
        return []
    return sorted(each for each in found if each is not None and is_name(each))[:_MAX_JOBS]


def complete(program: ArgumentParser, words: Sequence[str]) -> list[str]:
    return candidates(program, words, lambda: job_names(words))
