"""Every error contextbase raises on purpose.

    ContextbaseError
    ├── InvalidInput            a value from outside breaks a rule; the caller can mend it
    │   ├── InvalidPath         a path breaks a TreePath rule
    │   └── InvalidSettings     a setting or settings file is wrong
    ├── Unauthenticated         no token, or one that is unknown, expired or revoked
    ├── TooManyAttempts         too many logins failed; it says when to try again
    ├── Forbidden               the principal may not do this
    ├── NotFound                no such thing, or none the principal may know of
    │   └── ContentPurged       it was removed from all history, on purpose
    ├── Conflict                the state of things forbids it: exists already, moved on, in use
    │   ├── CursorOutdated      a cursor from before the project was restored: start over
    │   ├── HeldElsewhere       another server has it: ask that one
    │   ├── LeaseHeld           somebody else has a lease there, and kept it for as long as we waited
    │   ├── LeaseLost           the lease expired or was given to somebody else: what it guarded may have changed
    │   └── PreconditionFailed  the file is not what If-Match or If-None-Match asks for
    ├── TooLarge                over a stated size limit
    ├── Unavailable             a part we depend on does not answer now; trying again may help
    │   ├── DatabaseUnavailable
    │   ├── BlobStoreUnavailable
    │   ├── MachineLost         the machine that holds it does not run, or does not answer
    │   ├── NoMachine           no machine takes new workspaces
    │   ├── ModelUpstreamUnavailable  a model service does not answer, or broke off
    │   └── TooBusy             more wait than we keep; a moment later it will do
    ├── Misconfigured           a part we depend on answers, but refuses us: the operator must act
    │   ├── BlobStoreDenied     wrong credentials, or no permission
    │   ├── BucketMissing
    │   ├── SetupFailed         a project's setup script does not work
    │   ├── SchemaTooNew        the database was migrated by a newer contextbase
    │   └── MachineProblem      port taken, disk full, folder not writable, wrong major version
    └── Damaged                 stored data is not what was stored: fsck's business
        ├── BlobCorrupted       the bytes do not hash to their name
        ├── BlobTruncated       fewer bytes than promised
        └── BlobMissing         a blob that is named is not there

`code` is stable and machine-readable; the message is a sentence for people: what happened, to which
thing, what to do next. Only the interface layer turns a code into an HTTP status, MCP error or exit code.
"""

__all__ = [
    "BlobCorrupted",
    "BlobMissing",
    "BlobStoreDenied",
    "BlobStoreUnavailable",
    "BlobTruncated",
    "BucketMissing",
    "Conflict",
    "ContentPurged",
    "ContextbaseError",
    "CursorOutdated",
    "Damaged",
    "DatabaseUnavailable",
    "Forbidden",
    "HeldElsewhere",
    "InvalidInput",
    "InvalidPath",
    "InvalidSettings",
    "LeaseHeld",
    "LeaseLost",
    "MachineLost",
    "MachineProblem",
    "Misconfigured",
    "ModelUpstreamUnavailable",
    "NoMachine",
    "NotFound",
    "PreconditionFailed",
    "SchemaTooNew",
    "SetupFailed",
    "TooBusy",
    "TooLarge",
    "TooManyAttempts",
    "Unauthenticated",
    "Unavailable",
    "error_of_code",
]


class ContextbaseError(Exception):
    """Base of all. `details` may go to the user; keep secrets out of it and out of the message."""

    code = "internal_error"

    def __init__(self, message: str, /, **details: object) -> None:
        super().__init__(message)
        self.message = message
        self.details = details
        # Of both, what may be told even when all else about the error is the operator's business.
        self.aftermath = ""
        self.aftermath_details: dict[str, object] = {}

    def followed_by(self, aftermath: str, /, **details: object) -> "ContextbaseError":
        """A copy that also says what the error left behind for the user, such as where their work is."""
        told = error_of_code(self.code, f"{self.message} {aftermath}".rstrip(), **{**self.details, **details})
        told.aftermath = f"{self.aftermath} {aftermath}".strip()
        told.aftermath_details = {**self.aftermath_details, **details}
        return told


class InvalidInput(ContextbaseError):
    code = "invalid_input"


class InvalidPath(InvalidInput):
    code = "invalid_path"


class InvalidSettings(InvalidInput):
    code = "invalid_settings"


class Unauthenticated(ContextbaseError):
    code = "unauthenticated"


class TooManyAttempts(ContextbaseError):
    code = "too_many_attempts"


class Forbidden(ContextbaseError):
    code = "forbidden"


class NotFound(ContextbaseError):
    code = "not_found"


class ContentPurged(NotFound):
    code = "content_purged"


class Conflict(ContextbaseError):
    code = "conflict"


class CursorOutdated(Conflict):
    code = "cursor_outdated"


class HeldElsewhere(Conflict):
    code = "held_elsewhere"


class LeaseHeld(Conflict):
    code = "lease_held"


class LeaseLost(Conflict):
    code = "lease_lost"


class PreconditionFailed(Conflict):
    code = "precondition_failed"


class TooLarge(ContextbaseError):
    code = "too_large"


class Unavailable(ContextbaseError):
    code = "unavailable"


class DatabaseUnavailable(Unavailable):
    code = "database_unavailable"


class BlobStoreUnavailable(Unavailable):
    code = "blob_store_unavailable"


class MachineLost(Unavailable):
    code = "machine_lost"


class NoMachine(Unavailable):
    code = "no_machine"


class ModelUpstreamUnavailable(Unavailable):
    code = "model_upstream_unavailable"


class TooBusy(Unavailable):
    code = "too_busy"


class Misconfigured(ContextbaseError):
    code = "misconfigured"


class BlobStoreDenied(Misconfigured):
    code = "blob_store_denied"


class BucketMissing(Misconfigured):
    code = "bucket_missing"


class SchemaTooNew(Misconfigured):
    code = "schema_too_new"


class SetupFailed(Misconfigured):
    code = "setup_failed"


class MachineProblem(Misconfigured):
    code = "machine_problem"


class Damaged(ContextbaseError):
    code = "damaged"


class BlobCorrupted(Damaged):
    code = "blob_corrupted"


class BlobTruncated(Damaged):
    code = "blob_truncated"


class BlobMissing(Damaged):
    code = "blob_missing"


def error_of_code(code: str, message: str, /, **details: object) -> ContextbaseError:
    """The error a code stands for, as read from an answer; an unknown code gives the base class, code kept."""
    candidates: list[type[ContextbaseError]] = [ContextbaseError]
    for candidate in candidates:
        if candidate.code == code:
            return candidate(message, **details)
        candidates.extend(candidate.__subclasses__())
    error = ContextbaseError(message, **details)
    error.code = code  # a newer server's: still worth showing
    return error
