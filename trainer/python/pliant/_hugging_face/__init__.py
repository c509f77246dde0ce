"""What makes trainings with libraries of Hugging Face elastic."""
