"""`__all__` is each module's public surface: it must exist, be sorted out, and resolve."""

import importlib
import pkgutil

import pytest

import contextbase

MODULES = sorted(
    module.name for module in pkgutil.walk_packages(contextbase.__path__, "contextbase.") if not module.ispkg
)


@pytest.mark.parametrize("name", MODULES)
def test_every_public_name_of_a_module_is_there(name: str) -> None:
    module = importlib.import_module(name)
    public = module.__all__
    assert len(set(public)) == len(public)
    missing = [each for each in public if not hasattr(module, each)]
    assert not missing


def test_the_list_of_modules_is_the_whole_package() -> None:
    assert {"contextbase.errors", "contextbase.db.embedded", "contextbase.interfaces.cli.main"} <= set(MODULES)
