"""Workers on a plain folder: each works on a copy, and what it did is merged back."""
