-- name: PersonDeciding :one
-- PersonDeciding reads somebody who decides, and keeps a demotion waiting until the decision is made: one of the two comes first.
SELECT roles, active FROM people WHERE org_id = @org_id AND id = @id FOR SHARE;

-- name: SignatureInsert :one
INSERT INTO action_approvals (org_id, action_id, person_id, person_name, args_digest, version, reason)
SELECT a.org_id, a.id, @person_id, @person_name, @args_digest, @version, @reason FROM actions a
WHERE a.id = @action_id AND a.state = 'staged' AND a.version = @version AND a.args_digest = @args_digest AND a.expires_at > action_clock(a.org_id, a.profile, a.connection_key)
RETURNING at;

-- name: SignatureList :many
SELECT action_id, person_id, person_name, at, reason FROM action_approvals WHERE org_id = @org_id AND action_id = ANY (@ids::text[]) ORDER BY at, person_id;

-- name: GroupMemberList :many
SELECT group_name, person_id FROM approver_group_members WHERE org_id = @org_id AND group_name = ANY (@names::text[]) ORDER BY person_id;

-- name: GroupList :many
SELECT name, version FROM approver_groups WHERE org_id = @org_id ORDER BY name;

-- name: GroupInsert :execrows
INSERT INTO approver_groups (org_id, name) VALUES (@org_id, @name) ON CONFLICT (org_id, name) DO NOTHING;

-- name: GroupUpdate :execrows
UPDATE approver_groups SET version = nextval('profile_versions') WHERE org_id = @org_id AND name = @name AND version = @version;

-- name: GroupDelete :execrows
DELETE FROM approver_groups WHERE org_id = @org_id AND name = @name AND version = @version;

-- name: GroupKnown :one
SELECT true FROM approver_groups WHERE org_id = @org_id AND name = @name;

-- name: GroupMemberDrop :exec
DELETE FROM approver_group_members WHERE org_id = @org_id AND group_name = @name;

-- name: GroupMemberInsert :execrows
-- GroupMemberInsert takes only people who may decide now.
INSERT INTO approver_group_members (org_id, group_name, person_id)
SELECT p.org_id, @name, p.id FROM people p WHERE p.org_id = @org_id AND p.id = ANY (@ids::text[]) AND p.active AND p.roles && ARRAY ['owner', 'approver'];

-- name: ProfileQuorumList :many
SELECT profile, connection_key, tool, signatures FROM profile_quorums WHERE org_id = @org_id AND (sqlc.narg('profile')::text IS NULL OR profile = sqlc.narg('profile'));

-- name: ProfileQuorumInsert :exec
INSERT INTO profile_quorums (org_id, profile, connection_key, tool, signatures) VALUES (@org_id, @profile, @connection_key, @tool, @signatures);

-- name: ProfileResourceList :many
SELECT profile, connection_key, setting, allowed FROM profile_resources WHERE org_id = @org_id AND (sqlc.narg('profile')::text IS NULL OR profile = sqlc.narg('profile'));

-- name: ProfileResourceInsert :exec
INSERT INTO profile_resources (org_id, profile, connection_key, setting, allowed) VALUES (@org_id, @profile, @connection_key, @setting, @allowed);

-- name: ActionDay :one
-- ActionDay is what is taken of the limits on the day the action counts on, and the limits as they are now.
SELECT ((a.requested_at AT TIME ZONE 'UTC')::date::timestamp AT TIME ZONE 'UTC')::timestamptz AS day,
       coalesce((SELECT b.used FROM budget_days b WHERE b.org_id = a.org_id AND b.profile = a.profile AND b.connection_id = a.connection_id
                    AND b.day = (a.requested_at AT TIME ZONE 'UTC')::date AND b.measure = 'actions'), 0)::bigint AS actions,
       coalesce((SELECT b.used FROM budget_days b WHERE b.org_id = a.org_id AND b.profile = a.profile AND b.connection_id = a.connection_id
                    AND b.day = (a.requested_at AT TIME ZONE 'UTC')::date AND b.measure = a.currency), 0)::bigint AS spent,
       coalesce(u.daily_actions, 0)::integer AS most, coalesce(u.daily_amount, 0)::bigint AS most_amount, coalesce(u.daily_currency, '')::text AS currency
FROM actions a
LEFT JOIN profile_uses u ON u.org_id = a.org_id AND u.profile = a.profile AND u.connection_key = a.connection_key
WHERE a.org_id = @org_id AND a.id = @id;

-- name: ProfileDayList :many
-- ProfileDayList is what is taken today of a profile's limits, for each connection where it has one.
SELECT u.connection_key, (t.day::timestamp AT TIME ZONE 'UTC')::timestamptz AS day, u.daily_actions, u.daily_amount, u.daily_currency,
       coalesce(da.used, 0)::bigint AS actions, coalesce(dm.used, 0)::bigint AS spent
FROM (SELECT (clock_timestamp() AT TIME ZONE 'UTC')::date AS day) t
JOIN profile_uses u ON u.org_id = @org_id AND u.profile = @profile AND (u.daily_actions > 0 OR u.daily_amount > 0)
JOIN connections c ON c.org_id = u.org_id AND c.key = u.connection_key
LEFT JOIN budget_days da ON da.org_id = u.org_id AND da.profile = u.profile AND da.connection_id = c.id AND da.day = t.day AND da.measure = 'actions'
LEFT JOIN budget_days dm ON dm.org_id = u.org_id AND dm.profile = u.profile AND dm.connection_id = c.id AND dm.day = t.day AND dm.measure = u.daily_currency;

-- name: ActionEndCount :many
-- ActionEndCount counts what ended since a moment; what is past its expiry ended then, whether or not the sweeper has been by.
SELECT e.state::text AS state, (e.decided_at IS NULL)::boolean AS undecided, count(*)::integer AS n FROM (
    SELECT a.state, a.decided_at FROM actions a
     WHERE a.org_id = @org_id AND a.finished_at >= @since
    UNION ALL
    SELECT 'expired', a.decided_at FROM actions a
     WHERE a.org_id = @org_id AND a.state IN ('staged', 'approved') AND a.expires_at >= @since AND a.expires_at <= action_clock(a.org_id, a.profile, a.connection_key)
) e GROUP BY 1, 2;
