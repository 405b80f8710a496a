"""Names resolved on the server, with addresses of our own network refused: a check of the name alone could be passed by
a name that leads inside."""

import asyncio
import ipaddress
import socket
from dataclasses import dataclass

from contextbase.errors import Forbidden, Unavailable

__all__ = ["AddressChecker", "ResolvedAddress"]

_IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True, kw_only=True, slots=True)
class ResolvedAddress:
    host: str  # a number, to connect to
    port: int


@dataclass(frozen=True, kw_only=True, slots=True)
class AddressChecker:
    allow_private: bool = False  # an administrator's own services
    allow_loopback: bool = False  # for tests: their servers are on this machine
    resolve_seconds: float = 10.0

    async def resolve(self, host: str, port: int) -> ResolvedAddress:
        """The address to connect to. Raises `Forbidden` if any address of that name is not a public one, `Unavailable`
        if it has none."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self.resolve_seconds):
                found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):  # a time-out is an OSError too
            raise Unavailable(f"The host {host[:200]!r} has no address.") from None
        addresses = [str(entry[4][0]) for entry in found]
        for address in addresses:
            if not self._is_allowed(ipaddress.ip_address(address.partition("%")[0])):
                raise Forbidden(f"The host {host[:200]!r} is at an address of a private network.")
        if not addresses:
            raise Unavailable(f"The host {host[:200]!r} has no address.")
        return ResolvedAddress(host=addresses[0], port=port)

    def _is_allowed(self, address: _IpAddress) -> bool:
        if isinstance(address, ipaddress.IPv6Address):
            inner = address.ipv4_mapped or address.sixtofour or (address.teredo and address.teredo[1])
            if inner:
                return self._is_allowed(inner)
            if address in _TRANSLATED:  # NAT64: the last 32 bits are an IPv4 address
                return self._is_allowed(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
        if address.is_loopback:
            return self.allow_loopback or self.allow_private
        if address.is_link_local or address.is_multicast or address.is_unspecified:
            return False  # also where clouds keep their metadata
        return address.is_global or (self.allow_private and address.is_private)


_TRANSLATED = ipaddress.ip_network("64:ff9b::/96")
