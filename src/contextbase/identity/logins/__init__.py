"""How people log in: passwords, the logins of browsers, and links to choose a password with."""
