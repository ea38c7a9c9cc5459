-- The daemons that share this store, each with the commit that answers there.
CREATE TABLE replicas (
    -- made at each start
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    version TEXT NOT NULL,
    commit_id BYTEA,
    started_at BIGINT NOT NULL,
    seen_at BIGINT NOT NULL
);
