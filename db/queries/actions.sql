-- name: ActionByID :one
-- ActionByID reads an action with its own clock, which a freeze stops.
SELECT sqlc.embed(actions), action_clock(org_id, profile, connection_key)::timestamptz AS now FROM actions WHERE org_id = @org_id AND id = @id;

-- name: ActionByKey :one
SELECT sqlc.embed(actions), action_clock(org_id, profile, connection_key)::timestamptz AS now FROM actions WHERE org_id = @org_id AND run_id = @run_id AND idempotency_key = @idempotency_key;

-- name: ActionPlace :one
SELECT run_id, connection_key FROM actions WHERE org_id = @org_id AND id = @id;

-- name: ActionHold :one
-- ActionHold locks what an action depends on and then the action, in the order of the clauses at its end: the connection against changes,
-- the run, the action. What it waited for it reads as it is afterwards.
SELECT sqlc.embed(c), sqlc.embed(r), sqlc.embed(a)
FROM actions a JOIN connections c ON c.org_id = a.org_id AND c.id = a.connection_id JOIN runs r ON r.org_id = a.org_id AND r.id = a.run_id
WHERE a.org_id = @org_id AND a.id = @id
FOR SHARE OF c FOR NO KEY UPDATE OF r FOR NO KEY UPDATE OF a;

-- name: ActionLock :one
-- ActionLock is ActionHold without the connection.
SELECT a.* FROM actions a JOIN runs r ON r.org_id = a.org_id AND r.id = a.run_id
WHERE a.org_id = @org_id AND a.id = @id
FOR NO KEY UPDATE OF r FOR NO KEY UPDATE OF a;

-- name: ProposalHold :one
-- ProposalHold locks what a proposal depends on, in the order of ActionHold.
SELECT sqlc.embed(c), sqlc.embed(r) FROM connections c JOIN runs r ON r.org_id = c.org_id
WHERE c.org_id = @org_id AND c.key = @connection_key AND r.id = @run_id
FOR SHARE OF c FOR NO KEY UPDATE OF r;

-- name: Clock :one
SELECT clock_timestamp()::timestamptz;

-- name: ActionFacts :one
-- ActionFacts reads what the fences judge, and what the profile says about the call: who must sign, what is bounded, what of the day is
-- taken. The run and the connection are locked by then, so nobody else makes an action of the key that is looked for.
SELECT t.now::timestamptz AS now, (t.day::timestamp AT TIME ZONE 'UTC')::timestamptz AS day,
       coalesce((SELECT k.id FROM actions k WHERE @key::text <> '' AND k.org_id = r.org_id AND k.run_id = r.id AND k.idempotency_key = @key), '')::text AS of_key,
       (u.connection_key IS NOT NULL)::boolean AS in_profile, u.mode AS profile_mode, u.tools AS profile_tools,
       rc.mode AS minted_mode, g.digest AS minted_digest, p.digest AS pinned_digest, p.effect AS pinned_effect, p.destructive AS pinned_destructive,
       o.digest AS observed_digest,
       coalesce((SELECT x.id FROM actions x WHERE x.connection_id = c.id AND x.tool = @tool AND x.state = 'uncertain'
                    AND (x.arguments = @arguments OR x.args_digest = @args_digest) AND x.id <> @self LIMIT 1), '')::text AS uncertain_equal,
       coalesce(b.active, false)::boolean AS behalf_active, coalesce(u.approvers, '')::text AS approvers, coalesce(q.signatures, u.signatures, 1)::integer AS signatures,
       coalesce(u.daily_actions, 0)::integer AS daily_actions, coalesce(u.daily_amount, 0)::bigint AS daily_amount, coalesce(u.daily_currency, '')::text AS daily_currency,
       coalesce(da.used, 0)::bigint AS day_actions, coalesce(dm.used, 0)::bigint AS day_amount,
       coalesce((SELECT s.value FROM connection_settings s WHERE s.connection_id = c.id AND s.name = @setting::text), '')::text AS bound,
       pr.allowed
FROM (SELECT clock_timestamp() AS now, (clock_timestamp() AT TIME ZONE 'UTC')::date AS day) t
JOIN runs r ON r.id = @run_id
JOIN connections c ON c.id = @connection_id
LEFT JOIN people b ON b.org_id = r.org_id AND b.id = r.on_behalf_of
LEFT JOIN profile_uses u ON u.org_id = r.org_id AND u.profile = r.profile AND u.connection_key = c.key
LEFT JOIN profile_quorums q ON q.org_id = u.org_id AND q.profile = u.profile AND q.connection_key = u.connection_key AND q.tool = @tool
LEFT JOIN profile_resources pr ON pr.org_id = u.org_id AND pr.profile = u.profile AND pr.connection_key = u.connection_key AND pr.setting = @setting::text
LEFT JOIN budget_days da ON da.org_id = r.org_id AND da.profile = r.profile AND da.connection_id = c.id AND da.day = t.day AND da.measure = 'actions'
LEFT JOIN budget_days dm ON dm.org_id = r.org_id AND dm.profile = r.profile AND dm.connection_id = c.id AND dm.day = t.day AND dm.measure = @currency::text
LEFT JOIN run_connections rc ON rc.run_id = r.id AND rc.connection_id = c.id
LEFT JOIN run_grants g ON g.run_id = r.id AND g.connection_id = c.id AND g.tool = @tool
LEFT JOIN pinned_tools p ON p.connection_id = c.id AND p.tool = @tool
LEFT JOIN observed_tools o ON o.connection_id = c.id AND o.tool = @tool AND o.recipe = p.recipe;

-- name: ActionInsert :one
INSERT INTO actions (id, org_id, state, run_id, task, profile, on_behalf_of, on_behalf_email, token_owner, connection_id, connection_key, connection_name,
    integration, release_digest, destination, tool, effect, destructive, definition, arguments, args_digest, idempotency_key, explicit_key,
    snapshot_version, justification, retry_of, requested_at, expires_at, approved_digest, approved_by_policy, decided_at,
    approvers, signatures_needed, amount, currency, resource_setting, resource_value)
SELECT @id, @org_id, @state, @run_id, @task, @profile, @on_behalf_of, @on_behalf_email, @token_owner, @connection_id, @connection_key, @connection_name,
    @integration, @release_digest, @destination, @tool, @effect, @destructive, @definition, @arguments, @args_digest, @idempotency_key, @explicit_key,
    @snapshot_version, @justification, @retry_of, t.now, t.now + @life::interval,
    CASE WHEN @by_policy::boolean THEN @args_digest::text END, @by_policy::boolean, CASE WHEN @by_policy::boolean THEN t.now END,
    @approvers, @signatures_needed, @amount, @currency, @resource_setting, @resource_value
FROM (SELECT clock_timestamp() AS now) t
RETURNING *;

-- name: ActionApprove :one
UPDATE actions SET state = 'approved', version = version + 1, approved_digest = args_digest, decided_by = @decided_by, decided_by_name = @decided_by_name,
       decided_at = clock_timestamp(), reason = @reason
WHERE id = @id AND state = 'staged' AND version = @version AND args_digest = @args_digest AND expires_at > clock_timestamp()
RETURNING *;

-- name: ActionDeny :one
UPDATE actions SET state = 'denied', version = version + 1, decided_by = @decided_by, decided_by_name = @decided_by_name,
       decided_at = clock_timestamp(), finished_at = clock_timestamp(), reason = @reason, budget_held = false
WHERE id = @id AND state = 'staged' AND version = @version AND args_digest = @args_digest AND expires_at > action_clock(org_id, profile, connection_key)
RETURNING *;

-- name: ActionExpire :one
UPDATE actions SET state = 'expired', version = version + 1, finished_at = clock_timestamp(), budget_held = false
WHERE id = @id AND state IN ('staged', 'approved') AND expires_at <= action_clock(org_id, profile, connection_key)
RETURNING *;

-- name: ActionCancel :one
UPDATE actions SET state = 'cancelled', version = version + 1, finished_at = clock_timestamp(), budget_held = false,
       reason = CASE WHEN @reason::text <> '' THEN @reason ELSE reason END, error_code = @error_code, error_sentence = @error_sentence
WHERE id = @id AND state IN ('staged', 'approved') AND version = @version
RETURNING *;

-- name: ActionClaim :one
UPDATE actions SET state = 'executing', version = version + 1, claimed_at = clock_timestamp(), lease_until = clock_timestamp() + @lease::interval
WHERE id = @id AND state = 'approved' AND version = @version AND approved_digest = args_digest AND expires_at > clock_timestamp()
RETURNING *;

-- name: DispatchInsert :one
INSERT INTO dispatches (action_id, org_id, args_digest, provider_key, claimed_at, send_deadline, settle)
SELECT a.id, a.org_id, a.approved_digest, @provider_key, a.claimed_at, a.claimed_at + @send_window::interval, @settle::interval
FROM actions a WHERE a.id = @action_id
RETURNING fence;

-- name: DispatchByAction :one
SELECT fence, settle FROM dispatches WHERE action_id = @action_id;

-- name: ActionConclude :one
-- ActionConclude enters uncertain, or ends what was sent.
UPDATE actions SET state = @state, version = version + 1, resolution = sqlc.narg('resolution'),
       finished_at = CASE WHEN @state::text <> 'uncertain' THEN clock_timestamp() END,
       settles_at = CASE WHEN @state::text = 'uncertain' THEN clock_timestamp() + @settle::interval ELSE settles_at END,
       result = coalesce(sqlc.narg('result'), result), error_code = @error_code, error_sentence = @error_sentence,
       evidence = coalesce(sqlc.narg('evidence'), evidence), budget_held = budget_held AND NOT @unsent::boolean
WHERE id = @id AND state = @from_state AND version = @version
RETURNING *;

-- name: ActionListNewest :many
SELECT sqlc.embed(a), action_clock(a.org_id, a.profile, a.connection_key)::timestamptz AS now FROM actions a
WHERE a.org_id = @org_id AND (cardinality(@states::text[]) = 0 OR CASE WHEN a.state IN ('staged', 'approved') AND a.expires_at <= clock_timestamp() AND a.expires_at <= action_clock(a.org_id, a.profile, a.connection_key) THEN 'expired' ELSE a.state END = ANY (@states))
  AND (@run_id::text = '' OR a.run_id = @run_id) AND (@connection::text = '' OR a.connection_key = @connection)
  AND (@digest::text = '' OR a.args_digest = @digest) AND (@tool::text = '' OR a.tool = @tool) AND (NOT @undecided::boolean OR a.decided_at IS NULL)
  AND (@before::text = '' OR (a.requested_at, a.id) < (SELECT b.requested_at, b.id FROM actions b WHERE b.id = @before))
ORDER BY a.requested_at DESC, a.id DESC
LIMIT @most;

-- name: ActionListEnded :many
-- ActionListEnded lists what ended since a moment, the last end first.
SELECT * FROM actions WHERE org_id = @org_id AND finished_at >= @since::timestamptz ORDER BY finished_at DESC, id DESC LIMIT @most;

-- name: ActionListDue :many
-- ActionListDue lists only what has a due time still to come or missed: the states are spelt out for the index actions_waiting.
SELECT sqlc.embed(a), action_clock(a.org_id, a.profile, a.connection_key)::timestamptz AS now FROM actions a
WHERE a.org_id = @org_id AND a.state IN ('staged', 'approved') AND (cardinality(@states::text[]) = 0 OR CASE WHEN a.state IN ('staged', 'approved') AND a.expires_at <= clock_timestamp() AND a.expires_at <= action_clock(a.org_id, a.profile, a.connection_key) THEN 'expired' ELSE a.state END = ANY (@states))
  AND (@run_id::text = '' OR a.run_id = @run_id) AND (@connection::text = '' OR a.connection_key = @connection)
  AND (@digest::text = '' OR a.args_digest = @digest) AND (@tool::text = '' OR a.tool = @tool) AND (NOT @undecided::boolean OR a.decided_at IS NULL)
  AND (@before::text = '' OR (a.expires_at, a.id) > (SELECT b.expires_at, b.id FROM actions b WHERE b.id = @before))
ORDER BY a.expires_at, a.id
LIMIT @most;

-- name: ActionCount :one
SELECT count(*) FILTER (WHERE state = 'staged' AND (expires_at > clock_timestamp() OR expires_at > action_clock(org_id, profile, connection_key)))::integer AS waiting,
       count(*) FILTER (WHERE state = 'uncertain')::integer AS uncertain,
       count(*) FILTER (WHERE state = 'executing')::integer AS executing
FROM actions WHERE org_id = @org_id AND state IN ('staged', 'uncertain', 'executing');

-- name: ActionTimeline :many
SELECT at, event, actor_name, fact_names, fact_values FROM audit_entries WHERE org_id = @org_id AND object_kind = 'action' AND object_id = @id ORDER BY id;

-- name: ActionUndecidedOfConnection :many
SELECT id, run_id FROM actions WHERE connection_id = @connection_id AND state IN ('staged', 'approved') ORDER BY run_id, id;

-- name: ActionStagedOfRun :many
SELECT id FROM actions WHERE run_id = @run_id AND state = 'staged' ORDER BY connection_id, requested_at, id;
