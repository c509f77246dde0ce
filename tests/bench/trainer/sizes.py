"""How the models are trained: the global batch and its logical shards. Apart from the models, which
take seconds to import."""

SIZES = {"cnn": (32, 8), "transformer": (32, 8), "resnet18": (8, 2), "large": (8, 2)}
