"""Work that is done again and again, registered in one place: by one leader, or by each machine for itself."""

from contextbase.chores.leadership import Leadership
from contextbase.chores.model import Chore, ChoreRun, Leader, Where
from contextbase.chores.runner import ChoreRunner
from contextbase.chores.service import ChoreService

__all__ = ["Chore", "ChoreRun", "ChoreRunner", "ChoreService", "Leader", "Leadership", "Where"]
