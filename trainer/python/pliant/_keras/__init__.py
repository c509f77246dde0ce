"""Keras 3 on TensorFlow, JAX or PyTorch. Nothing outside this folder imports keras."""
