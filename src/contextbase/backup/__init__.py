"""Everything in one place that can be brought back: make, verify and restore backups."""

from contextbase.backup.verify import verify_backup

__all__ = ["verify_backup"]
