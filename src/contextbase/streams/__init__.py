"""Ordered streams of events, one for each project, session and user and one for the system; hints that wake readers.

A project's feed, its commits and events together, is built on them."""
