"""The package name in Watson Machine Learning Accelerator 4 and 5."""
