"""A user's script, as small as the tests need it: `program.py cnn|steps|stream|replaced|transformer|tokens|adapter
[fault]`. "steps" is the CNN, limited to seven steps for each of its epochs and evaluated after every nine; it asks for
checkpoints and keeps the best model. "stream" is the CNN on data that are read sequentially; it stops itself after a fifth of its epochs.
"replaced" is a CNN that replaces its tensors by others, and registers an average. "tokens" weighs texts of 1 to 9
tokens by those that have a label; many have none. "adapter" is the same with a frozen table of 104 MB at home.

CNN and transformer have everything whose result could depend on which learner computes it: BatchNorm, dropout,
augmentation that draws random numbers from python, numpy and torch, a schedule, clipping. TOY_EPOCHS sets the number of
epochs. """

import copy
import hashlib
import json
import os
import random
import sys

import numpy
import pliant
import torch
from pliant import _gpus
from torch import nn
from torch.utils.data import Dataset, IterableDataset, TensorDataset

EPOCHS = int(os.environ.get("TOY_EPOCHS", "2"))
FAULT = sys.argv[2] if len(sys.argv) > 2 else os.environ.get("TOY_FAULT", "")
GPUS = int(os.environ.get("TOY_GPUS", "0"))  # the number of GPUs that its container pretends to hold


class Images(Dataset):
    """Stripes at one of four angles, flipped and shifted at random."""

    def __init__(self, count, augment):
        self.count, self.augment = count, augment

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        label = index % 4
        generator = torch.Generator().manual_seed(index)
        image = torch.randn(1, 8, 8, generator=generator) * 0.3
        if FAULT == "data" and index == 77:
            raise KeyError("sample 77 has no label")
        image += torch.sin(torch.arange(8) * (label + 1.0)).reshape(1, 8, 1)
        if self.augment:
            if random.random() < 0.5:
                image = image.flip(2)
            image = image.roll(int(numpy.random.randint(-1, 2)), 1) + 0.05 * torch.randn(1)
        return image, label


class Stream(IterableDataset):
    """Images in streams: each stream has every count-th image."""

    def __init__(self, images):
        self.images = images

    def __len__(self):
        return len(self.images)

    def __iter__(self):
        raise TypeError("it is read by its streams")

    def stream(self, shard, start):
        for index in range(shard.index + start * shard.count, len(self.images), shard.count):
            yield self.images[index]


class Cnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
            nn.Flatten(), nn.Dropout(0.2), nn.Linear(128, 4),
        )  # fmt: skip

    def forward(self, images):
        return self.layers(images)


class Replaced(Cnn):
    """Its forward assigns buffers. After each commit `average` replaces the frozen part of the model, and the
    parameters are replaced by smaller ones."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(1, 8, 8))
        self.register_buffer("seen", torch.zeros((), dtype=torch.int64))
        self.averaged = copy.deepcopy(self.layers).requires_grad_(False)

    def forward(self, images):
        if self.training:
            self.mean = 0.95 * self.mean + 0.05 * images.mean(0)
            self.seen = self.seen + len(images)
        return self.layers(images - self.mean)

    def average(self):
        theirs = [*self.averaged.parameters(), *self.averaged.buffers()]
        ours = [*self.layers.parameters(), *self.layers.buffers()]
        for averaged, value in zip(theirs, ours, strict=True):
            averaged.data = (0.9 * averaged.data + 0.1 * value.data).to(averaged.dtype)
        for parameter in self.layers.parameters():
            parameter.data = parameter.data * 0.999


class Registered:
    """State of tensors and arrays, some of which are created at each call."""

    def __init__(self, model):
        self.model = model
        self.average = [parameter.detach().clone() for parameter in model.parameters()]
        self.losses = numpy.zeros(1000)

    def update(self, step):
        for average, parameter in zip(self.average, self.model.parameters(), strict=True):
            average.lerp_(parameter.detach(), 0.1)
        self.losses[step.number % 1000] += step.loss

    def state_dict(self):
        return {"average": self.average, "losses": self.losses, "sum": torch.tensor(self.losses.sum())}

    def load_state_dict(self, state):
        self.average, self.losses = state["average"], state["losses"]

    def sha256(self):
        arrays = [*(average.numpy() for average in self.average), self.losses]
        return hashlib.sha256(b"".join(array.tobytes() for array in arrays)).hexdigest()


class Transformer(nn.Module):
    """Predicts the next token. Its output layer is its embedding: one parameter used twice."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(16, 24)
        self.position = nn.Parameter(torch.randn(8, 24) * 0.02)
        layer = nn.TransformerEncoderLayer(
            24, 2, 48, dropout=0.1, batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.out = nn.Linear(24, 16, bias=False)
        self.out.weight = self.embedding.weight
        self.frozen = nn.Parameter(torch.randn(3), requires_grad=False)
        self.register_buffer(
            "mask", torch.triu(torch.full((8, 8), float("-inf")), 1), persistent=False
        )

    def forward(self, tokens):
        hidden = self.encoder(self.embedding(tokens) + self.position, mask=self.mask)
        return self.out(hidden).flatten(0, 1)


class Tokens(nn.Module):
    """Predicts the next token from the one before."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(16, 24)
        self.out = nn.Linear(24, 16)

    def forward(self, tokens):
        return self.out(self.embedding(tokens)).flatten(0, 1)


class Adapter(Tokens):
    """Looks at a large table, which is frozen."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(16, 26 << 16).requires_grad_(False)

    def forward(self, tokens):
        return self.out(self.embedding(tokens) + self.table.weight[tokens, :24]).flatten(0, 1)


class Endless(IterableDataset):
    def __iter__(self):
        while True:
            yield torch.zeros(1, 8, 8), 0


def texts(count):
    generator = torch.Generator().manual_seed(count)
    tokens = (torch.randint(0, 16, (count, 1), generator=generator) + torch.arange(9) * 3) % 16
    return TensorDataset(tokens[:, :-1], tokens[:, 1:].flatten(1))


def labelled(count):
    """Texts of several lengths. Half of them have no labels, so neither have some shards."""
    generator = torch.Generator().manual_seed(count)
    lengths = torch.randint(1, 10, (count,), generator=generator).tolist()
    firsts = torch.randint(0, 16, (count,), generator=generator).tolist()
    texts = [(first + torch.arange(n + 1) * 3) % 16 for n, first in zip(lengths, firsts, strict=True)]
    return [
        (text[:-1], text[1:] if index % 2 else torch.full((len(text) - 1,), -100))
        for index, text in enumerate(texts)
    ]


def padded(samples):
    pad = nn.utils.rnn.pad_sequence
    inputs, targets = zip(*samples, strict=True)
    return pad(inputs, True), pad(targets, True, -100)


def sums_of(scores, targets):
    """The number of labels, and the sum of the entropies of their predictions."""
    labels = targets.flatten() != -100
    entropy = torch.distributions.Categorical(logits=scores.detach()).entropy()
    return {"weight": labels.sum(), "entropy": entropy[labels].sum()}


def main(kind, fault):
    torch.manual_seed(5)
    if kind in ("cnn", "stream", "replaced"):
        model = Replaced() if kind == "replaced" else Cnn()
        train, test = Images(250, augment=True), Images(50, augment=False)
        if kind == "stream":
            train, test = Stream(train), Stream(test)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    elif kind in ("tokens", "adapter"):
        model, train, test = (Tokens if kind == "tokens" else Adapter)(), labelled(250), labelled(50)
        trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
        optimizer = torch.optim.AdamW(trained, lr=1e-2)
    else:
        model, train, test = Transformer(), texts(250), texts(50)
        optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 100)
    loss_function = nn.CrossEntropyLoss()
    settings = {"num_workers": int(os.environ.get("TOY_WORKERS", "0"))}
    if kind in ("tokens", "adapter"):
        settings |= {"collate_fn": padded}
    if kind == "adapter":
        settings |= {"frozen": "at_home"}
    settings |= {"max_steps": EPOCHS * 7, "evaluate_every": 9} if kind == "steps" else {"epochs": EPOCHS}
    if fault == "other base":
        model.table.weight.data[3, 5] += 1
    if fault == "meta":
        model = model.to("meta")
    elif fault == "iterable":
        train = Endless()
    elif fault == "divide":
        settings |= {"batch_size": 30, "logical_shards": 8}
    elif fault in ("skip", "warn", "typo"):
        settings |= {"on_nonfinite": fault}

    def evaluate(batch):
        inputs, targets = batch
        scores = model(inputs)
        loss = loss_function(scores, targets.flatten())
        correct = (scores.argmax(1) == targets.flatten()).sum()
        if kind in ("tokens", "adapter"):
            return {"loss": loss, "correct": correct, **sums_of(scores, targets)}
        return loss, correct

    _gpus.held = lambda: GPUS
    elastic = pliant.attach(
        model, optimizer, train, test_data=test, evaluate=evaluate, **settings
    )
    elastic.register("schedule", schedule)
    if kind == "steps":
        elastic.add_callback(pliant.BestModel())
    if kind == "replaced":
        registered = Registered(model)
        elastic.register("registered", registered)
    if kind == "stream":
        gentler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0)
        elastic.register("gentler", gentler)

        def on_evaluation(evaluation):
            gentler.step(evaluation.loss)
            if evaluation.epoch + 1 == EPOCHS // 5:
                elastic.stop()

        elastic.add_callback(pliant.LambdaCallback(on_test_end=on_evaluation))
    print(f"the {kind} begins")
    for step in elastic.steps():
        for inputs, targets in step:
            scores = model(inputs)
            loss = loss_function(scores, targets.flatten())
            if fault == "exception" and step.number >= 3:
                raise ValueError("the third step is a bad one")
            if step.number == 3 and fault in ("nan", "skip", "warn"):
                loss = loss * float("nan")
            further = sums_of(scores, targets) if kind in ("tokens", "adapter") else {}
            step.backward(loss, correct=(scores.argmax(1) == targets.flatten()).sum(), **further)
        step.commit(max_norm=1.0)
        if kind == "tokens":
            result = [step.number, step.loss, step.accuracy, step.weight, step.sums["entropy"]]
            print(f"step {json.dumps(result)} first {elastic.first}", flush=True)
        if fault == "own step" and step.number == 2:
            optimizer.step()
        schedule.step()
        if kind == "steps" and step.number % 20 == 10:
            elastic.save_checkpoint()
        if kind == "replaced":
            model.average()
            registered.update(step)
        if fault == "asks" and step.number == 6:
            pliant.request_learners(2)
    if kind == "replaced":
        print(f"registered {registered.sha256()}")
    print(f"done {elastic.ending.parameters_sha256}")


if __name__ == "__main__":
    main(sys.argv[1], FAULT)
