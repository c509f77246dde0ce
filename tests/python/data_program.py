"""A script on data in the format of another library: `data_program.py web|rows|filtered FOLDER`. The data are 3,000
samples that have a number: tar files, parquet files, or parquet files whose rows pass a filter.

Learners append to a file in TOY_LOG which sample was at which place of the epoch, and how many samples were read when a
stream was opened.
"""

import io
import itertools
import json
import os
import pathlib
import random
import sys
import tarfile

SAMPLES = 3000
FILES = (1000, 1, 640, 0, 1359)  # samples in each
EQUAL_FILES = (375,) * 8
EVERY = 64  # samples between two positions
SHUFFLE = 200


def write_web(folder):
    number = itertools.count()
    for file, count in enumerate(FILES):
        with tarfile.open(folder / f"{file}.tar", "w") as archive:
            for id, name in itertools.product((next(number) for _ in range(count)), ("id", "label.txt")):
                member = tarfile.TarInfo(f"{id:06}.{name}")
                content = str(id if name == "id" else id % 4).encode()
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))


def write_parquet(folder, files):
    import pyarrow
    from pyarrow import parquet

    number = itertools.count()
    for file, count in enumerate(files):
        numbers = [next(number) for _ in range(count)]
        table = pyarrow.table({"id": pyarrow.array(numbers, "int64")})
        parquet.write_table(table, folder / f"{file}.parquet", row_group_size=400)


def main(kind, folder):
    import pliant
    import torch
    from pliant._data import hf_reading
    from torch import nn

    hf_reading.EVERY = EVERY
    log = open(pathlib.Path(os.environ["TOY_LOG"], f"{os.environ.get('PLIANT_LEARNER', 'alone')}.log"), "a")
    read = 0

    def write(**line):
        log.write(json.dumps(line) + "\n")
        log.flush()

    def count(sample):
        nonlocal read
        read += 1
        return sample

    def sample_of(number, label):
        """Its input draws a random number."""
        return torch.tensor([number / SAMPLES, label, random.random(), 1.0]), int(label), number

    def of_web(sample):
        return sample_of(int(count(sample)["id"]), int(sample["label.txt"]))

    def of_row(row):
        return {**count(row), "drawn": random.random()}

    def collate(samples):
        if kind != "web":
            samples = [sample_of(row["id"], row["id"] % 4 + row["drawn"]) for row in samples]
        return torch.utils.data.default_collate(samples)

    class Observed:
        """Writes how many samples were read to open a stream."""

        def __init__(self, data):
            self.data = data

        def __len__(self):
            return len(self.data)

        def stream(self, shard, start):
            before, first = read, True
            for sample in self.data.stream(shard, start):
                if first:
                    write(kind="opened", epoch=shard.epoch, shard=shard.index, start=start, read=read - before)
                first = False
                yield sample

    if kind == "web":
        data = pliant.data.WebDataset(f"{folder}/{{0..{len(FILES) - 1}}}.tar", decode=of_web, shuffle=SHUFFLE)
    else:
        import datasets

        files = [str(folder / f"{file}.parquet") for file in range(len(list(folder.glob("*.parquet"))))]
        rows = datasets.load_dataset(
            "parquet", data_files=files, split="train", streaming=True, cache_dir=str(folder / "cache")
        )
        if kind == "rows":
            data = pliant.data.HuggingFace(rows.map(of_row), shuffle=SHUFFLE)
        else:
            rows = rows.filter(lambda row: row["id"] < SAMPLES).map(of_row)
            data = pliant.data.HuggingFace(rows, samples=SAMPLES, shuffle=SHUFFLE)
    torch.manual_seed(5)
    model = nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    elastic = pliant.attach(
        model,
        optimizer,
        Observed(data),
        epochs=int(os.environ["TOY_EPOCHS"]),
        num_workers=int(os.environ.get("TOY_WORKERS", "0")),
        collate_fn=collate,
    )
    for step in elastic.steps():
        for inputs, labels, numbers in step:
            write(kind="batch", epoch=step.epoch, places=step.shard.samples, numbers=numbers.tolist())
            step.backward(nn.functional.cross_entropy(model(inputs), labels))
        step.commit()


if __name__ == "__main__":
    main(sys.argv[1], pathlib.Path(sys.argv[2]))
