"""Arguments of pliant.attach that other libraries have, and what to write here."""

_EPOCHS = "call it epochs"
_TEST_DATA = "call it test_data, and give evaluate, too"
_ACCUMULATION = "a step accumulates its micro-batches: give micro_batch_size, or logical_shards"
_SCHEDULE = "step it in the loop, and call elastic.register('schedule', schedule)"
_CLIP = "clip in the loop: step.commit(max_norm=...)"
_LEARNERS = "the job decides who trains (spec.elastic), and it may change meanwhile"
_PRECISION = "enter torch.autocast in the loop; float16 needs a scaler, too"

REMEDIES = {
    "accumulation_steps": _ACCUMULATION,
    "amp": _PRECISION,
    "bf16": _PRECISION,
    "callbacks": "call elastic.add_callback(callback) for each",
    "collate": "call it collate_fn",
    "criterion": "compute the loss in the loop: step.backward(criterion(...))",
    "dataloader_num_workers": "call it num_workers",
    "device": "move the model before: model.to(device)",
    "eval_dataset": _TEST_DATA,
    "eval_steps": "call it evaluate_every",
    "fp16": _PRECISION,
    "gradient_accumulation_steps": _ACCUMULATION,
    "gradient_clip_val": _CLIP,
    "learning_rate": "give it to the optimizer",
    "loss_fn": "compute the loss in the loop: step.backward(loss_fn(...))",
    "lr": "give it to the optimizer",
    "lr_scheduler": _SCHEDULE,
    "max_epochs": _EPOCHS,
    "max_grad_norm": _CLIP,
    "max_norm": _CLIP,
    "metrics": "report sums in the loop: step.log(name=...)",
    "mixed_precision": _PRECISION,
    "num_epochs": _EPOCHS,
    "num_train_epochs": _EPOCHS,
    "per_device_train_batch_size": "call it micro_batch_size; batch_size is that of all learners",
    "rank": _LEARNERS,
    "sampler": "give a data set that has the wanted samples, in their proportions",
    "save_steps": "call it checkpoint_every_steps",
    "scheduler": _SCHEDULE,
    "shuffle": "samples are shuffled by the seed; a DataLoader without shuffle is read in order",
    "train_batch_size": "call it batch_size",
    "val_data": _TEST_DATA,
    "validation_data": _TEST_DATA,
    "workers": "call it num_workers",
    "world_size": _LEARNERS,
}
