"""Grafana's dashboards without Grafana: sends their queries to Prometheus' HTTP API and checks the answers."""

import json
import math
import re
import urllib.parse
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from .checks import Check
from .errors import StoryError

# GETs a path below /api/v1, with its query string, and returns the JSON of the answer.
GetJson = Callable[[str], Mapping]

_MAX_POINTS = 10_000  # per series in one answer; Prometheus allows 11,000


@dataclass(frozen=True)
class Query:
    panel: str
    expression: str
    legend: str  # in Grafana's format, with {{label}}


@dataclass(frozen=True)
class Series:
    name: str
    last: float  # never NaN: a panel shows no point for NaN, so it is no value
    highest: float


@dataclass(frozen=True)
class Answer:
    query: Query
    series: tuple[Series, ...]


def queries(dashboard: Mapping) -> list[Query]:
    """The queries of all panels, also of those in collapsed rows."""
    return [
        Query(panel["title"], target["expr"], target.get("legendFormat", ""))
        for panel in _panels(dashboard.get("panels", ()))
        for target in panel.get("targets", ())
    ]


def _panels(panels: Sequence[Mapping]) -> Iterator[Mapping]:
    for panel in panels:
        yield panel
        yield from _panels(panel.get("panels", ()))


def expand(expression: str, dashboard: Mapping, window: str) -> str:
    """The expression as Grafana sends it with `All` selected for each variable. `window`: Grafana's interval for rates,
    such as 1m."""
    chosen = {
        variable["name"]: variable.get("allValue", ".*")
        for variable in dashboard.get("templating", {}).get("list", ())
        if variable["type"] == "query"
    }
    chosen |= {"__rate_interval": window, "__interval": window, "__range": window}

    def value(match: re.Match) -> str:
        name = match[1] or match[2]
        if name not in chosen:
            raise StoryError(f"the dashboard has no variable ${name}: {expression}")
        return chosen[name]

    # $1 is a group of a regular expression.
    return re.sub(r"\$(?:([a-zA-Z_]\w*)|\{(\w+)\})", value, expression)


def ask(get: GetJson, dashboard: Mapping, begin: float, end: float, window: str) -> list[Answer]:
    """The answer to each query between two times (Unix seconds)."""
    step = max(5.0, (end - begin) / _MAX_POINTS)
    answers = []
    for query in queries(dashboard):
        text = expand(query.expression, dashboard, window)
        parameters = {"query": text, "start": f"{begin:.3f}", "end": f"{end:.3f}", "step": f"{step:.3f}"}
        answer = get(f"query_range?{urllib.parse.urlencode(parameters)}")
        if answer.get("status") != "success":
            raise StoryError(f"{query.panel}: Prometheus answers {answer.get('error', answer)} to {text}")
        answers.append(Answer(query, tuple(_series(query, answer["data"]["result"]))))
    return answers


def _series(query: Query, result: Sequence[Mapping]) -> Iterator[Series]:
    for each in result:
        values = [float(value) for _, value in each["values"]]
        values = [value for value in values if not math.isnan(value)]
        if values:
            yield Series(_name(query.legend, each["metric"]), values[-1], max(values))


def _name(legend: str, labels: Mapping[str, str]) -> str:
    if not legend:
        return ", ".join(f"{name}={value}" for name, value in sorted(labels.items())) or "value"
    return re.sub(r"\{\{\s*(\w+)\s*\}\}", lambda match: labels.get(match[1], ""), legend)


def check(answers: Sequence[Answer]) -> Check:
    problems = [
        f"{answer.query.panel}: no data for {answer.query.expression}" for answer in answers if not answer.series
    ]
    if not answers:
        problems = ["the dashboard has no queries"]
    return Check("every query of the dashboard has data", tuple(problems))


HEADER = ("panel", "series", "last value", "highest")


def rows(answers: Sequence[Answer]) -> list[list[str]]:
    """A table for people: each panel's name once, then its series."""
    table = []
    shown = ""
    for answer in answers:
        panel = answer.query.panel
        for series in answer.series or (Series("-", math.nan, math.nan),):
            values = ["no data" if math.isnan(value) else f"{value:.6g}" for value in (series.last, series.highest)]
            table.append(["" if panel == shown else panel, series.name, *values])
            shown = panel
    return table


def as_rules(dashboard: Mapping) -> str:
    """The queries as a file of recording rules, which promtool checks. JSON is YAML."""
    rules = [
        {"record": f"dashboard:query_{number}", "expr": expand(query.expression, dashboard, "1m")}
        for number, query in enumerate(queries(dashboard))
    ]
    return json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}, indent=1)


def metric_names(expression: str) -> set[str]:
    """The metrics of Pliant and client-go that an expression reads; those of a histogram by their family's name."""
    names = set(re.findall(r"\b(?:pliant|workqueue|controller_runtime|rest_client|leader_election)_\w+", expression))
    return {re.sub(r"_(bucket|sum|count)$", "", name) for name in names}
