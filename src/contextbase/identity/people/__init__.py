"""People: their accounts, departments and roles."""
