-- Runs with what was minted into them, and the durable action. What the lifecycle promises is held here as constraints and triggers,
-- so that no code path, and no query typed by hand as the application, can break it.

-- +goose Up

CREATE TABLE runs (
    id                 text PRIMARY KEY,
    org_id             text NOT NULL REFERENCES orgs (id),
    surface            text NOT NULL CHECK (surface IN ('chat', 'task')),
    profile            text NOT NULL,
    task               text NOT NULL,
    on_behalf_of       text REFERENCES people (id),
    on_behalf_email    text NOT NULL,
    token_id           text NOT NULL REFERENCES service_tokens (id),
    token_owner        text NOT NULL REFERENCES people (id),
    token_hash         bytea NOT NULL UNIQUE,
    budget             integer NOT NULL,
    consequential_used integer NOT NULL DEFAULT 0,
    started_at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at         timestamptz NOT NULL,
    ended_at           timestamptz,
    idempotency_key    text,
    request_digest     text,
    UNIQUE (org_id, id),
    CONSTRAINT runs_idempotency_unique UNIQUE (token_id, idempotency_key),
    CONSTRAINT runs_budget_holds CHECK (consequential_used BETWEEN 0 AND budget),
    CHECK (surface = 'chat' OR (task <> '' AND on_behalf_of IS NOT NULL)),
    CHECK ((idempotency_key IS NULL) = (request_digest IS NULL))
);
CREATE INDEX runs_of_org ON runs (org_id, started_at DESC, id DESC);

-- What was minted: inserted with the run, never changed. The application may neither update nor delete.
CREATE TABLE run_connections (
    org_id        text NOT NULL,
    run_id        text NOT NULL,
    connection_id text NOT NULL,
    PRIMARY KEY (run_id, connection_id),
    FOREIGN KEY (org_id, run_id) REFERENCES runs (org_id, id),
    FOREIGN KEY (org_id, connection_id) REFERENCES connections (org_id, id)
);
CREATE TABLE run_grants (
    org_id        text NOT NULL,
    run_id        text NOT NULL,
    connection_id text NOT NULL,
    tool          text NOT NULL,
    digest        text NOT NULL,
    recipe        integer NOT NULL,
    effect        text NOT NULL CHECK (effect IN ('read', 'consequential')),
    destructive   boolean NOT NULL,
    PRIMARY KEY (run_id, connection_id, tool),
    FOREIGN KEY (run_id, connection_id) REFERENCES run_connections (run_id, connection_id)
);

CREATE TABLE actions (
    id                 text PRIMARY KEY,
    org_id             text NOT NULL REFERENCES orgs (id),
    version            integer NOT NULL DEFAULT 1,
    state              text NOT NULL CHECK (state IN ('staged', 'approved', 'executing', 'succeeded', 'failed', 'uncertain', 'denied', 'expired', 'cancelled', 'closed_unknown')),
    resolution         text CHECK (resolution IN ('direct', 'late_evidence', 'reconciler', 'person')),
    run_id             text NOT NULL,
    task               text NOT NULL,
    profile            text NOT NULL,
    on_behalf_of       text NOT NULL REFERENCES people (id),
    on_behalf_email    text NOT NULL,
    token_owner        text NOT NULL REFERENCES people (id),
    connection_id      text NOT NULL,
    connection_key     text NOT NULL,
    connection_name    text NOT NULL,
    integration        text NOT NULL,
    release_digest     text NOT NULL,
    destination        text NOT NULL,
    tool               text NOT NULL,
    effect             text NOT NULL CHECK (effect = 'consequential'),
    destructive        boolean NOT NULL,
    definition         text NOT NULL,
    arguments          bytea NOT NULL,
    args_digest        text NOT NULL,
    idempotency_key    text NOT NULL,
    explicit_key       boolean NOT NULL,
    snapshot_version   integer NOT NULL,
    justification      text NOT NULL,
    retry_of           text REFERENCES actions (id),
    requested_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at         timestamptz NOT NULL,
    approved_digest    text, -- the digest that was approved, by a person or by policy
    approved_by_policy boolean NOT NULL DEFAULT false,
    decided_by         text REFERENCES people (id),
    decided_by_name    text,
    decided_at         timestamptz,
    reason             text NOT NULL DEFAULT '',
    claimed_at         timestamptz,
    lease_until        timestamptz,
    finished_at        timestamptz,
    settles_at         timestamptz,
    result             bytea,
    error_code         text NOT NULL DEFAULT '',
    error_sentence     text NOT NULL DEFAULT '',
    evidence           text,
    budget_held        boolean NOT NULL DEFAULT true, -- counts in the run's consequential_used
    UNIQUE (org_id, id),
    CONSTRAINT actions_one_per_key UNIQUE (org_id, run_id, idempotency_key),
    CONSTRAINT actions_approved UNIQUE (id, approved_digest),
    FOREIGN KEY (org_id, run_id) REFERENCES runs (org_id, id),
    FOREIGN KEY (org_id, connection_id) REFERENCES connections (org_id, id),
    CONSTRAINT actions_approved_as_shown CHECK (approved_digest = args_digest),
    CONSTRAINT actions_nobody_countersigns_their_own CHECK (decided_by NOT IN (on_behalf_of, token_owner)),
    CONSTRAINT actions_approver_known CHECK (approved_digest IS NULL OR (decided_at IS NOT NULL AND (decided_by IS NULL) = approved_by_policy)),
    CONSTRAINT actions_approved_before_sending CHECK (state NOT IN ('approved', 'executing', 'succeeded', 'failed', 'uncertain', 'closed_unknown') OR approved_digest IS NOT NULL),
    CONSTRAINT actions_denied_by_somebody CHECK (state <> 'denied' OR (decided_by IS NOT NULL AND reason <> '')),
    CONSTRAINT actions_time_order CHECK (decided_at >= requested_at AND claimed_at >= decided_at AND lease_until > claimed_at AND finished_at >= requested_at),
    CONSTRAINT actions_claimed CHECK ((claimed_at IS NOT NULL) = (state IN ('executing', 'succeeded', 'failed', 'uncertain', 'closed_unknown'))),
    CONSTRAINT actions_finished CHECK ((finished_at IS NOT NULL) = (state IN ('succeeded', 'failed', 'denied', 'expired', 'cancelled', 'closed_unknown'))),
    CONSTRAINT actions_resolved CHECK ((resolution IS NOT NULL) = (state IN ('succeeded', 'failed', 'closed_unknown'))),
    CONSTRAINT actions_uncertain_settles CHECK (state <> 'uncertain' OR settles_at IS NOT NULL),
    CONSTRAINT actions_unsent_costs_nothing CHECK (NOT budget_held OR state NOT IN ('denied', 'expired', 'cancelled'))
);
CREATE INDEX actions_newest ON actions (org_id, requested_at DESC, id DESC);
CREATE INDEX actions_of_run ON actions (run_id, requested_at DESC, id DESC);
CREATE INDEX actions_due ON actions (expires_at, id) WHERE state IN ('staged', 'approved');
CREATE INDEX actions_open ON actions (org_id, state) WHERE state IN ('staged', 'approved', 'executing', 'uncertain');
CREATE INDEX actions_claimable ON actions (decided_at, id) WHERE state = 'approved';
CREATE INDEX actions_leased ON actions (lease_until, id) WHERE state = 'executing';
CREATE INDEX actions_unknown ON actions (connection_id, tool) WHERE state = 'uncertain';
CREATE INDEX actions_undecided_of_connection ON actions (connection_id) WHERE state IN ('staged', 'approved');

CREATE SEQUENCE dispatch_fences;

-- The one intent to send. Its primary key makes a second dispatch impossible; its foreign key makes one without an approval of the very
-- same digest impossible.
CREATE TABLE dispatches (
    action_id     text NOT NULL CONSTRAINT dispatches_one_per_action UNIQUE,
    org_id        text NOT NULL,
    args_digest   text NOT NULL,
    fence         bigint NOT NULL DEFAULT nextval('dispatch_fences') UNIQUE,
    provider_key  text NOT NULL UNIQUE,
    claimed_at    timestamptz NOT NULL,
    send_deadline timestamptz NOT NULL CHECK (send_deadline > claimed_at),
    PRIMARY KEY (action_id),
    FOREIGN KEY (org_id, action_id) REFERENCES actions (org_id, id),
    FOREIGN KEY (action_id, args_digest) REFERENCES actions (id, approved_digest)
);

-- The transition table; internal/action holds the same one and a test compares them for every pair. '' is "not yet asked for".
CREATE FUNCTION action_edge(text, text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT ($1, $2) IN (
        ('', 'staged'), ('', 'approved'),
        ('staged', 'approved'), ('staged', 'denied'), ('staged', 'expired'), ('staged', 'cancelled'),
        ('approved', 'executing'), ('approved', 'expired'), ('approved', 'cancelled'),
        ('executing', 'succeeded'), ('executing', 'failed'), ('executing', 'uncertain'),
        ('uncertain', 'succeeded'), ('uncertain', 'failed'), ('uncertain', 'closed_unknown'))
$$;

-- +goose StatementBegin
CREATE FUNCTION actions_lifecycle() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        RAISE EXCEPTION 'an action is never deleted' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    IF TG_OP = 'INSERT' THEN
        IF NOT action_edge('', NEW.state) OR NEW.version <> 1 OR NOT NEW.budget_held OR (NEW.state = 'approved') <> NEW.approved_by_policy THEN
            RAISE EXCEPTION 'an action begins staged, or approved by policy' USING ERRCODE = 'integrity_constraint_violation';
        END IF;
        IF NOT EXISTS (SELECT FROM runs r WHERE r.id = NEW.run_id AND r.surface = 'task' AND r.task = NEW.task) THEN
            RAISE EXCEPTION 'only a task run asks for effects, and for its own task' USING ERRCODE = 'integrity_constraint_violation';
        END IF;
        RETURN NEW;
    END IF;
    IF NOT action_edge(OLD.state, NEW.state) THEN
        RAISE EXCEPTION 'an action does not go from % to %', OLD.state, NEW.state USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    IF NEW.version <> OLD.version + 1 THEN
        RAISE EXCEPTION 'each transition is one version' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    IF (NEW.id, NEW.org_id, NEW.run_id, NEW.task, NEW.profile, NEW.on_behalf_of, NEW.on_behalf_email, NEW.token_owner, NEW.connection_id, NEW.connection_key,
        NEW.connection_name, NEW.integration, NEW.release_digest, NEW.destination, NEW.tool, NEW.effect, NEW.destructive, NEW.definition, NEW.arguments,
        NEW.args_digest, NEW.idempotency_key, NEW.explicit_key, NEW.snapshot_version, NEW.justification, NEW.retry_of, NEW.requested_at, NEW.expires_at)
        IS DISTINCT FROM
       (OLD.id, OLD.org_id, OLD.run_id, OLD.task, OLD.profile, OLD.on_behalf_of, OLD.on_behalf_email, OLD.token_owner, OLD.connection_id, OLD.connection_key,
        OLD.connection_name, OLD.integration, OLD.release_digest, OLD.destination, OLD.tool, OLD.effect, OLD.destructive, OLD.definition, OLD.arguments,
        OLD.args_digest, OLD.idempotency_key, OLD.explicit_key, OLD.snapshot_version, OLD.justification, OLD.retry_of, OLD.requested_at, OLD.expires_at) THEN
        RAISE EXCEPTION 'what was asked for never changes' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    IF OLD.state <> 'staged' AND (NEW.approved_digest, NEW.approved_by_policy, NEW.decided_by, NEW.decided_by_name, NEW.decided_at)
        IS DISTINCT FROM (OLD.approved_digest, OLD.approved_by_policy, OLD.decided_by, OLD.decided_by_name, OLD.decided_at) THEN
        RAISE EXCEPTION 'a decision never changes' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    IF OLD.state = 'staged' AND (NEW.approved_by_policy OR (NEW.approved_digest IS NOT NULL) <> (NEW.state = 'approved')) THEN
        RAISE EXCEPTION 'only a person approves what was staged' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    IF NEW.state IN ('approved', 'executing') AND NEW.expires_at <= clock_timestamp() THEN
        RAISE EXCEPTION 'this action has expired' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    IF OLD.claimed_at IS NOT NULL AND (NEW.claimed_at, NEW.lease_until) IS DISTINCT FROM (OLD.claimed_at, OLD.lease_until) THEN
        RAISE EXCEPTION 'a claim is never renewed' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    IF NEW.budget_held AND NOT OLD.budget_held OR OLD.budget_held AND NOT NEW.budget_held AND NEW.state NOT IN ('denied', 'expired', 'cancelled', 'failed') THEN
        RAISE EXCEPTION 'a place in the budget is given back once, by what was not sent' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER actions_lifecycle BEFORE INSERT OR UPDATE OR DELETE ON actions FOR EACH ROW EXECUTE FUNCTION actions_lifecycle();

-- The budget is counted where the action is: no code can forget it. The check on runs refuses the one too many.
-- +goose StatementBegin
CREATE FUNCTION actions_budget() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        UPDATE runs SET consequential_used = consequential_used + 1 WHERE id = NEW.run_id;
    ELSIF OLD.budget_held AND NOT NEW.budget_held THEN
        UPDATE runs SET consequential_used = consequential_used - 1 WHERE id = NEW.run_id;
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER actions_budget AFTER INSERT OR UPDATE ON actions FOR EACH ROW EXECUTE FUNCTION actions_budget();

-- At commit: as many audit rows as transitions, so none can be forgotten or written twice; and an executing action has its dispatch.
-- +goose StatementBegin
CREATE FUNCTION actions_accounted() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    transitions integer;
    recorded bigint;
BEGIN
    SELECT a.version INTO transitions FROM actions a WHERE a.id = NEW.id;
    SELECT count(*) INTO recorded FROM audit_entries e
     WHERE e.org_id = NEW.org_id AND e.object_kind = 'action' AND e.object_id = NEW.id AND e.event LIKE 'action.%';
    IF recorded <> transitions THEN
        RAISE EXCEPTION 'action %: % transitions, % audit rows', NEW.id, transitions, recorded USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    IF NEW.state = 'executing' AND NOT EXISTS (SELECT FROM dispatches d WHERE d.action_id = NEW.id) THEN
        RAISE EXCEPTION 'action % executes without a dispatch', NEW.id USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE CONSTRAINT TRIGGER actions_accounted AFTER INSERT OR UPDATE ON actions DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION actions_accounted();

-- +goose StatementBegin
CREATE FUNCTION dispatches_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        RAISE EXCEPTION 'a dispatch never changes' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    IF NOT EXISTS (SELECT FROM actions a WHERE a.id = NEW.action_id AND a.state = 'executing' AND a.claimed_at = NEW.claimed_at
                      AND a.decided_at <= NEW.claimed_at AND NEW.send_deadline < a.lease_until) THEN
        RAISE EXCEPTION 'a dispatch belongs to the claim of an approved action' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER dispatches_guard BEFORE INSERT OR UPDATE OR DELETE ON dispatches FOR EACH ROW EXECUTE FUNCTION dispatches_guard();

-- The only doors across organizations: a run by its token, and the work lists of the background parts. They answer names, nothing else.
CREATE FUNCTION find_run_org(wanted bytea) RETURNS text LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
    SELECT org_id FROM runs WHERE token_hash = wanted AND ended_at IS NULL AND expires_at > clock_timestamp()
$$;
CREATE FUNCTION each_action_past_expiry(most integer) RETURNS TABLE (org text, action text) LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
    SELECT a.org_id, a.id FROM actions a WHERE a.state IN ('staged', 'approved') AND a.expires_at <= clock_timestamp() ORDER BY a.expires_at, a.id LIMIT most
$$;
CREATE FUNCTION each_action_past_lease(most integer) RETURNS TABLE (org text, action text) LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
    SELECT a.org_id, a.id FROM actions a WHERE a.state = 'executing' AND a.lease_until <= clock_timestamp() ORDER BY a.lease_until, a.id LIMIT most
$$;
CREATE FUNCTION each_action_to_claim(most integer) RETURNS TABLE (org text, action text) LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
    SELECT a.org_id, a.id FROM actions a WHERE a.state = 'approved' AND a.expires_at > clock_timestamp() ORDER BY a.decided_at, a.id LIMIT most
$$;
CREATE FUNCTION each_action_unsettled(most integer) RETURNS TABLE (org text, action text) LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
    SELECT a.org_id, a.id FROM actions a WHERE a.state = 'uncertain' ORDER BY a.settles_at, a.id LIMIT most
$$;
REVOKE ALL ON FUNCTION find_run_org(bytea), each_action_past_expiry(integer), each_action_past_lease(integer), each_action_to_claim(integer), each_action_unsettled(integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION find_run_org(bytea), each_action_past_expiry(integer), each_action_past_lease(integer), each_action_to_claim(integer), each_action_unsettled(integer) TO countersign_app;

ALTER TABLE runs ENABLE ROW LEVEL SECURITY;
ALTER TABLE run_connections ENABLE ROW LEVEL SECURITY;
ALTER TABLE run_grants ENABLE ROW LEVEL SECURITY;
ALTER TABLE actions ENABLE ROW LEVEL SECURITY;
ALTER TABLE dispatches ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_org ON runs USING (org_id = current_org());
CREATE POLICY own_org ON run_connections USING (org_id = current_org());
CREATE POLICY own_org ON run_grants USING (org_id = current_org());
CREATE POLICY own_org ON actions USING (org_id = current_org());
CREATE POLICY own_org ON dispatches USING (org_id = current_org());

GRANT SELECT, INSERT ON runs, run_connections, run_grants, actions, dispatches TO countersign_app;
GRANT UPDATE (consequential_used, ended_at) ON runs TO countersign_app;
GRANT UPDATE ON actions TO countersign_app;
GRANT USAGE ON SEQUENCE dispatch_fences TO countersign_app;

-- +goose Down
DROP FUNCTION each_action_unsettled(integer), each_action_to_claim(integer), each_action_past_lease(integer), each_action_past_expiry(integer), find_run_org(bytea);
DROP TABLE dispatches, actions, run_grants, run_connections, runs;
DROP FUNCTION dispatches_guard(), actions_accounted(), actions_budget(), actions_lifecycle(), action_edge(text, text);
DROP SEQUENCE dispatch_fences;
