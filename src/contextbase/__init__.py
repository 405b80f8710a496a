"""A shared, versioned context base for AI agents."""

__all__ = ["__version__"]

__version__ = "0.1.0"
