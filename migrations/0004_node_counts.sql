-- How many nodes a commit answered last, in each state: kept with every write to a file, so that counting reads no
-- nodes. PostgreSQL counts them: several daemons write there, also of versions that know nothing of this table.
CREATE TABLE node_counts (
    -- empty: no commit answered
    commit_id BYTEA NOT NULL,
    -- of the answer; -1: there is none
    state BIGINT NOT NULL,
    nodes BIGINT NOT NULL,
    PRIMARY KEY (commit_id, state)
);

-- counts the nodes that commits moved (causes 1 and 3) in some days without reading what changed
CREATE INDEX changes_of_commits ON changes (time, commit_after, node, cause) WHERE cause IN (1, 3);

-- has the nodes of a state in the order of their names
CREATE INDEX nodes_by_name ON nodes (name, answer);

-- finds the few answers in conflict or error without reading the others
CREATE INDEX answers_by_state ON answers (state);
