"""Which way of mounting is taken on which kernel, with one that only says what it takes."""

import errno
import os
from collections.abc import Iterator

import pytest

from contextbase.workspaces import syscalls


@pytest.fixture(autouse=True)
def asked_anew() -> Iterator[None]:
    syscalls._has_single_layers.cache_clear()
    yield
    syscalls._has_single_layers.cache_clear()


@pytest.mark.parametrize(
    ("refused", "has_them"),
    [
        pytest.param({"no-such-setting"}, True, id="6.7"),
        pytest.param({"lowerdir+", "no-such-setting"}, False, id="6.5"),
        pytest.param(set(), False, id="6.1, which looks at nothing before the mount"),
        pytest.param(None, False, id="5.1, without fsopen"),
    ],
)
def test_layers_are_given_one_by_one_where_the_kernel_knows_the_setting(
    refused: set[str] | None, has_them: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kernel(number: int, *_: object, about: str) -> int:
        if refused is None:
            raise OSError(errno.ENOSYS, "no such call")
        if number == syscalls._FSOPEN:
            return os.open("/", os.O_RDONLY)
        if about.partition("=")[0] in refused:
            raise OSError(errno.EINVAL, "no such setting")
        return 0

    monkeypatch.setattr(syscalls, "_syscall", kernel)
    assert syscalls._has_single_layers() is has_them
