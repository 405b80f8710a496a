"""What models cost: a built-in table by the start of a model's name, which administrators override per model."""

from dataclasses import dataclass
from typing import Final

from contextbase.models.model import ModelProtocol, TokenCounts

__all__ = ["ModelPrice", "built_in_price", "dearest_price"]

_MILLION: Final = 1_000_000


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelPrice:
    """Micro-units of the currency (dollars, in the built-in table) for a million tokens."""

    input: int
    output: int
    cache_read: int
    cache_write: int

    def cost(self, counts: TokenCounts) -> int:
        """Micro-units, rounded up."""
        total = (
            counts.input * self.input
            + counts.output * self.output
            + counts.cache_read * self.cache_read
            + counts.cache_write * self.cache_write
        )
        return -(-total // _MILLION)


def _dollars(prompt: float, output: float, cache_read: float, cache_write: float) -> ModelPrice:
    parts = [round(each * _MILLION) for each in (prompt, output, cache_read, cache_write)]
    return ModelPrice(input=parts[0], output=parts[1], cache_read=parts[2], cache_write=parts[3])


def _anthropic(prompt: float, output: float) -> ModelPrice:
    return _dollars(prompt, output, prompt / 10, prompt * 1.25)


# As published by the makers in 2025; the longest start that matches counts.
_BUILT_IN: Final[dict[ModelProtocol, dict[str, ModelPrice]]] = {
    ModelProtocol.ANTHROPIC: {
        "claude-opus-4-5": _anthropic(5, 25),
        "claude-opus": _anthropic(15, 75),
        "claude-sonnet": _anthropic(3, 15),
        "claude-haiku-4-5": _anthropic(1, 5),
        "claude-haiku": _anthropic(1, 5),
        "claude-3-7-sonnet": _anthropic(3, 15),
        "claude-3-5-haiku": _anthropic(0.8, 4),
        "claude-": _anthropic(15, 75),
    },
    ModelProtocol.OPENAI: {
        "gpt-5-nano": _dollars(0.05, 0.4, 0.005, 0),
        "gpt-5-mini": _dollars(0.25, 2, 0.025, 0),
        "gpt-5-pro": _dollars(15, 120, 15, 0),
        "gpt-5": _dollars(1.25, 10, 0.125, 0),
        "gpt-4.1-mini": _dollars(0.4, 1.6, 0.1, 0),
        "gpt-4.1": _dollars(2, 8, 0.5, 0),
        "gpt-4o-mini": _dollars(0.15, 0.6, 0.075, 0),
        "gpt-4o": _dollars(2.5, 10, 1.25, 0),
        "o3": _dollars(2, 8, 0.5, 0),
        "o4-mini": _dollars(1.1, 4.4, 0.275, 0),
        "codex-mini": _dollars(1.5, 6, 0.375, 0),
        "gpt-": _dollars(15, 120, 15, 0),
    },
}


def built_in_price(protocol: ModelProtocol, model: str) -> ModelPrice | None:
    starts = [start for start in _BUILT_IN[protocol] if model.startswith(start)]
    return _BUILT_IN[protocol][max(starts, key=len)] if starts else None


def dearest_price(protocol: ModelProtocol) -> ModelPrice:
    """For a model that nobody gave a price: a budget must hold all the same."""
    return max(_BUILT_IN[protocol].values(), key=lambda price: price.output)
