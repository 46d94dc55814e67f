-- name: ServiceTokenInsert :one
INSERT INTO service_tokens (id, org_id, name, scopes, owner_id, hash, last_four, expires_at)
SELECT @id, p.org_id, @name, @scopes, p.id, @hash, @last_four, clock_timestamp() + @life::interval
FROM people p WHERE p.org_id = @org_id AND p.id = @owner_id AND p.active
RETURNING created_at, expires_at;

-- name: ServiceTokenList :many
SELECT t.id, t.org_id, t.name, t.scopes, t.owner_id, coalesce(nullif(p.name, ''), p.email)::text AS owner_name, t.last_four,
       t.created_at, t.expires_at, t.last_used_at, t.revoked_at
FROM service_tokens t JOIN people p ON p.id = t.owner_id
WHERE t.org_id = @org_id
ORDER BY t.created_at DESC, t.id;

-- name: ServiceTokenRevoke :execrows
UPDATE service_tokens SET revoked_at = clock_timestamp() WHERE org_id = @org_id AND id = @id AND revoked_at IS NULL;

-- name: ServiceTokenExists :one
SELECT EXISTS (SELECT FROM service_tokens WHERE org_id = @org_id AND id = @id);
