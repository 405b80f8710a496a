"""Files that look as if they held credentials, by their names and by what is in them.

A guard against accidents, not a wall: it knows files and tokens of well-known shapes, in the first `MOST_SCANNED` bytes
of text. Agents choose what is scanned, so every repetition in an expression is bounded.
"""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

__all__ = ["MOST_SCANNED", "Credential", "credential_in", "reason_to_hold_back"]

MOST_SCANNED: Final = 1 << 20
_BINARY_WITHIN: Final = 8000  # as git: a file with a NUL in its first bytes is not text
_NEAR: Final = 400
_FEWEST_CHARACTERS: Final = 8  # different ones, in what is random; 'xxxxxxxx' stands for a token and is none
_KINDS_OF_CHARACTERS: Final = tuple(map(re.compile, (rb"[a-z]", rb"[A-Z]", rb"[0-9]")))
_PLACEHOLDERS: Final = re.compile(rb"example|xxxx|your|placeholder|redacted|dummy", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True, slots=True)
class Credential:
    """What was found, never the secret itself."""

    what: str  # such as "a GitHub token"
    line: int | None  # None: the file as a whole, by its name

    def __str__(self) -> str:
        return (
            f"looks like {self.what}" if self.line is None else f"has what looks like {self.what} in line {self.line}"
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Name:
    expression: str  # of the end of the path, in lower case
    needs: re.Pattern[bytes] | None  # what must be in it, too
    what: str


@dataclass(frozen=True, kw_only=True, slots=True)
class _Shape:
    markers: tuple[bytes, ...]  # one of them is in every match: quicker to look for than the expression
    expression: re.Pattern[bytes]  # its group is the random part
    what: str
    is_one_run: bool = True  # of letters, digits, '_' and '-'
    near: re.Pattern[bytes] | None = None  # what must be close by, too
    is_mixed: bool = False  # small and capital letters and digits: names in a program rarely have all of them


def _name(expression: str, what: str, needs: bytes | None = None) -> _Name:
    return _Name(expression=expression, needs=None if needs is None else re.compile(needs, re.IGNORECASE), what=what)


_NAMES: Final = (
    _name(
        r"\.env(?!(?:\.[^/.]+)*\.(?:example|sample|template|dist))(?:\.[^/]*)?",
        "a file of environment variables",
        rb"=[ \t]{0,20}[^\s#]",
    ),
    _name(r"id_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?", "a private SSH key"),
    _name(r"[^/]*\.(?:p12|pfx|jks|ppk|kdbx)", "a key store"),
    _name(r"[^/]*\.(?:key|der|pk8)", "a private key", rb"\A\x30[\x81-\x83]"),
    _name(r"[._]netrc", "a file of passwords", rb"password\s"),
    _name(r"\.pgpass", "a file of passwords", rb"[^#\s:]:"),
    _name(r"\.git-credentials", "a file of passwords", rb"://[^\s/]{0,200}@"),
    _name(r"\.npmrc", "a package registry's login", rb"_(?:authToken|auth|password)\s{0,20}=\s{0,20}[^\s$]"),
    _name(r"\.yarnrc\.yml", "a package registry's login", rb"npmAuthToken:\s{0,20}[\"']?[^\s\"'$]"),
    _name(r"\.pypirc", "a package registry's login", rb"password\s{0,20}[=:]\s{0,20}\S"),
    _name(r"\.docker/config\.json|\.dockercfg", "a container registry's login", rb"\"auth\"\s{0,20}:\s{0,20}\"[^\"]"),
    _name(r"\.aws/credentials", "credentials of AWS", rb"aws_secret_access_key\s{0,20}=\s{0,20}\S"),
    _name(
        r"(?:[^/]*credentials|client_secret[^/]*|[^/]*service[-_]account[^/]*)\.json",
        "credentials of a cloud",
        rb"\"(?:private_key|client_?secret|refresh_token|secret_?access_?key)\"\s{0,20}:\s{0,20}\"[^\"]",
    ),
    _name(
        r"\.kube/config|[^/]*kubeconfig",
        "credentials of a Kubernetes cluster",
        rb"(?:client-key-data|token|password):\s{0,20}\S",
    ),
)
_ANY_NAME: Final = re.compile("(?:[^/]*/)?(?:" + "|".join(f"({name.expression})" for name in _NAMES) + ")", re.DOTALL)
_BEFORE: Final = rb"(?<![A-Za-z0-9_-])"
_AFTER: Final = rb"(?![A-Za-z0-9_-])"


def _shape(marker: bytes | tuple[bytes, ...], expression: bytes, what: str, *, is_mixed: bool = False) -> _Shape:
    markers = marker if isinstance(marker, tuple) else (marker,)
    return _Shape(markers=markers, expression=re.compile(_BEFORE + expression + _AFTER), what=what, is_mixed=is_mixed)


_SHAPES: Final = (
    _Shape(
        markers=(b"PRIVATE KEY",),
        expression=re.compile(
            rb"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----[^-]{0,400}?([A-Za-z0-9+/=]{40})"
        ),
        what="a private key",
        is_one_run=False,
    ),
    _Shape(
        markers=(b"hooks.slack.com/services/",),
        expression=re.compile(rb"hooks\.slack\.com/services/T[A-Z0-9]{6,20}/B[A-Z0-9]{6,20}/([A-Za-z0-9]{20,60})"),
        what="a Slack web hook",
        is_one_run=False,
    ),
    _Shape(
        markers=(b"AKIA", b"ASIA"),
        expression=re.compile(rb"(?<![A-Z0-9])(?:AKIA|ASIA)([A-Z0-9]{16})(?![A-Z0-9])"),
        near=re.compile(rb"(?<![A-Za-z0-9/+=])(?![0-9a-f]{40})[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=])"),
        what="an AWS access key with its secret",
    ),
    _shape((b"ghp_", b"gho_", b"ghu_", b"ghs_", b"ghr_"), rb"gh[pousr]_([A-Za-z0-9]{36,255})", "a GitHub token"),
    _shape(b"github_pat_", rb"github_pat_([A-Za-z0-9_]{60,255})", "a GitHub token"),
    _shape(b"glpat-", rb"glpat-([A-Za-z0-9_-]{20,100})", "a GitLab token"),
    _shape(b"xox", rb"xox[abeprs]-(?=[A-Za-z-]{0,60}[0-9])([A-Za-z0-9-]{20,250})", "a Slack token"),
    _shape(b"sk-ant-", rb"sk-ant-[a-z]{3,10}[0-9]{2}-([A-Za-z0-9_-]{40,250})", "an Anthropic key"),
    _shape(
        (b"sk-proj-", b"sk-svcacct-", b"sk-admin-"),
        rb"sk-(?:proj|svcacct|admin)-([A-Za-z0-9_-]{40,250})",
        "an OpenAI key",
    ),
    _shape(b"sk-", rb"sk-([A-Za-z0-9]{40,64})", "an OpenAI key", is_mixed=True),
    _shape(b"AIza", rb"AIza([A-Za-z0-9_-]{35})", "a Google API key"),
    _shape((b"sk_live_", b"rk_live_"), rb"[sr]k_live_([A-Za-z0-9]{16,250})", "a Stripe key"),
    _shape(b"npm_", rb"npm_([A-Za-z0-9]{36})", "an npm token"),
    _shape(b"pypi-AgEI", rb"pypi-AgEI([A-Za-z0-9_-]{50,1000})", "a PyPI token"),
    _shape(b"cb_", rb"cb_([A-Za-z0-9_-]{43})", "a contextbase token", is_mixed=True),
)


_OF_ONE_RUN: Final = tuple(shape for shape in _SHAPES if shape.is_one_run)
_OF_SEVERAL_RUNS: Final = tuple(shape for shape in _SHAPES if not shape.is_one_run)
_SHORTEST: Final = 20  # of all shapes, with their markers
_RUN: Final = b"x" * _SHORTEST
_RUN_CHARACTERS: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
_TO_RUNS: Final = bytes(ord("x") if byte in _RUN_CHARACTERS else ord(" ") for byte in range(256))


def credential_in(path: str | None, start: bytes, *, known: bytes = b"") -> Credential | None:
    """The first credential in a file that begins with `start`. `path`: of a new file, whose name counts, too. What is
    in `known` as well, the beginning of an older version, was there before and does not count."""
    name = None if path is None or not start else _name_of(path)
    if name is not None and (name.needs is None or name.needs.search(start)):
        return Credential(what=name.what, line=None)
    if b"\0" in start[:_BINARY_WITHIN]:
        return None
    for shape in _possible(start):
        for found in _matches(shape, start):
            if not known or found[0] not in known:
                return Credential(what=shape.what, line=start.count(b"\n", 0, found.start()) + 1)
    return None


def _name_of(path: str) -> _Name | None:
    tail = "/".join(path.lower().rsplit("/", 2)[-2:])
    found = _ANY_NAME.fullmatch(tail) or _ANY_NAME.fullmatch(tail.rpartition("/")[2])
    return None if found is None or found.lastindex is None else _NAMES[found.lastindex - 1]


def _possible(start: bytes) -> list[_Shape]:
    """Nearly always none, so that this is what a scan costs: it looks for markers only where they can be."""
    possible = [shape for shape in _OF_SEVERAL_RUNS if shape.markers[0] in start]
    if runs := _long_runs(start):
        possible += [shape for shape in _OF_ONE_RUN if any(marker in runs for marker in shape.markers)]
    return possible


def _long_runs(start: bytes) -> bytes:
    """What is long enough to be a token: mostly very little."""
    translated = start.translate(_TO_RUNS)
    runs = []
    at = translated.find(_RUN)
    while at >= 0:
        end = translated.find(b" ", at)
        end = len(start) if end < 0 else end
        runs.append(start[at:end])
        at = translated.find(_RUN, end)
    return b"\n".join(runs)


def _matches(shape: _Shape, start: bytes) -> Iterator[re.Match[bytes]]:
    for found in shape.expression.finditer(start):
        random = found[1]
        if len(set(random)) < _FEWEST_CHARACTERS or _PLACEHOLDERS.search(random):
            continue
        if shape.is_mixed and not all(kind.search(random) for kind in _KINDS_OF_CHARACTERS):
            continue
        around = start[max(0, found.start() - _NEAR) : found.end() + _NEAR]
        if shape.near is None or any(len(set(near[0])) >= _FEWEST_CHARACTERS for near in shape.near.finditer(around)):
            yield found


def reason_to_hold_back(path: str, credential: Credential) -> str:
    """A sentence for whoever wants to commit the file."""
    return (
        f"{str(path)!r} {credential}, so it was held back. Take the secret out, or list the file in "
        f".contextbaseignore. If everyone who can read the project may know it, use --allow {shlex.quote(path)}."
    )
