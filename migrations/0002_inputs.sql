-- The hash of the facts that decided the last answer, whose mentioned part is `inputs`: another one than
-- facts_hash if facts were submitted since then. Of rows from before it is not known.
ALTER TABLE nodes ADD COLUMN inputs_hash BIGINT;

-- finds the path sets that nothing refers to
CREATE INDEX nodes_by_path_set ON nodes (path_set);
