"""What a caller may see: snapshots, the commit log, the audit trail."""
