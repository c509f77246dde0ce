"""The global batch and the logical shards of each model. Separate from the models, which take
seconds to import."""

SIZES = {"cnn": (32, 8), "transformer": (32, 8), "resnet18": (8, 2), "large": (8, 2)}
