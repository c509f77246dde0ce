"""kubectl pliant: shows and changes elastic training jobs, by way of kubectl."""

__version__ = "0.1.0"
