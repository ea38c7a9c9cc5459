-- When the node last said its facts and its trusted data: the later one is checked_in. If neither is, a version that
-- knows nothing of them wrote the row, and both came then.
ALTER TABLE nodes ADD COLUMN facts_at BIGINT;
ALTER TABLE nodes ADD COLUMN trusted_at BIGINT;

-- when it was last answered; of rows of such versions as far as checked_in and last_seen say
ALTER TABLE nodes ADD COLUMN answered_at BIGINT;

-- Nodes that a client deleted, and when: another daemon may still have a check-in from before. Only PostgreSQL has some.
CREATE TABLE forgotten_nodes (
    name TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    time BIGINT NOT NULL,
    -- which daemon deleted it
    writer BIGINT NOT NULL
);
CREATE INDEX forgotten_nodes_by_time ON forgotten_nodes (time);
