"""How often the database is asked."""

import asyncpg
import pytest

__all__ = ["StatementCount"]


class StatementCount:
    """Counts what all connections ask, from when it is made; set `asked` to begin anew."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked = 0
        run = asyncpg.Connection._do_execute  # type: ignore[attr-defined]  # asyncpg's own

        async def counted(*arguments: object, **options: object) -> object:
            self.asked += 1
            return await run(*arguments, **options)

        monkeypatch.setattr(asyncpg.Connection, "_do_execute", counted)
