-- name: ProfileList :many
SELECT name, department, budget, version FROM profiles WHERE org_id = @org_id ORDER BY name;

-- name: ProfileByName :one
SELECT name, department, budget, version FROM profiles WHERE org_id = @org_id AND name = @name;

-- name: ProfileUseList :many
SELECT profile, connection_key, mode, tools, daily_actions, daily_amount, daily_currency, approvers, signatures FROM profile_uses
WHERE org_id = @org_id AND (sqlc.narg('profile')::text IS NULL OR profile = sqlc.narg('profile'))
ORDER BY profile, position;

-- name: ProfileInsert :execrows
INSERT INTO profiles (org_id, name, department, budget) VALUES (@org_id, @name, @department, @budget)
ON CONFLICT (org_id, name) DO NOTHING;

-- name: ProfileUpdate :execrows
UPDATE profiles SET department = @department, budget = @budget, version = nextval('profile_versions')
WHERE org_id = @org_id AND name = @name AND version = @version;

-- name: ProfileDelete :execrows
DELETE FROM profiles WHERE org_id = @org_id AND name = @name AND version = @version;

-- name: ProfileUseDrop :exec
DELETE FROM profile_uses WHERE org_id = @org_id AND profile = @profile;

-- name: ProfileUseInsert :exec
INSERT INTO profile_uses (org_id, profile, connection_key, position, mode, tools, daily_actions, daily_amount, daily_currency, approvers, signatures)
VALUES (@org_id, @profile, @connection_key, @position, @mode, @tools, @daily_actions, @daily_amount, @daily_currency, @approvers, @signatures);
