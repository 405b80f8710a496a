"""Requests that another machine has to answer: sent on by one server, taken by the other. See ADR 24."""
