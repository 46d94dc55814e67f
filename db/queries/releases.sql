-- name: ReleaseFileInsert :exec
INSERT INTO release_files (digest, name, data) SELECT @digest, unnest(@names::text[]), unnest(@contents::bytea[]);

-- name: ReleaseInsert :exec
INSERT INTO releases (digest, file_count) VALUES (@digest, @file_count);

-- name: ReleaseExists :one
SELECT EXISTS (SELECT FROM releases WHERE digest = @digest);

-- name: ReleaseLock :exec
-- Publishing is rare; one at a time keeps "is it there" and "put it there" one step.
SELECT pg_advisory_xact_lock(@purpose::integer, 0);

-- name: ReleaseChoose :exec
INSERT INTO release_choices (digest) VALUES (@digest);

-- name: ReleaseCurrent :one
SELECT digest FROM release_choices ORDER BY id DESC LIMIT 1;

-- name: ReleaseFileList :many
SELECT name, data FROM release_files WHERE digest = @digest ORDER BY name;

-- name: ReleaseList :many
SELECT digest, published_at, file_count,
       coalesce(digest = (SELECT c.digest FROM release_choices c ORDER BY c.id DESC LIMIT 1), false)::boolean AS current
FROM releases ORDER BY published_at DESC, digest;
