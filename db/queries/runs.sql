-- name: RunInsert :one
INSERT INTO runs (id, org_id, surface, profile, task, on_behalf_of, on_behalf_email, token_id, token_owner, token_hash, budget, expires_at, idempotency_key, request_digest)
VALUES (@id, @org_id, @surface, @profile, @task, @on_behalf_of, @on_behalf_email, @token_id, @token_owner, @token_hash, @budget,
        clock_timestamp() + @ttl::interval, @idempotency_key, @request_digest)
ON CONFLICT ON CONSTRAINT runs_idempotency_unique DO NOTHING
RETURNING id;

-- name: RunByKey :one
SELECT id, request_digest FROM runs WHERE token_id = @token_id AND idempotency_key = @idempotency_key;

-- name: RunLock :one
SELECT * FROM runs WHERE org_id = @org_id AND id = @id FOR NO KEY UPDATE;

-- name: RunEnd :one
UPDATE runs SET ended_at = clock_timestamp() WHERE id = @id AND ended_at IS NULL RETURNING *;

-- name: RunList :many
SELECT * FROM runs r
WHERE r.org_id = @org_id AND (NOT @live_only::boolean OR (r.ended_at IS NULL AND r.expires_at > clock_timestamp()))
  AND (@before::text = '' OR (r.started_at, r.id) < (SELECT b.started_at, b.id FROM runs b WHERE b.id = @before))
ORDER BY r.started_at DESC, r.id DESC
LIMIT @most;

-- name: RunOffer :many
-- RunOffer is what a profile lets a run use now. The connections stay as they are until the run is minted.
SELECT c.id, c.key, c.state, c.mode, u.mode AS profile_mode, u.tools AS profile_tools
FROM profile_uses u JOIN connections c ON c.org_id = u.org_id AND c.key = u.connection_key
WHERE u.org_id = @org_id AND u.profile = @profile
ORDER BY c.key
FOR SHARE OF c;

-- name: RunConnectionInsert :exec
INSERT INTO run_connections (org_id, run_id, connection_id, mode) VALUES (@org_id, @run_id, @connection_id, @mode);

-- name: RunGrantCopy :exec
-- RunGrantCopy mints: what is pinned at this moment, of the tools named.
INSERT INTO run_grants (org_id, run_id, connection_id, tool, digest, recipe, effect, destructive)
SELECT p.org_id, @run_id, p.connection_id, p.tool, p.digest, p.recipe, p.effect, p.destructive
FROM pinned_tools p WHERE p.connection_id = @connection_id AND p.tool = ANY (@tools::text[]);

-- name: RunPersonByEmail :one
SELECT id FROM people WHERE org_id = @org_id AND email = @email AND active;
