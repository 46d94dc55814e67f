-- name: ContextLatest :one
SELECT revision, text, how, actor_kind, actor_id, actor_name, saved_at FROM context_revisions
WHERE org_id = @org_id ORDER BY revision DESC LIMIT 1;

-- name: ContextRevision :one
SELECT revision, text, how, actor_kind, actor_id, actor_name, saved_at FROM context_revisions
WHERE org_id = @org_id AND revision = @revision;

-- name: ContextRevisionList :many
SELECT revision, octet_length(text)::int AS bytes, how, actor_kind, actor_id, actor_name, saved_at FROM context_revisions
WHERE org_id = @org_id AND (@before::bigint = 0 OR revision < @before) ORDER BY revision DESC LIMIT @most;

-- name: ContextLock :exec
-- The trigger that keeps revisions in a row sees what another has committed since this statement began; whoever comes second waits here
-- and then reads what is newest.
SELECT pg_advisory_xact_lock(@purpose::integer, hashtext(@org_id::text));

-- name: ContextInsert :one
INSERT INTO context_revisions (org_id, revision, text, how, actor_kind, actor_id, actor_name)
SELECT sqlc.arg('org_id'), sqlc.arg('next')::bigint, sqlc.arg('text'), sqlc.arg('how'), sqlc.arg('actor_kind'), sqlc.arg('actor_id'), sqlc.arg('actor_name')
WHERE sqlc.arg('next') = 1 + coalesce((SELECT max(c.revision) FROM context_revisions c WHERE c.org_id = sqlc.arg('org_id')), 0)
ON CONFLICT (org_id, revision) DO NOTHING
RETURNING saved_at;
