"""The database that the settings name: an external one, or the embedded one of the data folder."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager

from contextbase.config import Settings
from contextbase.data_folder import DataFolder
from contextbase.db.database import Database, DatabaseAddress
from contextbase.db.embedded import EmbeddedPostgres, embedded_address
from contextbase.db.migrations.runner import all_migrations, pending_migrations
from contextbase.errors import Conflict, InvalidInput

__all__ = ["open_database"]


@asynccontextmanager
async def open_database(
    settings: Settings, *, own: bool, create: bool = True, on_step: Callable[[str], None] = lambda _: None
) -> AsyncIterator[Database]:
    """The external database, or the embedded one. Without `create` it must hold a contextbase: else `InvalidInput`,
    and nothing is made.

    With `own` the data folder is locked and the embedded PostgreSQL runs for as long as the block does: `Conflict` if
    another process has it. Without, a running server's is used, and only if there is none is it started for a while.
    """
    data = DataFolder(settings.data.absolute())
    async with AsyncExitStack() as stack:
        if create:
            data.create()
        else:
            _require_data(settings, data)
        url = settings.database.url
        if own or url is None:
            try:
                stack.enter_context(data.lock())
                owned = True
            except Conflict:
                if own:
                    raise
                owned = False
        if url is not None:
            address = DatabaseAddress(url=url.get_secret_value())
        elif owned:
            embedded = EmbeddedPostgres(data.postgres)
            stack.push_async_callback(embedded.stop)
            await embedded.start(on_step)
            address = embedded.address
        else:
            address = embedded_address(data.postgres)
        database = await Database.connect(
            address,
            pool_size=settings.database.pool_size,
            statement_timeout_seconds=settings.database.timeout_seconds,
        )
        stack.push_async_callback(database.close)
        if not create and len(await pending_migrations(database)) == len(all_migrations()):
            raise InvalidInput(
                "The database holds no contextbase. Check CONTEXTBASE_DATABASE_URL and --data; `contextbase up` starts "
                "a new one there."
            )
        yield database


def _require_data(settings: Settings, data: DataFolder) -> None:
    """What the settings keep in the data folder is there. Whether an external database is ours, it says itself."""
    if settings.database.url is None:
        is_there = data.holds_database()
    else:
        is_there = settings.storage.blob_location.bucket is not None or data.path.is_dir()
    if not is_there:
        raise InvalidInput(
            f"There is no contextbase in {data.path}. Name its data folder with --data or CONTEXTBASE_DATA; "
            "`contextbase up` starts a new one."
        )
