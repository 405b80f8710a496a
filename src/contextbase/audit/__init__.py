"""The append-only, HMAC-chained audit trail: one chain per project and one for the system."""
