"""Weights & Biases."""

from collections.abc import Mapping
from typing import Any

from .._background import END_SECONDS
from .identity import Kept
from .resizes import Resize, membership_id
from .tracker import POSITIONS, Entry, Identity, Logged, Tracker

_FLUSH_SECONDS = 1.0  # what a crash may cost a run that is written to files (WANDB_MODE=offline)


class WandB(Tracker):
    """Logs to one run of Weights & Biases, whichever learners train: loss, accuracy, the program's
    own sums as means, learning rate, learners, speed, and each resize with its reason, by the
    metric `step`. A step is logged once. The training does not wait for it.

    project, entity, name, config, settings: as of wandb.init. The batch size, shards, seed and epochs
    are in the config, too. With WANDB_MODE=offline each writer leaves a folder below
    `<job>/tracking/wandb`; `wandb sync` makes one run of them.
    """

    _name = "pliant.WandB"
    _package = "wandb"

    def __init__(
        self,
        project: str | None = None,
        *,
        entity: str | None = None,
        name: str | None = None,
        config: Mapping[str, Any] | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(_WandBRun(project, entity, name, settings), config)


class _WandBRun:
    def __init__(
        self, project: str | None, entity: str | None, name: str | None, settings: dict[str, Any]
    ) -> None:
        self._init = {**settings, "project": project, "entity": entity, "name": name}
        self._run: Any = None
        self._kept: Kept | None = None

    def open(self, identity: Identity) -> Logged:
        import wandb

        self._kept = Kept(identity.folder / f"wandb-{identity.run}.json")
        identity.folder.mkdir(parents=True, exist_ok=True)
        given = dict(self._init)
        given["name"] = given["name"] or identity.job or None
        given.setdefault("dir", str(identity.folder))
        if self._run is None:
            self._run = wandb.init(
                id=identity.run,
                resume="allow",
                config=dict(identity.config),
                settings=_settings(wandb.Settings, given.pop("settings", None)),
                **given,
            )
            # W&B drops steps of its own count that go back: `step` is a metric, and the axis.
            self._run.define_metric("step")
            self._run.define_metric("*", step_metric="step")
        logged = _logged(self._kept.read())
        if not self._run.offline:
            # The server's word: it may lack rows that a writer had passed on before it crashed.
            for kind, name in POSITIONS.items():
                has = self._run.summary.get(name)
                logged.steps[kind] = int(has) if isinstance(has, int | float) else -1
        return logged

    def log(self, entries: list[Entry], logged: Logged) -> None:
        self._keep(logged)
        for entry in entries:
            line = entry.line
            row = {"step": line["step"], "epoch": line.get("epoch"), **entry.values}
            self._run.log({**row, POSITIONS[line["kind"]]: line["step"]})

    def resized(self, resize: Resize, logged: Logged) -> None:
        self._keep(logged)
        row: dict[str, Any] = {
            "step": resize.step,
            "resize/from": resize.before,
            "resize/to": resize.after,
            "resize/kind": resize.kind,
            "resize/reason": resize.reason,
            "resize/steps_lost": resize.steps_lost,
        }
        if resize.pause_seconds is not None:
            row["resize/pause_seconds"] = resize.pause_seconds
        self._run.log(row)

    def close(self, ending: str | None) -> None:
        run, self._run = self._run, None
        run.finish(exit_code=0 if ending in ("Completed", "Drained") else 1)

    def _keep(self, logged: Logged) -> None:
        """Before the row is logged: rather a row that a crash costs than one that is there twice."""
        assert self._kept is not None
        membership = ".".join(str(each) for each in logged.membership)
        self._kept.write({"steps": logged.steps, "membership": membership})


def _settings(settings_class: Any, given: Any) -> Any:
    """The program's, and what a learner needs, as far as this version of wandb knows it."""
    wanted = {
        "console": "off",  # the output of all learners is in the job's logs
        "finish_timeout": END_SECONDS,  # a server that is away does not keep GPUs
        "x_transaction_log_flush_interval": _FLUSH_SECONDS,
    }
    known = getattr(settings_class, "model_fields", {})
    chosen = given if isinstance(given, Mapping) else {}
    settings = settings_class(
        **{**{name: value for name, value in wanted.items() if name in known}, **chosen}
    )
    if given is not None and not isinstance(given, Mapping):
        settings.update_from_settings(given)
    return settings


def _logged(kept: dict[str, Any]) -> Logged:
    steps = kept.get("steps")
    found = steps.items() if isinstance(steps, dict) else ()
    return Logged(
        steps={str(kind): step for kind, step in found if isinstance(step, int)},
        membership=membership_id(kept.get("membership")) or (0, 0),
    )
