"""Runs of experiment trackers that stay one through all changes of a job's learners."""
