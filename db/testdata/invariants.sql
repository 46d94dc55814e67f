-- What must never be in a database, one query each: the comment in front is the sentence a test complains with, the query counts the cases.
-- They are the invariants of the action lifecycle and of what hangs on it. Read by dbtest.Holds, after every test of the stores and after
-- every crash of internal/proof.

-- holds: a second dispatch of an action
SELECT count(*) FROM (SELECT action_id FROM dispatches GROUP BY 1 HAVING count(*) > 1) x;

-- holds: a second action of a provider key
SELECT count(*) FROM (SELECT provider_key FROM dispatches GROUP BY 1 HAVING count(*) > 1) x;

-- holds: a dispatch without an earlier equal approval
SELECT count(*) FROM dispatches d JOIN actions a ON a.id = d.action_id WHERE a.approved_digest IS DISTINCT FROM d.args_digest OR a.decided_at IS NULL OR a.decided_at > d.claimed_at;

-- holds: a dispatch of what was never sent
SELECT count(*) FROM dispatches d JOIN actions a ON a.id = d.action_id WHERE a.state NOT IN ('executing', 'succeeded', 'failed', 'uncertain', 'closed_unknown');

-- holds: something sent without a dispatch
SELECT count(*) FROM actions a WHERE a.state IN ('executing', 'succeeded', 'failed', 'uncertain', 'closed_unknown') AND NOT EXISTS (SELECT FROM dispatches d WHERE d.action_id = a.id);

-- holds: a transition without exactly one audit row
SELECT count(*) FROM actions a WHERE a.version <> (SELECT count(*) FROM audit_entries e WHERE e.object_kind = 'action' AND e.object_id = a.id AND e.event LIKE 'action.%');

-- holds: an audit row of a transition outside the table
SELECT count(*) FROM audit_entries e WHERE e.object_kind = 'action' AND e.event LIKE 'action.%' AND (e.fact_names[1:2] <> '{from,to}' OR NOT action_edge(e.fact_values[1], e.fact_values[2]));

-- holds: a last audit row that tells another state
SELECT count(*) FROM actions a WHERE a.state <> (SELECT e.fact_values[2] FROM audit_entries e WHERE e.object_id = a.id AND e.event LIKE 'action.%' ORDER BY e.id DESC LIMIT 1);

-- holds: a budget that counts wrong
SELECT count(*) FROM runs r WHERE r.consequential_used <> (SELECT count(*) FROM actions a WHERE a.run_id = r.id AND a.budget_held);

-- holds: a budget that was exceeded
SELECT count(*) FROM runs WHERE consequential_used > budget;

-- holds: somebody who countersigned their own
SELECT count(*) FROM actions WHERE decided_by IN (on_behalf_of, token_owner);

-- holds: two actions of one key
SELECT count(*) FROM (SELECT run_id, idempotency_key FROM actions GROUP BY 1, 2 HAVING count(*) > 1) x;

-- holds: a credential of an ended connection
SELECT count(*) FROM credentials d JOIN connections c ON c.id = d.connection_id WHERE c.state IN ('retired', 'disconnected');

-- holds: something undecided on an ended connection
SELECT count(*) FROM actions a JOIN connections c ON c.id = a.connection_id WHERE c.state IN ('retired', 'disconnected') AND a.state IN ('staged', 'approved');

-- holds: a staged action of a run that was ended
SELECT count(*) FROM actions a JOIN runs r ON r.id = a.run_id WHERE r.ended_at IS NOT NULL AND a.state = 'staged';

-- holds: a row of one organization under another's parent
SELECT count(*) FROM actions a JOIN runs r ON r.id = a.run_id JOIN connections c ON c.id = a.connection_id WHERE a.org_id <> r.org_id OR a.org_id <> c.org_id;

-- holds: something that ended before it began
SELECT count(*) FROM actions WHERE finished_at < requested_at OR finished_at < claimed_at;

-- holds: a dispatch whose send deadline lies outside the lease
SELECT count(*) FROM dispatches WHERE send_deadline - claimed_at > interval '3 minutes';

-- holds: a dispatch of other bytes than those approved
SELECT count(*) FROM dispatches d JOIN actions a ON a.id = d.action_id WHERE d.args_digest <> a.args_digest;

-- holds: something approved by policy and by a person
SELECT count(*) FROM actions WHERE approved_by_policy AND decided_by IS NOT NULL;

-- holds: something approved or claimed under a freeze that stands
SELECT count(*) FROM actions a JOIN freezes f ON f.org_id = a.org_id AND f.lifted_at IS NULL AND freeze_covers(f.scope, f.key, a.profile, a.connection_key)
 WHERE a.claimed_at > f.since OR (a.state = 'approved' AND a.decided_at > f.since);

-- holds: an approval that fewer signed than were asked
SELECT count(*) FROM actions a WHERE a.approved_digest IS NOT NULL AND NOT a.approved_by_policy AND (SELECT count(*) FROM action_approvals s WHERE s.action_id = a.id AND s.args_digest = a.approved_digest) < a.signatures_needed;

-- holds: a day that was overdrawn
SELECT count(*) FROM budget_days WHERE used > most OR used < 0;
