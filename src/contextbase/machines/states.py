"""What is told about machines in one line; imports nothing, for commands that must start quickly."""

from collections.abc import Mapping

__all__ = ["machine_states"]


def machine_states(machines: Mapping[str, str]) -> str:
    """`machines`: their states by name."""
    if not machines:
        return "none; `contextbase machine` starts one"
    states = sorted(set(machines.values()), key=lambda state: (state != "running", state))
    return "; ".join(f"{state}: {', '.join(name for name in machines if machines[name] == state)}" for state in states)
