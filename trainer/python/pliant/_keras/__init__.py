"""Keras 3, with TensorFlow, JAX or PyTorch below it. Nothing outside of this folder imports keras."""
