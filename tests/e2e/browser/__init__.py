"""Drives a headless Chromium, and checks the operator's page in it."""
