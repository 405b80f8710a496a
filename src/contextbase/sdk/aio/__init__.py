"""The client for async code. The one in `blocking` is generated from it."""
