-- name: FreezeInsert :one
-- FreezeInsert answers no row when the switch is on already. A trigger takes the switch first and dates the freeze after that.
INSERT INTO freezes (id, org_id, scope, key, by_id, by_name, reason) VALUES (@id, @org_id, @scope, @key, @by_id, @by_name, @reason)
ON CONFLICT (org_id, scope, key) WHERE lifted_at IS NULL DO NOTHING
RETURNING *;

-- name: FreezeStanding :one
SELECT * FROM freezes WHERE org_id = @org_id AND scope = @scope AND key = @key AND lifted_at IS NULL;

-- name: FreezeByID :one
SELECT * FROM freezes WHERE org_id = @org_id AND id = @id;

-- name: FreezeList :many
SELECT * FROM freezes WHERE org_id = @org_id AND lifted_at IS NULL ORDER BY since, id;

-- name: SwitchPress :exec
-- SwitchPress waits until everybody who moves an action of the organization has committed, and keeps the next ones waiting.
SELECT press_switch(@org_id::text);

-- name: FreezeLift :one
-- FreezeLift answers no row when somebody was quicker. A trigger dates it.
UPDATE freezes SET lifted_at = clock_timestamp(), lifted_by_id = @lifted_by_id, lifted_by_name = @lifted_by_name
WHERE org_id = @org_id AND id = @id AND lifted_at IS NULL
RETURNING *;

-- name: FrozenTimeGive :execrows
-- FrozenTimeGive gives every open action back what stood still; a trigger computes it and moves the deadline. Actions are locked in the
-- order of everybody who locks several.
INSERT INTO frozen_time (freeze_id, action_id, org_id, added)
SELECT f.id, a.id, a.org_id, '0' FROM freezes f
JOIN actions a ON a.org_id = f.org_id AND a.state IN ('staged', 'approved') AND freeze_covers(f.scope, f.key, a.profile, a.connection_key)
WHERE f.org_id = @org_id AND f.id = @id
ORDER BY a.run_id, a.id;

-- name: FreezeCovered :one
SELECT count(*) FILTER (WHERE a.state IN ('staged', 'approved') AND a.expires_at > action_clock(a.org_id, a.profile, a.connection_key))::integer AS open,
       count(*) FILTER (WHERE a.state = 'executing')::integer AS sending
FROM freezes f
LEFT JOIN actions a ON a.org_id = f.org_id AND a.state IN ('staged', 'approved', 'executing') AND freeze_covers(f.scope, f.key, a.profile, a.connection_key)
WHERE f.org_id = @org_id AND f.id = @id;

-- name: FreezeProfileThere :one
SELECT EXISTS (SELECT FROM profiles WHERE org_id = @org_id AND name = @name)::boolean;

-- name: FreezeConnectionThere :one
SELECT EXISTS (SELECT FROM connections WHERE org_id = @org_id AND key = @key AND state <> 'retired')::boolean;
