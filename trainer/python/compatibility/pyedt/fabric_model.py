"""The name under which scripts for Watson Machine Learning Accelerator import FabricModel."""

from pliant.fabric import FabricModel

__all__ = ["FabricModel"]
