"""The client for code that is not async. All of it but `waiting` is generated from `aio`."""
