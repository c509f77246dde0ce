"""PyTorch. Nothing outside this folder imports torch."""
