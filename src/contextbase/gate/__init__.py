"""The one write door: authorize, compare, merge, commit, audit."""
