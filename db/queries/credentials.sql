-- name: CredentialCurrent :many
SELECT d.* FROM credentials d JOIN connections c ON c.id = d.connection_id
WHERE c.org_id = @org_id AND c.key = @key AND d.version = (SELECT max(n.version) FROM credentials n WHERE n.connection_id = c.id)
ORDER BY d.field;

-- name: CredentialNewest :one
SELECT coalesce(max(version), 0)::bigint FROM credentials WHERE connection_id = @connection_id;

-- name: CredentialInsert :exec
INSERT INTO credentials (org_id, connection_id, field, version, sealed, origin, fingerprint, last4)
VALUES (@org_id, @connection_id, @field, @version, @sealed, @origin, @fingerprint, @last4);

-- name: CredentialDropOlder :exec
DELETE FROM credentials WHERE connection_id = @connection_id AND version < @version;

-- name: CredentialReseal :execrows
UPDATE credentials d SET sealed = @sealed FROM connections c
WHERE c.id = d.connection_id AND c.org_id = @org_id AND c.key = @key AND d.field = @field AND d.version = @version AND d.sealed = @old;

-- name: CredentialShred :execrows
DELETE FROM credentials WHERE connection_id = @connection_id;
