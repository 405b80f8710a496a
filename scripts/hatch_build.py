"""Builds the web workbench into a wheel or sdist; see build_web.py. CONTEXTBASE_SKIP_WEB=1 leaves it out."""

import os
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, str(Path(__file__).parent))

from build_web import WEB, build


class WorkbenchBuildHook(BuildHookInterface):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 - hatchling's signature
        """An editable install builds nothing: `make setup` does."""
        if version != "editable" and WEB.is_dir() and not os.environ.get("CONTEXTBASE_SKIP_WEB"):
            build()
