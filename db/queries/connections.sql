-- name: ConnectionList :many
SELECT * FROM connections WHERE org_id = @org_id ORDER BY name, key;

-- name: ConnectionByKey :one
SELECT * FROM connections WHERE org_id = @org_id AND key = @key;

-- name: ConnectionLock :one
SELECT * FROM connections WHERE org_id = @org_id AND key = @key FOR NO KEY UPDATE;

-- name: ConnectionHold :one
-- ConnectionHold keeps a connection as it is until the transaction ends.
SELECT * FROM connections WHERE org_id = @org_id AND key = @key FOR SHARE;

-- name: ConnectionInsert :one
INSERT INTO connections (id, org_id, key, integration, kind, runtime, release_digest, name, state, mode, destination, contract, header, created_by)
VALUES (@id, @org_id, @key, @integration, @kind, @runtime, @release_digest, @name, @state, @mode, @destination, @contract, @header, @created_by)
RETURNING *;

-- name: ConnectionSetFinding :one
UPDATE connections SET tested_at = clock_timestamp(), healthy = @healthy, found = @found, trouble = @trouble, remedy = @remedy,
       health_since = CASE WHEN health_since IS NULL OR healthy <> @healthy THEN clock_timestamp() ELSE health_since END,
       version = version + @news::integer
WHERE id = @id AND version = @version
RETURNING *;

-- name: ConnectionSetStanding :one
UPDATE connections SET mode = @mode, snapshot_version = snapshot_version + 1, version = version + 1
WHERE id = @id AND version = @version
RETURNING *;

-- name: ConnectionSetState :one
UPDATE connections SET state = @state, version = version + 1, retired_at = CASE WHEN @state::text = 'retired' THEN clock_timestamp() END
WHERE id = @id AND version = @version
RETURNING *;

-- name: ConnectionSetName :one
UPDATE connections SET name = @name, version = version + 1
WHERE id = @id AND version = @version
RETURNING *;

-- name: ConnectionSetDurableReads :one
UPDATE connections SET durable_reads = @durable_reads, version = version + 1
WHERE id = @id AND version = @version
RETURNING *;

-- name: ConnectionSettingInsert :exec
INSERT INTO connection_settings (org_id, connection_id, name, value) VALUES (@org_id, @connection_id, @name, @value);

-- name: ConnectionSettingList :many
SELECT * FROM connection_settings WHERE connection_id = ANY (@connections::text[]) ORDER BY connection_id, name;

-- name: ObservedToolList :many
SELECT o.* FROM observed_tools o JOIN connections c ON c.id = o.connection_id WHERE c.org_id = @org_id AND c.key = @key ORDER BY o.tool COLLATE "C";

-- name: ListingList :many
-- ListingList is ObservedToolList of all connections without the texts, which are the bulk of it.
SELECT c.key, o.tool, o.digest, o.recipe, o.read_only, o.destructive, o.problem, o.first_seen FROM observed_tools o JOIN connections c ON c.id = o.connection_id
WHERE c.org_id = @org_id ORDER BY c.key, o.tool COLLATE "C";

-- name: ObservedToolSave :exec
INSERT INTO observed_tools (org_id, connection_id, tool, title, description, digest, recipe, raw, read_only, destructive, problem)
VALUES (@org_id, @connection_id, @tool, @title, @description, @digest, @recipe, @raw, @read_only, @destructive, @problem)
ON CONFLICT (connection_id, tool) DO UPDATE SET title = excluded.title, description = excluded.description, digest = excluded.digest,
    recipe = excluded.recipe, raw = excluded.raw, read_only = excluded.read_only, destructive = excluded.destructive, problem = excluded.problem,
    seen_at = clock_timestamp();

-- name: ObservedToolDropOthers :exec
DELETE FROM observed_tools WHERE connection_id = @connection_id AND tool <> ALL (@kept::text[]);

-- name: PinnedToolList :many
SELECT connection_id, tool, digest, recipe, effect, destructive FROM pinned_tools WHERE connection_id = ANY (@connections::text[]);

-- name: PinnedToolRawList :many
SELECT p.tool, p.raw FROM pinned_tools p JOIN connections c ON c.id = p.connection_id WHERE c.org_id = @org_id AND c.key = @key;

-- name: PinnedToolDropAll :exec
DELETE FROM pinned_tools WHERE connection_id = @connection_id;

-- name: PinnedToolInsert :exec
INSERT INTO pinned_tools (org_id, connection_id, tool, digest, recipe, effect, destructive, raw)
VALUES (@org_id, @connection_id, @tool, @digest, @recipe, @effect, @destructive, @raw);

-- name: ConfirmedReadList :many
SELECT connection_id, tool, digest FROM confirmed_reads WHERE connection_id = ANY (@connections::text[]) ORDER BY connection_id, tool COLLATE "C", digest;

-- name: ConfirmedReadDrop :exec
DELETE FROM confirmed_reads WHERE connection_id = @connection_id AND tool = @tool AND digest = @digest;

-- name: ConfirmedReadInsert :exec
INSERT INTO confirmed_reads (org_id, connection_id, tool, digest, confirmed_by) VALUES (@org_id, @connection_id, @tool, @digest, @confirmed_by);
