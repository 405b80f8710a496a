-- Who of a database's servers does the chores that one of them has to do, and what came of those.

CREATE TABLE chore_leader (
    -- Grows with each new leader. It is the key, so that taking the lead waits for whoever has the row locked FOR KEY
    -- SHARE (the fence around a leader's work), and renewing the lease does not.
    term        bigint      PRIMARY KEY CHECK (term >= 1),
    is_only     boolean     NOT NULL DEFAULT true UNIQUE CHECK (is_only),  -- there is one leader at the most
    holder      uuid        NOT NULL,                                      -- the process, a new one at each start
    server      text        NOT NULL,                                      -- its name, for people
    taken_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at  timestamptz NOT NULL                                       -- from then on another may lead
);

-- The last run of each of the leader's chores: the next leader goes on from there.
CREATE TABLE chores (
    name        text        PRIMARY KEY,
    server      text        NOT NULL,                                      -- which ran it
    every       interval    NOT NULL,
    started_at  timestamptz NOT NULL,
    ended_at    timestamptz NOT NULL,
    error       text,                                                      -- NULL: it went well
    failures    integer     NOT NULL CHECK (failures >= 0),                -- in a row
    next_at     timestamptz NOT NULL,
    CHECK ((failures > 0) = (error IS NOT NULL))
);
