"""Loads the final model of keras_program.py in plain Keras, as docs/keras.md describes, and prints its accuracy."""

import sys
from pathlib import Path

import numpy as np
from keras_program import Images, cnn

try:
    from safetensors.numpy import load_file
except ImportError:
    from pliant._keras.final_model import read_safetensors as load_file

model = cnn()
tensors = load_file(Path(sys.argv[1]))
for variable in model.weights:
    variable.assign(tensors.pop(variable.path))
assert not tensors, tensors.keys()
samples = [Images(50, augment=False)[i] for i in range(50)]
images, words = (np.stack([inputs[i] for inputs, _ in samples]) for i in (0, 1))
scores = model.predict([images, words], verbose=0)
print(np.mean(scores.argmax(1) == np.stack([truth for _, truth in samples])))
