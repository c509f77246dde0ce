"""A learner, for any framework: the Python interface of pliant.h."""

import contextlib
import ctypes
import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from . import _native
from .errors import InvalidProgram, PliantError

# A call blocks the interpreter's signal handling for at most this many seconds.
_WAIT_SECONDS = 1.0
# The size of a file with tensors of the final model, as other libraries write it.
FINAL_FILE_BYTES = 5_000_000_000


@dataclass(frozen=True)
class Job:
    """The job, as the environment describes it. None: the environment does not set it."""

    alone: bool  # no coordinator: nobody joins
    bitwise: bool  # the result must not depend on the number of learners, bit for bit
    max_learners: int
    logical_shards: int | None
    global_batch_size: int | None  # in samples
    seed: int | None
    name: str  # "<namespace>/<name>"; "" when alone
    learner: str  # this learner's name
    checkpoint_dir: str  # the job's folder on its volume


@dataclass(frozen=True)
class Plan:
    """Batch size, shards and steps that follow from the job and the program's settings."""

    global_batch_size: int  # in samples, over all learners, before the batch grows
    logical_shards: int  # parts that this batch is computed in
    steps_per_epoch: int  # with this batch
    total_steps: int
    seed: int


@dataclass(frozen=True)
class Shard:
    """A logical shard of a step, or of an evaluation."""

    epoch: int
    step: int  # optimizer steps committed before
    index: int  # from 0, of the batch's shards
    samples: tuple[int, ...]  # indices into the data
    seed: int  # a hash of the job's seed, epoch, step and index
    training: bool  # False: the shard of an evaluation
    gradient: int = 0  # address of the floats to write
    travels_early: bool = False  # gradients are sent as soon as they are reported ready
    last: bool = False  # of the epoch's last step, or of the last part of an evaluation
    on_gpu: bool = False  # the gradient's address is the GPU's


@dataclass(frozen=True)
class Totals:
    """Sums over all shards: equal on all learners."""

    samples: float
    weight: float  # what loss and correct are sums over: samples, unless the program weighs
    loss: float
    correct: float
    named: Mapping[str, float] = field(default_factory=dict)

    @property
    def mean_loss(self) -> float:
        """NaN if nothing has a weight."""
        return self.loss / self.weight if self.weight else math.nan

    @property
    def accuracy(self) -> float:
        return self.correct / self.weight if self.weight else math.nan


@dataclass(frozen=True)
class Commit:
    """A step whose reduction is complete."""

    epoch: int
    step: int
    gradient: int  # address of the mean gradient, read-only in host memory
    gradient_elements: int
    totals: Totals  # over the global batch
    mean_factor: float = 1.0  # from the mean over samples to the mean over weights
    last: bool = False  # the epoch's last step
    doublings: int = 0  # of the batch, since the training began
    on_gpu: bool = False  # the gradient's address is the GPU's
    first: bool = False  # this learner is the membership's first


@dataclass(frozen=True)
class Evaluated:
    """An evaluation is complete."""

    epoch: int
    step: int
    totals: Totals  # over the test set
    first: bool = False  # this learner is the membership's first


@dataclass(frozen=True)
class Loaded:
    """The registered memory now holds another state."""


@dataclass(frozen=True)
class Ending:
    """How this learner ended."""

    reason: str  # Completed, Drained, Failed or Interrupted
    exit_code: int  # exit code for the process
    step: int  # optimizer steps committed in total
    message: str
    parameters_sha256: str  # of the final model, if there is one


_REASONS = {
    _native.COMPLETED: "Completed",
    _native.DRAINED: "Drained",
    _native.LEARNER_FAILED: "Failed",
    _native.INTERRUPTED: "Interrupted",
}


class Learner:
    """One learner: describe it, register its state, start it, then do the work that `next` returns.

    Used from one thread, except methods marked "Any thread". `close` waits for such calls.
    """

    def __init__(
        self,
        *,
        name: str,
        framework: str,
        checkpoint_dir: str | os.PathLike[str] | None = None,
        gpu_problem: str | None = None,
    ) -> None:
        self._library = _native.library()
        self._handle = ctypes.c_void_p()
        self._opened = False
        self._work = _native.Work()
        options = _native.Options(
            name=name.encode(),
            framework=framework.encode(),
            checkpoint_dir=os.fsencode(checkpoint_dir) if checkpoint_dir else None,
            gpu_problem=gpu_problem.encode() if gpu_problem else None,
            keep_freed_memory=1,
        )
        self._check(self._library.pliant_open(ctypes.byref(options), ctypes.byref(self._handle)))
        self._opened = True

    def _check(self, status: int) -> None:
        if status < 0:
            if self._opened and self.closed:
                raise InvalidProgram(
                    "this training is closed: pliant.attach was called again, or the training has "
                    "ended. A process can run one training at a time: call pliant.attach for the "
                    "next one after the loop over the steps"
                )
            message = self._library.pliant_last_error().decode(errors="replace")
            raise InvalidProgram(message) if status == _native.INVALID else PliantError(message)

    @property
    def closed(self) -> bool:
        return not self._handle

    def close(self) -> None:
        """Ends the learner if it has not ended. Any later call raises InvalidProgram."""
        handle, self._handle = self._handle, ctypes.c_void_p()
        self._library.pliant_close(handle)

    # ---- Before start ----

    def job(self) -> Job:
        job = _native.Job()
        self._check(self._library.pliant_get_job(self._handle, ctypes.byref(job)))
        return Job(
            alone=bool(job.alone),
            bitwise=bool(job.bitwise),
            max_learners=job.max_learners,
            logical_shards=job.logical_shards or None,
            global_batch_size=job.global_batch_size or None,
            seed=job.seed if job.has_seed else None,
            name=job.job.decode(),
            learner=job.learner.decode(),
            checkpoint_dir=job.checkpoint_dir.decode(),
        )

    def describe(
        self,
        *,
        train_samples: int,
        test_samples: int = 0,
        epochs: int | None = None,
        max_steps: int | None = None,
        evaluate_every: int | None = None,
        checkpoint_every_steps: int | None = None,
        global_batch_size: int | None = None,
        logical_shards: int | None = None,
        seed: int | None = None,
        drop_last: bool = False,
        in_order: bool = False,
        base: tuple[str, str] | None = None,
    ) -> Plan:
        """Describes the training. None: the job's value, or the default if the job sets none; of
        epochs and steps, no limit.
        `base`: hash and name of the frozen parameters that each learner has at home."""
        base_hash, base_name = base or (None, None)
        training = _native.Training(
            train_samples=train_samples,
            test_samples=test_samples,
            epochs=epochs or 0,
            global_batch_size=global_batch_size or 0,
            logical_shards=logical_shards or 0,
            has_seed=seed is not None,
            seed=seed or 0,
            drop_last=drop_last,
            in_order=in_order,
            hears_evaluations=True,
            base=base_hash.encode() if base_hash else None,
            base_name=base_name.encode() if base_name else None,
            max_steps=max_steps or 0,
            evaluate_every=evaluate_every or 0,
            checkpoint_every_steps=checkpoint_every_steps or 0,
        )
        self._check(self._library.pliant_describe(self._handle, ctypes.byref(training)))
        plan = _native.Plan()
        self._check(self._library.pliant_get_plan(self._handle, ctypes.byref(plan)))
        return Plan(
            global_batch_size=plan.global_batch_size,
            logical_shards=plan.logical_shards,
            steps_per_epoch=plan.steps_per_epoch,
            total_steps=plan.total_steps,
            seed=plan.seed,
        )

    def register(
        self,
        name: str,
        *,
        role: int,
        dtype: str,
        shape: Sequence[int],
        address: int,
        device: int = _native.CPU,
    ) -> None:
        """Registers memory, which must be contiguous and stay at this address until `close`.
        `role`: PARAMETER, BUFFER or STATE. `device`: CPU or CUDA."""
        if dtype not in _native.DTYPES:
            remedy = (
                "; keep torch.view_as_real of it" if dtype.startswith("complex") else ""
            )
            raise InvalidProgram(
                f"{name} is of type {dtype}: {', '.join(_native.DTYPES)} are supported{remedy}"
            )
        tensor = _native.Tensor(
            name=name.encode(),
            role=role,
            dtype=_native.DTYPES[dtype],
            dimensions=len(shape),
            device=device,
            shape=(ctypes.c_int64 * len(shape))(*shape),
            data=address,
        )
        self._check(self._library.pliant_register(self._handle, ctypes.byref(tensor), None))

    def describe_final(
        self, stem: str, names: Mapping[str, str] | None, files: Mapping[str, str]
    ) -> None:
        """Describes the files of the final model. `names`: those in the files, by registered name;
        None: all tensors of the model. `files`: texts, by name."""
        texts = [text.encode() for text in files.values()]
        final = _native.Final(
            stem=stem.encode(),
            file_bytes=FINAL_FILE_BYTES,
            tensors=None if names is None else _native.texts(names),
            names=None if names is None else _native.texts(names.values()),
            tensor_count=len(names or ()),
            file_count=len(texts),
            files=_native.texts(files),
            file_texts=(ctypes.c_char_p * len(texts))(*texts),
            file_sizes=(ctypes.c_size_t * len(texts))(*map(len, texts)),
        )
        self._check(self._library.pliant_describe_final(self._handle, ctypes.byref(final)))

    def use_stream(self, stream: int) -> None:
        """Names the CUDA stream of work on registered tensors and gradients from now on. Called
        after the first tensor on a GPU is registered."""
        self._check(self._library.pliant_use_stream(self._handle, stream or None))

    def start(self) -> None:
        self._check(self._library.pliant_start(self._handle))

    # ---- Work ----

    def next(self) -> Shard | Commit | Evaluated | Loaded | Ending:
        """Waits for the next piece of work."""
        status = _native.NOTHING
        while status == _native.NOTHING:
            status = self._library.pliant_next(
                self._handle, _WAIT_SECONDS, ctypes.byref(self._work)
            )
            self._check(status)
        work = self._work
        if work.kind in (_native.TRAIN, _native.EVALUATE):
            return _shard(work)
        if work.kind == _native.COMMIT:
            return Commit(
                epoch=work.epoch,
                step=work.step,
                gradient=work.reduced,
                gradient_elements=work.gradient_elements,
                totals=_totals(work),
                mean_factor=work.mean_factor,
                last=bool(work.last),
                doublings=work.doublings,
                on_gpu=work.device == _native.CUDA,
                first=bool(work.first),
            )
        if work.kind == _native.EVALUATED:
            return Evaluated(
                epoch=work.epoch, step=work.step, totals=_totals(work), first=bool(work.first)
            )
        return Loaded() if work.kind == _native.LOADED else self.ending()

    def gradients_ready(self, first: int, count: int) -> None:
        self._check(self._library.pliant_gradients_ready(self._handle, first, count))

    def put_gradients(
        self,
        addresses: Sequence[int | None],
        scale: float,
        *,
        device: int = _native.CPU,
        dtype: str = "float32",
    ) -> None:
        """Hands in gradients, by parameter: contiguous, all of this type and on this device. None:
        this gradient is not handed in."""
        data = (ctypes.c_void_p * len(addresses))(*addresses)
        kind = _native.DTYPES[dtype]
        self._check(self._library.pliant_put_gradients(self._handle, data, kind, device, scale))

    def data_waited(self, seconds: float) -> None:
        """Reports how long the current shard waited for its samples."""
        self._check(self._library.pliant_data_waited(self._handle, seconds))

    def report_sums(
        self, weight: float | None, sums: Mapping[str, float] | Sequence[str]
    ) -> None:
        """Before the answer to a shard: its weight, and its named sums. `sums`: their values; or,
        in ascending order, names whose values follow in shard_done_on_gpu."""
        if weight is None and not sums:
            return
        names = sorted(sums)
        values = [float(sums[name]) for name in names] if isinstance(sums, Mapping) else None
        reported = _native.Sums(
            weighs=weight is not None,
            count=len(names),
            weight=weight or 0.0,
            names=_native.texts(names),
            values=None if values is None else (ctypes.c_double * len(values))(*values),
        )
        self._check(self._library.pliant_report_sums(self._handle, ctypes.byref(reported)))

    def shard_done(self, *, samples: float, loss: float, correct: float) -> None:
        self._check(self._library.pliant_shard_done(self._handle, samples, loss, correct))

    def shard_done_on_gpu(self, *, samples: float, sums: int) -> None:
        """The same with loss, correct and named sums in doubles at this address of the GPU."""
        self._check(self._library.pliant_shard_done_on(self._handle, samples, sums))

    def gradient_norm(
        self, addresses: Sequence[int | None], *, device: int = _native.CPU
    ) -> float:
        """In a commit: the Euclidean norm of gradients of all parameters, float32 and contiguous,
        with the same bits on every machine. None: counts as zero."""
        data = (ctypes.c_void_p * len(addresses))(*addresses)
        norm = ctypes.c_double()
        self._check(
            self._library.pliant_gradient_norm(self._handle, data, device, ctypes.byref(norm))
        )
        return norm.value

    def committed(self, *, taken: bool) -> None:
        self._check(self._library.pliant_committed(self._handle, taken))

    def evaluated(self) -> None:
        self._check(self._library.pliant_evaluated(self._handle))

    def stop(self) -> None:
        """Completes the training with the current step. Called before `committed`, `evaluated` or
        `loaded`."""
        self._check(self._library.pliant_stop(self._handle))

    def save_checkpoint(self) -> None:
        """Called before the answer to a commit or an evaluation. Only the first learner's call
        counts."""
        self._check(self._library.pliant_save_checkpoint(self._handle))

    def export_best(self, note: str) -> None:
        """Called before the answer to a commit or an evaluation. Only the first learner's call
        counts."""
        self._check(self._library.pliant_export_best(self._handle, note.encode()))

    def loaded(self) -> None:
        self._check(self._library.pliant_loaded(self._handle))

    def fail(self, message: str, *, wrong_input: bool) -> None:
        self._check(
            self._library.pliant_fail(self._handle, wrong_input, message.encode(errors="replace"))
        )

    def leave(self) -> None:
        """Makes this learner leave at the next boundary, like SIGTERM. Any thread."""
        self._check(self._library.pliant_leave(self._handle))

    def request_learners(self, learners: int) -> None:
        """Requests this number of learners. 0: as many as available. Any thread."""
        self._check(self._library.pliant_request_learners(self._handle, learners))

    def forecast(self, ahead: int) -> Shard | None:
        """The shard that probably comes `ahead` shards after the next one; None: unknown."""
        work = _native.Work()
        status = self._library.pliant_forecast(self._handle, ahead, ctypes.byref(work))
        self._check(status)
        return _shard(work) if status == _native.OK else None

    # ---- Reports ----

    def keep_output(self, text: str) -> None:
        """Appends text to the output file next to the checkpoints; in a job only. Any thread."""
        data = text.encode(errors="replace")
        self._library.pliant_keep_output(self._handle, data, len(data))

    def metrics(self) -> Iterator[dict[str, Any]]:
        """The lines of metrics.jsonl that this learner wrote since the last call. Only the first
        learner of a membership writes any."""
        line = ctypes.c_char_p()
        while True:
            status = self._library.pliant_next_metrics(self._handle, ctypes.byref(line))
            self._check(status)
            if status != _native.OK or line.value is None:
                return
            with contextlib.suppress(json.JSONDecodeError):
                yield json.loads(line.value)

    def ending(self) -> Ending:
        end = _native.End()
        self._check(self._library.pliant_get_end(self._handle, ctypes.byref(end)))
        return Ending(
            reason=_REASONS[end.reason],
            exit_code=end.exit_code,
            step=end.step,
            message=end.message.decode(errors="replace"),
            parameters_sha256=end.parameters_sha256.decode(),
        )


def _totals(work: _native.Work) -> Totals:
    names = [name.decode() for name in work.sum_names[: work.sum_count]]
    return Totals(
        samples=work.samples_sum,
        weight=work.weight_sum,
        loss=work.loss_sum,
        correct=work.correct_sum,
        named=dict(zip(names, work.sum_values[: work.sum_count], strict=True)),
    )


def _shard(work: _native.Work) -> Shard:
    return Shard(
        epoch=work.epoch,
        step=work.step,
        index=work.shard,
        samples=tuple(work.samples[: work.sample_count]),
        seed=work.seed,
        training=work.kind == _native.TRAIN,
        gradient=work.gradient or 0,
        travels_early=bool(work.travels_early),
        last=bool(work.last),
        on_gpu=work.device == _native.CUDA,
    )
