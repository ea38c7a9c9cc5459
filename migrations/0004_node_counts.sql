-- How many nodes a commit answered last, in each state: kept with every write, so that counting reads no nodes.
CREATE TABLE node_counts (
    -- empty: no commit answered
    commit_id BYTEA NOT NULL,
    -- of the answer; -1: there is none
    state BIGINT NOT NULL,
    nodes BIGINT NOT NULL,
    PRIMARY KEY (commit_id, state)
);
INSERT INTO node_counts (commit_id, state, nodes)
    SELECT COALESCE(nodes.commit_id, CAST('' AS BYTEA)), COALESCE(answers.state, -1), COUNT(*)
    FROM nodes LEFT JOIN answers ON answers.id = nodes.answer
    GROUP BY COALESCE(nodes.commit_id, CAST('' AS BYTEA)), COALESCE(answers.state, -1);

-- counts the nodes that a commit moved (causes 1 and 3) without reading what changed
CREATE INDEX changes_by_commit ON changes (commit_after, node, time, cause) WHERE cause IN (1, 3);
