"""Sandboxes in containers of a Docker engine on this machine."""

from contextbase.sandbox.docker.driver import DockerDriver

__all__ = ["DockerDriver"]
