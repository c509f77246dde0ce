"""PyTorch. Nothing outside of this folder imports torch."""
