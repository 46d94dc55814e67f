-- name: AuditEntryInsert :exec
INSERT INTO audit_entries (org_id, actor_kind, actor_id, actor_name, event, object_kind, object_id, digest, fact_names, fact_values)
VALUES (@org_id, @actor_kind, @actor_id, @actor_name, @event, @object_kind, @object_id, @digest, @fact_names, @fact_values);

-- name: AuditEntryList :many
SELECT e.id, e.org_id, e.at, e.actor_kind, e.actor_id, e.actor_name, e.event, e.object_kind, e.object_id, e.digest, e.fact_names,
       e.fact_values, s.seq, s.mac
FROM audit_entries e LEFT JOIN audit_seals s ON s.entry_id = e.id
WHERE e.org_id = @org_id
  AND (sqlc.narg('before')::bigint IS NULL OR e.id < sqlc.narg('before'))
  AND (sqlc.narg('actor')::text IS NULL OR e.actor_id = sqlc.narg('actor') OR strpos(lower(e.actor_name), lower(sqlc.narg('actor'))) > 0)
  AND (sqlc.narg('event')::text IS NULL OR e.event = sqlc.narg('event'))
  AND (sqlc.narg('event_prefix')::text IS NULL OR starts_with(e.event, sqlc.narg('event_prefix')))
  AND (sqlc.narg('object')::text IS NULL OR e.object_id = sqlc.narg('object'))
  AND (sqlc.narg('from_time')::timestamptz IS NULL OR e.at >= sqlc.narg('from_time'))
  AND (sqlc.narg('until_time')::timestamptz IS NULL OR e.at < sqlc.narg('until_time'))
ORDER BY e.id DESC
LIMIT @count::integer;

-- name: AuditChainLock :one
-- False when another server is sealing this chain just now.
SELECT pg_try_advisory_xact_lock(@purpose::integer, hashtext(@org_id::text));

-- name: AuditPendingList :many
-- Entry by entry: the planner, which knows the pending ones as they were when somebody last counted, would rather read the whole trail.
SELECT e.id, e.org_id, e.at, e.actor_kind, e.actor_id, e.actor_name, e.event, e.object_kind, e.object_id, e.digest, e.fact_names, e.fact_values
FROM audit_pending p CROSS JOIN LATERAL (SELECT a.* FROM audit_entries a WHERE a.id = p.entry_id LIMIT 1) e
WHERE p.org_id = @org_id
ORDER BY p.entry_id
LIMIT @count::integer;

-- name: AuditSealLast :one
SELECT seq, mac FROM audit_seals WHERE org_id = @org_id ORDER BY seq DESC LIMIT 1;

-- name: AuditSealInsert :exec
INSERT INTO audit_seals (org_id, seq, entry_id, mac)
SELECT @org_id::text, unnest(@seqs::bigint[]), unnest(@entry_ids::bigint[]), unnest(@macs::bytea[]);

-- name: AuditPendingDrop :execrows
DELETE FROM audit_pending WHERE org_id = @org_id AND entry_id = ANY (@entry_ids::bigint[]);

-- name: AuditCheckpointInsert :exec
INSERT INTO audit_checkpoints (org_id, seq, mac) VALUES (@org_id, @seq, @mac);

-- name: AuditCheckpointLast :one
SELECT org_id, seq, mac, at FROM audit_checkpoints WHERE org_id = @org_id ORDER BY seq DESC LIMIT 1;

-- name: AuditLinkList :many
SELECT s.seq, s.entry_id, s.mac, e.id AS found, e.org_id, e.at, e.actor_kind, e.actor_id, e.actor_name, e.event, e.object_kind, e.object_id,
       e.digest, e.fact_names, e.fact_values
FROM audit_seals s LEFT JOIN audit_entries e ON e.id = s.entry_id
WHERE s.org_id = @org_id AND s.seq > @after
ORDER BY s.seq
LIMIT @count::integer;

-- name: AuditStray :one
-- The first entry that is neither sealed nor waiting: somebody put it there without the trigger.
SELECT e.id FROM audit_entries e
WHERE e.org_id = @org_id
  AND NOT EXISTS (SELECT FROM audit_seals s WHERE s.entry_id = e.id)
  AND NOT EXISTS (SELECT FROM audit_pending p WHERE p.org_id = e.org_id AND p.entry_id = e.id)
ORDER BY e.id LIMIT 1;

-- name: AuditLost :one
-- The first entry that waits for its seal and is not there any more.
SELECT p.entry_id FROM audit_pending p
WHERE p.org_id = @org_id AND NOT EXISTS (SELECT FROM audit_entries e WHERE e.id = p.entry_id)
ORDER BY p.entry_id LIMIT 1;

-- name: AuditPendingCount :one
SELECT count(*) FROM audit_pending WHERE org_id = @org_id;
