"""What works without a server: bringing a backup back, and asking what is outside whether it answers."""

import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from contextbase.backup.restore import RestoreService
from contextbase.bootstrap.blobs import bucket_store, large_blob_store
from contextbase.bootstrap.database import open_database
from contextbase.bootstrap.foundation import configured_key
from contextbase.config import Settings
from contextbase.data_folder import DataFolder
from contextbase.db.database import Database, DatabaseAddress
from contextbase.errors import ContextbaseError
from contextbase.ids import ContentHash, SystemClock
from contextbase.storage.blobs.spool import SpoolFolder

__all__ = ["open_restore", "problems_outside"]


@asynccontextmanager
async def open_restore(
    settings: Settings, *, on_step: Callable[[str], None] = lambda _: None
) -> AsyncIterator[RestoreService]:
    """What brings a backup back. The data folder is ours meanwhile: no server starts on half of it."""
    data = DataFolder(settings.data.absolute())
    data.refuse_foreign()
    async with open_database(settings, own=True, on_step=on_step) as database:
        yield RestoreService(
            database=database,
            large_blobs=large_blob_store(settings, data, SpoolFolder(data.blobs / "tmp")),
            data=data,
            configured_key=configured_key(settings),
            clock=SystemClock(),
        )


async def problems_outside(settings: Settings) -> dict[str, str]:
    """What is wrong with the database and the bucket that are not ours, by asking them: a sentence for each."""
    problems = {}
    if settings.database.url is not None:
        try:
            database = await Database.connect(DatabaseAddress(url=settings.database.url.get_secret_value()))
            await database.close()
        except ContextbaseError as error:
            problems["database"] = error.message
    keys = (settings.s3.access_key_id, settings.s3.secret_access_key)
    if settings.storage.blob_location.bucket is not None and None not in keys:
        try:
            with tempfile.TemporaryDirectory() as folder:
                await bucket_store(settings, SpoolFolder(Path(folder))).exists(ContentHash.of(b""))
        except ContextbaseError as error:
            problems["s3"] = error.message
    return problems
