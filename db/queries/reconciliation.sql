-- name: LookUpInsert :one
INSERT INTO look_ups (id, org_id, action_id, by_id, by_name, tool, arguments, seen, not_kept, is_error)
VALUES (@id, @org_id, @action_id, @by_id, @by_name, @tool, @arguments, @seen, @not_kept, @is_error)
RETURNING *;

-- name: LookUpCount :one
SELECT count(*)::integer FROM look_ups WHERE org_id = @org_id AND action_id = @action_id;

-- name: LookUpList :many
SELECT * FROM look_ups WHERE org_id = @org_id AND action_id = @action_id ORDER BY at DESC, id DESC;

-- name: ProbeTake :execrows
-- ProbeTake is a compare-and-set on the time of the next probe: of two who come at once, one finds it in the future.
INSERT INTO probes AS p (action_id, org_id, next_at)
SELECT a.id, a.org_id, clock_timestamp() + probe_pause(1) FROM actions a WHERE a.org_id = @org_id AND a.id = @action_id AND a.state = 'uncertain'
ON CONFLICT (action_id) DO UPDATE SET attempts = p.attempts + 1, last_at = clock_timestamp(), next_at = clock_timestamp() + probe_pause(p.attempts + 1)
WHERE p.next_at <= clock_timestamp();

-- name: ProbeNote :exec
UPDATE probes p SET sentence = @sentence, next_at = CASE @next::text
    WHEN 'nothing' THEN clock_timestamp() + interval '1 day'
    WHEN 'settle' THEN CASE WHEN a.settles_at > clock_timestamp() THEN least(p.next_at, a.settles_at) ELSE p.next_at END
    ELSE p.next_at END
FROM actions a WHERE a.id = p.action_id AND p.org_id = @org_id AND p.action_id = @action_id;

-- name: ProbeByAction :one
SELECT * FROM probes WHERE org_id = @org_id AND action_id = @action_id;
