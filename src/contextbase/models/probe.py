"""Whether a model service answers, and takes our key: asked for its list of models, which costs nothing."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import httpx

from contextbase.errors import ModelUpstreamUnavailable, NotFound
from contextbase.identity.model import Caller
from contextbase.models.addresses import AddressChecker
from contextbase.models.catalog import ModelCatalog
from contextbase.models.http_transport import HttpTransport, UpstreamAddress
from contextbase.models.model import ModelProtocol
from contextbase.models.sealing import KeySealer
from contextbase.models.upstreams import opened_address

__all__ = ["ProbeResult", "UpstreamProbe"]

_REFUSED: Final = frozenset({401, 403})
_FAILED: Final = 500


@dataclass(frozen=True, kw_only=True, slots=True)
class ProbeResult:
    is_well: bool
    status: int | None  # None: it did not answer
    message: str


class UpstreamProbe:
    def __init__(
        self,
        *,
        catalog: ModelCatalog,
        sealer: KeySealer,
        client: httpx.AsyncClient,
        configured: Mapping[ModelProtocol, UpstreamAddress],
    ) -> None:
        self._catalog = catalog
        self._sealer = sealer
        self._client = client
        self._configured = list(configured.values())

    def configured(self, caller: Caller) -> list[UpstreamAddress]:
        """Those of the settings, for administrators."""
        return self._configured if caller.administers_all else []

    async def test(self, caller: Caller, name: str) -> ProbeResult:
        """Raises `NotFound` if there is no such service that the caller may manage."""
        try:
            upstream = await self._catalog.upstream(caller, name)
        except NotFound:
            found = [address for address in self.configured(caller) if address.name == name]
            if not found:
                raise
            transport = HttpTransport(self._client, found[0])
        else:
            checker = None if upstream.may_be_private else AddressChecker()
            transport = HttpTransport(self._client, opened_address(self._sealer, upstream), checker)
        try:
            status = await transport.probe()
        except ModelUpstreamUnavailable as error:
            return ProbeResult(is_well=False, status=None, message=error.message)
        if status in _REFUSED:
            return ProbeResult(is_well=False, status=status, message=f"'{name}' answers, but refuses the key.")
        if status >= _FAILED:
            return ProbeResult(is_well=False, status=status, message=f"'{name}' answers with an error ({status}).")
        return ProbeResult(is_well=True, status=status, message=f"'{name}' answers.")
