"""The built-in model: it has no intelligence. It plays scripts, for tests, and else shows what an agent could do."""

from contextbase.models.scripted.model import ScriptedModel

__all__ = ["ScriptedModel"]
