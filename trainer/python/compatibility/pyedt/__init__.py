"""As Watson Machine Learning Accelerator 4 and 5 name it."""
