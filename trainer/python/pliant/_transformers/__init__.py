"""What makes a Trainer of transformers elastic."""
