"""The name under which scripts for Watson Machine Learning Accelerator import FabricModel."""

from pliant._accelerator import seed_once, settle_environment
from pliant.fabric import FabricModel

__all__ = ["FabricModel"]

settle_environment()
seed_once()
