-- name: GitPackBegin :execrows
INSERT INTO git_packs (org_id, connection_id, digest, bytes, pieces, diff)
SELECT c.org_id, c.id, @digest, @bytes, @pieces, @diff FROM connections c WHERE c.org_id = @org_id AND c.key = @key
ON CONFLICT DO NOTHING;

-- name: GitPackPiece :exec
INSERT INTO git_pack_pieces (org_id, connection_id, digest, piece, data)
SELECT c.org_id, c.id, @digest, @piece, @data FROM connections c WHERE c.org_id = @org_id AND c.key = @key;

-- name: GitPack :one
SELECT p.bytes, p.pieces, p.diff FROM git_packs p JOIN connections c ON c.id = p.connection_id
WHERE c.org_id = @org_id AND c.key = @key AND p.digest = @digest;

-- name: GitPackRead :one
SELECT p.data FROM git_pack_pieces p JOIN connections c ON c.id = p.connection_id
WHERE c.org_id = @org_id AND c.key = @key AND p.digest = @digest AND p.piece = @piece;

-- name: GitPacksForget :execrows
DELETE FROM git_packs p WHERE p.org_id = @org_id AND p.kept_at < clock_timestamp() - @older::interval
AND NOT EXISTS (SELECT FROM actions a WHERE a.connection_id = p.connection_id AND a.state IN ('staged', 'approved', 'executing', 'uncertain')
    AND position(convert_to(p.digest, 'UTF8') IN a.arguments) > 0);

-- name: GitPin :exec
INSERT INTO git_repositories (org_id, connection_id, name, github_id)
SELECT c.org_id, c.id, @name, @github_id FROM connections c WHERE c.org_id = @org_id AND c.key = @key
ON CONFLICT DO NOTHING;

-- name: GitPinned :one
SELECT r.github_id FROM git_repositories r JOIN connections c ON c.id = r.connection_id
WHERE c.org_id = @org_id AND c.key = @key AND r.name = @name;

-- name: GitPins :many
SELECT r.name, r.github_id, coalesce(r.now_named, '')::text AS now_named FROM git_repositories r JOIN connections c ON c.id = r.connection_id
WHERE c.org_id = @org_id AND c.key = @key ORDER BY r.name;

-- name: GitNamed :execrows
UPDATE git_repositories r SET now_named = nullif(@now_named::text, '') FROM connections c
WHERE c.id = r.connection_id AND c.org_id = @org_id AND c.key = @key AND r.name = @name AND r.github_id = @github_id
  AND coalesce(r.now_named, '') <> @now_named::text;
