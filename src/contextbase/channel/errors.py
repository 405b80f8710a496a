"""What can go wrong on a channel. These are connection errors, as of a socket: both sides handle them as such, and the
server turns them into its own errors at the link."""

__all__ = ["ChannelClosed", "ProtocolViolation", "StreamCut"]


class ChannelClosed(ConnectionError):
    """The connection between server and sandbox is gone. The work inside goes on; attach again."""


class StreamCut(ConnectionResetError):
    """This stream was cut by the other side, or ended with its channel."""


class ProtocolViolation(ConnectionError):
    """The other side broke a rule of the protocol; its connection is closed."""
