"""Parts of the end-to-end story. demo.py plays it for people, run.py as a test."""
