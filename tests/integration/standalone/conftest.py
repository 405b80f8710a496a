from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.sandboxes import Site


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    site = Site(tmp_path)
    site.base.mkdir()
    yield site
    site.close()
