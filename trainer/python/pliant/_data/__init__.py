"""The parts of pliant.data."""
