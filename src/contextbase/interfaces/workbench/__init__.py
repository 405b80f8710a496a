"""The web workbench: what `web/` was built into (`static/`, not in the repository), and how it is served."""
