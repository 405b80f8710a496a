-- Logging in by a provider (OpenID Connect): logins under way, and which account belongs to whom at a provider.

-- A browser was sent to the provider. It comes back with the state and with its cookie, once and soon.
CREATE TABLE openid_attempts (
    state_hash    bytea       PRIMARY KEY CHECK (octet_length(state_hash) = 32),
    browser_hash  bytea       NOT NULL CHECK (octet_length(browser_hash) = 32),   -- of the cookie it was sent off with
    nonce         text        NOT NULL,
    verifier      text        NOT NULL,                                           -- of PKCE
    redirect_uri  text        NOT NULL,
    return_to     text        NOT NULL,                                           -- the page that was asked for
    expires_at    timestamptz NOT NULL
);
CREATE INDEX openid_attempts_age ON openid_attempts (expires_at);

-- A provider's name for somebody never changes and is never somebody else's; e-mail addresses are.
CREATE TABLE openid_identities (
    issuer        text        NOT NULL CHECK (octet_length(issuer) <= 2000),
    subject       text        NOT NULL CHECK (octet_length(subject) BETWEEN 1 AND 255),
    principal_id  uuid        NOT NULL REFERENCES users,
    linked_at     timestamptz NOT NULL,
    PRIMARY KEY (issuer, subject),
    CONSTRAINT openid_identities_one_each UNIQUE (issuer, principal_id)
);
