"""Public scripts, and the lines that make each elastic. The scripts are fetched, and not part of this tree."""

import dataclasses
import importlib.util
import pathlib
import re
import subprocess
import tempfile
from collections.abc import Callable

import data


@dataclasses.dataclass(frozen=True)
class Edit:
    """New lines after the only line that matches `place`, or from there to the one that matches `until`, in their
    place."""

    place: str
    lines: tuple[str, ...]
    instead: bool = False
    until: str = ""


@dataclasses.dataclass(frozen=True)
class Script:
    """Where it comes from: a file of an installed package, or of a repository at a commit."""

    source: str  # "package:path" or "https://host/owner/name@commit:path"
    edits: tuple[Edit, ...]
    make_data: Callable[[pathlib.Path], None]
    arguments: tuple[str, ...]  # in the folder of the data; {out}: a folder for what the script writes
    imports: tuple[str, ...] = ()  # further files of the source
    samples: int = 32  # of a global batch
    shards: int = 8
    library: str = "transformers"  # an image that lacks it cannot run the script

    @property
    def of_package(self) -> bool:
        return "://" not in self.source

    @property
    def added_lines(self) -> int:
        return sum(len(edit.lines) for edit in self.edits)


def after(place: str, *lines: str) -> Edit:
    return Edit(place, lines)


def instead(place: str, *lines: str, until: str = "") -> Edit:
    return Edit(place, lines, instead=True, until=until)


def apply(edits: tuple[Edit, ...], text: str) -> str:
    lines = text.splitlines()
    for edit in edits:
        first = _only(lines, edit.place)
        last = _only(lines, edit.until, first) if edit.until else first
        lines[first if edit.instead else last + 1 : last + 1] = edit.lines
    return "\n".join(lines) + "\n"


def _only(lines: list[str], place: str, begin: int = 0) -> int:
    found = [number for number, line in enumerate(lines[begin:], begin) if re.search(place, line)]
    if not found or (len(found) > 1 and not begin):
        raise LookupError(f"{len(found)} lines match {place!r}: exactly one must")
    return found[0]


def fetch(script: Script, folder: pathlib.Path | None) -> dict[str, str]:
    """The script and the files that it imports, by name. `folder`: has owner/name/path of repositories."""
    where, path = script.source.rsplit(":", 1)
    if script.of_package:
        package = importlib.util.find_spec(where)
        assert package and package.origin
        root = pathlib.Path(package.origin).parent
        return {name: (root / name).read_text() for name in (path, *script.imports)}
    address, commit = where.split("@")
    owner_and_name = "/".join(address.split("/")[-2:])
    if folder is not None:
        root = folder / owner_and_name
        return {name: (root / pathlib.Path(name).name).read_text() for name in (path, *script.imports)}
    with tempfile.TemporaryDirectory(prefix="pliant-reach-") as clone:
        for command in (["init", "--quiet"], ["fetch", "--quiet", "--depth=1", address, commit]):
            subprocess.run(["git", "-C", clone, *command], check=True, timeout=600)
        return {
            name: subprocess.run(
                ["git", "-C", clone, "show", f"FETCH_HEAD:{name}"], check=True, capture_output=True, text=True
            ).stdout
            for name in (path, *script.imports)
        }


SCRIPTS = {
    "trl sft": Script(
        "trl:scripts/sft.py",
        (
            after(
                r"^    from trl import SFTTrainer",
                "    from pliant.transformers import PliantTrainer",
                "    class Trainer(PliantTrainer, SFTTrainer): pass",
            ),
            instead(r"^    trainer = SFTTrainer\(", "    trainer = Trainer("),
        ),
        data.texts_and_model,
        (
            "--model_name_or_path=model", "--dataset_name=texts", "--use_peft", "--lora_target_modules=.*c_attn",
            "--packing", "--max_length=16", "--num_train_epochs=8", "--per_device_train_batch_size=4",
            "--gradient_accumulation_steps=8", "--eval_strategy=epoch", "--bf16=false", "--use_cpu", "--report_to=none",
            "--learning_rate=5e-3", "--output_dir={out}", "--dtype=float32",
        ),
    ),
    "transformers run_clm": Script(
        "https://github.com/huggingface/transformers@v5.24.0:examples/pytorch/language-modeling/run_clm.py",
        (after(r"^from transformers.utils import check_min_version", "from pliant.transformers import PliantTrainer as Trainer"),),
        data.texts_and_model,
        (
            "--model_name_or_path=model", "--train_file=texts/train.json", "--validation_file=texts/test.json",
            "--do_train", "--do_eval", "--block_size=16", "--num_train_epochs=12", "--per_device_train_batch_size=4",
            "--gradient_accumulation_steps=8", "--use_cpu", "--report_to=none", "--learning_rate=5e-3",
            "--eval_strategy=epoch", "--output_dir={out}",
        ),
    ),
    "transformers run_image_classification_no_trainer": Script(
        "https://github.com/huggingface/transformers@v5.24.0:"
        "examples/pytorch/image-classification/run_image_classification_no_trainer.py",
        (
            instead(r"^from accelerate import Accelerator$", "from pliant.accelerate import Accelerator"),
            after(r"^    accelerator_log_kwargs = \{\}", "    accelerator_log_kwargs['epochs'] = args.num_train_epochs"),
            instead(r"^    completed_steps = 0$", "    completed_steps = accelerator.step"),
        ),
        data.images_and_model,
        (
            "--model_name_or_path=model", "--dataset_name=images",
            "--num_train_epochs=10", "--per_device_train_batch_size=4", "--gradient_accumulation_steps=8", "--seed=3",
            "--output_dir={out}", "--learning_rate=1e-3",
        ),
    ),
    "nanoGPT train": Script(
        "https://github.com/karpathy/nanoGPT@3adf61e154c3fe3fca428ad6bc3818b27a3b8291:train.py",
        (
            after(r"^import torch$", "import pliant"),
            instead(
                r"^X, Y = get_batch\('train'\)",
                "elastic = pliant.attach(model, optimizer, range(batch_size * gradient_accumulation_steps), "
                "max_steps=max_iters, batch_size=batch_size * gradient_accumulation_steps, scaler=scaler, "
                "logical_shards=gradient_accumulation_steps)",
            ),
            instead(
                r"^while True:",
                "for step in elastic.steps():",
                "    iter_num, master_process = step.number, elastic.first",
            ),
            instead(
                r"^    for micro_step in range\(gradient_accumulation_steps\):",
                "    for _ in step:",
                "        X, Y = get_batch('train')",
                until=r"^            model.require_backward_grad_sync",
            ),
            instead(
                r"^            loss = loss / gradient_accumulation_steps",
                "        step.backward(loss)",
                until=r"^        scaler.scale\(loss\).backward",
            ),
            instead(
                r"^    if grad_clip != 0.0:",
                "    step.commit(max_norm=grad_clip or None)",
                until=r"^    optimizer.zero_grad",
            ),
            instead(
                r"^        lossf = loss.item\(\)",
                "        lossf = step.loss",
            ),
        ),
        data.tokens,
        (
            "--dataset=tiny", "--device=cpu", "--compile=False", "--dtype=float32", "--n_layer=2", "--n_head=2",
            "--n_embd=32", "--block_size=16", "--batch_size=4", "--gradient_accumulation_steps=8", "--max_iters=60",
            "--eval_interval=20", "--eval_iters=2", "--log_interval=10", "--dropout=0.1", "--out_dir={out}",
            "--warmup_iters=10", "--lr_decay_iters=60",
        ),
        imports=("model.py", "configurator.py"),
    ),
    "torchvision classification train": Script(
        "https://github.com/pytorch/vision@v0.21.0:references/classification/train.py",
        (
            after(r"^import presets$", "import pliant"),
            instead(r"^    for i, \(image, target\) in enumerate", "    for i, (image, target) in enumerate(data_loader):"),
            instead(
                r"^        optimizer.zero_grad\(\)",
                "        data_loader.backward(loss)",
                until=r"^                model_ema.n_averaged.fill_\(0\)",
            ),
            after(
                r"metric_logger.meters\[\"img/s\"\]",
                "    data_loader.commit(max_norm=args.clip_grad_norm)",
                "    if model_ema and data_loader.number % args.model_ema_steps == 0:",
                "        model_ema.update_parameters(model)",
                "        if epoch < args.lr_warmup_epochs:",
                "            model_ema.n_averaged.fill_(0)",
            ),
            after(r"^    print\(\"Creating model\"\)", "    torch.manual_seed(0)"),
            instead(
                r"^    for epoch in range\(args.start_epoch, args.epochs\)",
                "    elastic = pliant.attach(model, optimizer, data_loader, epochs=args.epochs, scaler=scaler)",
                "    elastic.register('ema', model_ema)",
                "    for step in elastic.steps():",
                "        epoch = step.epoch",
                "        train_one_epoch(model, criterion, optimizer, step, device, epoch, args, model_ema, scaler)",
                "        if not step.last_of_epoch:",
                "            continue",
                until=r"^        train_one_epoch\(",
            ),
            instead(r"^        if args.output_dir:$", "        if args.output_dir and elastic.first:"),
        ),
        data.images,
        (
            "--data-path=images", "--device=cpu", "--workers=0", "--batch-size=32", "--epochs=14", "--lr=0.05",
            "--model=resnet18", "--train-crop-size=32", "--val-resize-size=32", "--val-crop-size=32", "--output-dir={out}",
            "--lr-warmup-epochs=2", "--model-ema", "--model-ema-steps=2", "--clip-grad-norm=2",
        ),
        imports=tuple(f"references/classification/{name}.py" for name in ("presets", "sampler", "transforms", "utils")),
    ),
    "keras mnist_convnet": Script(
        "https://github.com/keras-team/keras-io@master:examples/vision/mnist_convnet.py",
        (
            after(r"^import numpy as np", "import pliant.keras"),
            instead(
                r"^model.fit\(",
                "pliant.keras.fit(model, x_train, y_train, batch_size=batch_size, epochs=epochs, validation_split=0.1)",
            ),
        ),
        data.digits,
        (),
        samples=128,
        library="tensorflow",
    ),
}  # fmt: skip
