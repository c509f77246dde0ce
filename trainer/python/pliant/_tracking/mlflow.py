"""MLflow."""

import os
from collections.abc import Mapping
from typing import Any

from .identity import run_of_job
from .resizes import MembershipId, Resize, membership_id
from .tracker import POSITIONS, Entry, Identity, Logged, Tracker

_RUN = "pliant.dev/run"  # the tag by which a job's run is found
_RESIZE = "pliant.resize."  # tags, followed by a membership
_MAX_RESIZES = 500  # in a run
_MAX_BATCH = 1000  # metrics in a request, by the server's limit


class MLflow(Tracker):
    """Logs to one run of MLflow, whichever learners train: loss, accuracy, the program's own sums as
    means, learning rate, learners, speed, and each resize with its reason as a tag. A step is logged
    once. The training does not wait for it.

    experiment: its name; it is made if there is none. None: MLFLOW_EXPERIMENT_NAME, or `Default`.
    name: of the run. None: the job's.
    config: further parameters. The batch size, shards, seed and epochs are parameters, too.
    tracking_uri: None: MLFLOW_TRACKING_URI.
    """

    _name = "pliant.MLflow"
    _package = "mlflow"

    def __init__(
        self,
        experiment: str | None = None,
        *,
        name: str | None = None,
        config: Mapping[str, Any] | None = None,
        tracking_uri: str | None = None,
    ) -> None:
        super().__init__(_MLflowRun(experiment, name, tracking_uri), config)


class _MLflowRun:
    def __init__(self, experiment: str | None, name: str | None, tracking_uri: str | None) -> None:
        self._experiment = experiment
        self._name = name
        self._tracking_uri = tracking_uri
        self._client: Any = None
        self._run_id = ""
        self._resizes = 0

    def open(self, identity: Identity) -> Logged:
        from mlflow.tracking import MlflowClient

        client = self._client = MlflowClient(self._tracking_uri)
        experiment = experiment_id(client, self._experiment)
        run = find_run(client, experiment, identity.run)
        if run is None:
            name = self._name or identity.job or None
            run = create_run(client, experiment, identity.run, name, identity.job)
        self._run_id = run.info.run_id
        # Parameters cannot change: what an earlier writer logged stays.
        for name, value in identity.config.items():
            if name not in run.data.params:
                client.log_param(self._run_id, name, value)
        if run.info.status != "RUNNING":
            client.update_run(self._run_id, status="RUNNING")
        resizes = [each for each in map(_resize_of, run.data.tags) if each is not None]
        self._resizes = len(resizes)
        values = run.data.metrics
        return Logged(
            steps={kind: int(values.get(name, -1)) for kind, name in POSITIONS.items()},
            membership=max(resizes, default=(0, 0)),
        )

    def log(self, entries: list[Entry], logged: Logged) -> None:
        from mlflow.entities import Metric

        batch: list[Any] = []
        for entry in entries:
            step, at = entry.line["step"], int(1000 * entry.line["unixSeconds"])
            named = {**entry.values, POSITIONS[entry.line["kind"]]: float(step)}
            if len(batch) + len(named) > _MAX_BATCH:
                self._client.log_batch(self._run_id, metrics=batch)
                batch = []
            batch += [Metric(name, value, at, step) for name, value in named.items()]
        self._client.log_batch(self._run_id, metrics=batch)

    def resized(self, resize: Resize, logged: Logged) -> None:
        if self._resizes < _MAX_RESIZES:
            tag = _RESIZE + ".".join(str(each) for each in resize.membership)
            self._client.set_tag(self._run_id, tag, str(resize))
            self._resizes += 1

    def close(self, ending: str | None) -> None:
        if ending == "Completed":
            self._client.set_terminated(self._run_id, "FINISHED")
        elif ending != "Drained":  # who left because it had to leaves a run that others continue
            self._client.set_terminated(self._run_id, "FAILED")


def _resize_of(tag: str) -> MembershipId | None:
    return membership_id(tag.removeprefix(_RESIZE)) if tag.startswith(_RESIZE) else None


def experiment_id(client: Any, name: str | None) -> str:
    name = name or os.environ.get("MLFLOW_EXPERIMENT_NAME") or "Default"
    found = client.get_experiment_by_name(name)
    return str(found.experiment_id if found is not None else client.create_experiment(name))


def find_run(client: Any, experiment: str, run: str) -> Any:
    """The oldest one that is tagged with this id; None: there is none."""
    found = client.search_runs(
        [experiment],
        filter_string=f"tags.`{_RUN}` = '{run}'",
        max_results=1,
        order_by=["attributes.start_time ASC"],
    )
    return found[0] if found else None


def create_run(client: Any, experiment: str, run: str, name: str | None, job: str) -> Any:
    tags = {_RUN: run, **({"pliant.dev/job": job} if job else {})}
    return client.create_run(experiment, tags=tags, run_name=name)


def run_id_of_job() -> str | None:
    """MLflow's id of the run of this job, which is made if there is none; None: no job."""
    from mlflow.tracking import MlflowClient

    run = run_of_job()
    if run is None:
        return None
    client = MlflowClient()
    experiment = experiment_id(client, None)
    job = os.environ.get("PLIANT_JOB", "")
    found = find_run(client, experiment, run)
    found = found or create_run(client, experiment, run, job or None, job)
    return str(found.info.run_id)
