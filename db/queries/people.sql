-- name: OrgInsert :exec
INSERT INTO orgs (id, slug, name) VALUES (@id, @slug, @name);

-- name: OrgByID :one
SELECT id, slug, name FROM orgs WHERE id = @id;

-- name: PersonInsert :exec
INSERT INTO people (id, org_id, email, name, roles, active, password_hash)
VALUES (@id, @org_id, @email, @name, @roles, @active, @password_hash);

-- name: PersonByID :one
SELECT p.id, p.org_id, p.email, p.name, p.roles, p.active, p.password_hash, o.slug, o.name AS org_name
FROM people p JOIN orgs o ON o.id = p.org_id
WHERE p.org_id = @org_id AND p.id = @id;

-- name: PersonList :many
SELECT id, org_id, email, name, roles, active, (password_hash = '')::boolean AS invited, last_signed_in_at
FROM people WHERE org_id = @org_id
ORDER BY lower(coalesce(nullif(name, ''), email)), id;

-- name: PersonSetRoles :execrows
UPDATE people SET roles = @roles WHERE org_id = @org_id AND id = @id;

-- name: PersonSetActive :execrows
UPDATE people SET active = @active WHERE org_id = @org_id AND id = @id;

-- name: PersonSetPassword :execrows
UPDATE people SET password_hash = @password_hash WHERE org_id = @org_id AND id = @id;

-- name: PersonAccept :execrows
UPDATE people SET password_hash = @password_hash, name = coalesce(nullif(@name::text, ''), name)
WHERE org_id = @org_id AND id = @id AND active;

-- name: PersonSignedIn :execrows
UPDATE people SET last_signed_in_at = clock_timestamp() WHERE org_id = @org_id AND id = @id AND active;

-- name: InvitationInsert :execrows
INSERT INTO invitations (link_hash, org_id, person_id, expires_at)
SELECT @link_hash, p.org_id, p.id, clock_timestamp() + @life::interval
FROM people p WHERE p.org_id = @org_id AND p.id = @person_id AND p.active;

-- name: InvitationUse :one
UPDATE invitations SET used_at = clock_timestamp()
WHERE org_id = @org_id AND link_hash = @link_hash AND used_at IS NULL AND expires_at > clock_timestamp()
RETURNING person_id;

-- name: InvitationDropOpen :exec
DELETE FROM invitations WHERE org_id = @org_id AND person_id = @person_id AND used_at IS NULL;
