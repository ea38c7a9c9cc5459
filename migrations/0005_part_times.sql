-- When the node last said its facts and its trusted data: the later one is checked_in. If neither is, a version that
-- knows nothing of them wrote the row, and both came then.
ALTER TABLE nodes ADD COLUMN facts_at BIGINT;
ALTER TABLE nodes ADD COLUMN trusted_at BIGINT;
