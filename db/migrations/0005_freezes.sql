-- The kill switch. A freeze stops staging, approving and claiming of what it covers, and the clock of every open action with it. What was
-- stopped is given back when it is lifted: exactly the time that stood still, once, however many freezes overlapped.

-- +goose Up

CREATE TABLE freezes (
    id             text PRIMARY KEY,
    org_id         text NOT NULL REFERENCES orgs (id),
    scope          text NOT NULL CHECK (scope IN ('organization', 'profile', 'connection')),
    key            text NOT NULL, -- profile name or connector key; empty for the organization
    since          timestamptz NOT NULL DEFAULT clock_timestamp(),
    by_id          text NOT NULL REFERENCES people (id),
    by_name        text NOT NULL,
    reason         text NOT NULL CHECK (reason <> ''),
    lifted_at      timestamptz,
    lifted_by_id   text REFERENCES people (id),
    lifted_by_name text,
    lifted_in      xid8, -- the transaction that lifted it, the only one that may give time back for it
    UNIQUE (org_id, id),
    CHECK ((scope = 'organization') = (key = '')),
    CHECK ((lifted_at IS NULL) = (lifted_by_id IS NULL) AND (lifted_at IS NULL) = (lifted_by_name IS NULL) AND (lifted_at IS NULL) = (lifted_in IS NULL)),
    CHECK (lifted_at >= since)
);
CREATE UNIQUE INDEX freezes_standing ON freezes (org_id, scope, key) WHERE lifted_at IS NULL;

-- What a freeze gave back to an action: written when it is lifted, by the trigger that moves the deadline.
CREATE TABLE frozen_time (
    freeze_id text NOT NULL,
    action_id text NOT NULL,
    org_id    text NOT NULL,
    added     interval NOT NULL CHECK (added > interval '0'),
    PRIMARY KEY (action_id, freeze_id),
    FOREIGN KEY (org_id, freeze_id) REFERENCES freezes (org_id, id),
    FOREIGN KEY (org_id, action_id) REFERENCES actions (org_id, id)
);

CREATE FUNCTION freeze_covers(scope text, key text, of_profile text, of_connection text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT scope = 'organization' OR (scope = 'profile' AND key = of_profile) OR (scope = 'connection' AND key = of_connection)
$$;

-- The clock of an action: it stands still at the beginning of the oldest freeze that still covers it. An action is past its expiry when
-- expires_at <= action_clock(…), and in no other case.
CREATE FUNCTION action_clock(of_org text, of_profile text, of_connection text) RETURNS timestamptz LANGUAGE sql VOLATILE AS $$
    SELECT least(clock_timestamp(), (SELECT min(f.since) FROM freezes f
        WHERE f.org_id = of_org AND f.lifted_at IS NULL AND freeze_covers(f.scope, f.key, of_profile, of_connection)))
$$;

-- Whoever moves an action holds the switch as it is, shared; whoever presses it holds it alone. These are advisory locks and not locks on
-- a row, because shared row locks may overtake an exclusive one that waits, and a busy organization could never be stopped. Their first
-- number is lockFreeze in db/db.go.
CREATE FUNCTION hold_switch(of_org text) RETURNS void LANGUAGE sql VOLATILE AS $$ SELECT pg_advisory_xact_lock_shared(6, hashtext(of_org)) $$;
CREATE FUNCTION press_switch(of_org text) RETURNS void LANGUAGE sql VOLATILE AS $$ SELECT pg_advisory_xact_lock(6, hashtext(of_org)) $$;

-- standing_freezes reads only after the switch is held: each statement of this function sees what was committed before it began.
-- +goose StatementBegin
CREATE FUNCTION standing_freezes(of_org text) RETURNS SETOF freezes LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM hold_switch(of_org);
    RETURN QUERY SELECT f.* FROM freezes f WHERE f.org_id = of_org AND f.lifted_at IS NULL ORDER BY f.since, f.id;
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION freezes_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        RAISE EXCEPTION 'a freeze is lifted, never deleted' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    PERFORM press_switch(NEW.org_id);
    IF TG_OP = 'INSERT' THEN
        -- Taken with the switch in hand: every claim that was quicker has committed before this moment.
        NEW.since := clock_timestamp();
        NEW.lifted_at := NULL;
        RETURN NEW;
    END IF;
    IF OLD.lifted_at IS NOT NULL OR (NEW.id, NEW.org_id, NEW.scope, NEW.key, NEW.since, NEW.by_id, NEW.by_name, NEW.reason)
        IS DISTINCT FROM (OLD.id, OLD.org_id, OLD.scope, OLD.key, OLD.since, OLD.by_id, OLD.by_name, OLD.reason) THEN
        RAISE EXCEPTION 'a freeze is only lifted, once' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    NEW.lifted_at := clock_timestamp();
    NEW.lifted_in := pg_current_xact_id();
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER freezes_guard BEFORE INSERT OR UPDATE OR DELETE ON freezes FOR EACH ROW EXECUTE FUNCTION freezes_guard();

-- While a freeze covers it, an action is neither made nor approved nor claimed, whoever asks. That the switch is held here too makes it so
-- for statements that forgot to.
-- +goose StatementBegin
CREATE FUNCTION actions_frozen() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM standing_freezes(NEW.org_id) f WHERE freeze_covers(f.scope, f.key, NEW.profile, NEW.connection_key)) THEN
        RAISE EXCEPTION 'a freeze stops this action' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER actions_frozen_insert BEFORE INSERT ON actions FOR EACH ROW EXECUTE FUNCTION actions_frozen();
CREATE TRIGGER actions_frozen_update BEFORE UPDATE ON actions FOR EACH ROW
    WHEN (NEW.state IN ('approved', 'executing') AND OLD.state <> NEW.state) EXECUTE FUNCTION actions_frozen();

-- A change that is no transition is one thing only: time given back.
DROP TRIGGER actions_lifecycle ON actions;
CREATE TRIGGER actions_lifecycle BEFORE INSERT OR DELETE ON actions FOR EACH ROW EXECUTE FUNCTION actions_lifecycle();
CREATE TRIGGER actions_lifecycle_change BEFORE UPDATE ON actions FOR EACH ROW
    WHEN (OLD.state <> NEW.state OR OLD.version <> NEW.version) EXECUTE FUNCTION actions_lifecycle();
-- +goose StatementBegin
CREATE FUNCTION actions_more_time() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- At depth 1 a statement did this; deeper it is the trigger of frozen_time, which has computed the time.
    IF pg_trigger_depth() < 2 OR OLD.state NOT IN ('staged', 'approved') OR NEW.expires_at <= OLD.expires_at
        OR to_jsonb(OLD) - 'expires_at' IS DISTINCT FROM to_jsonb(NEW) - 'expires_at' THEN
        RAISE EXCEPTION 'an action does not go from % to %; without a transition only time is given back', OLD.state, NEW.state USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER actions_more_time BEFORE UPDATE ON actions FOR EACH ROW
    WHEN (OLD.state = NEW.state AND OLD.version = NEW.version) EXECUTE FUNCTION actions_more_time();

-- +goose StatementBegin
CREATE FUNCTION frozen_time_given() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    f freezes;
    a actions;
    began timestamptz;
    ended timestamptz;
BEGIN
    IF TG_OP <> 'INSERT' THEN
        RAISE EXCEPTION 'time given back stays given' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    SELECT * INTO f FROM freezes x WHERE x.org_id = NEW.org_id AND x.id = NEW.freeze_id;
    IF f.lifted_in IS DISTINCT FROM pg_current_xact_id() THEN
        RAISE EXCEPTION 'time is given back by the transaction that lifts the freeze' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    SELECT * INTO a FROM actions x WHERE x.org_id = NEW.org_id AND x.id = NEW.action_id FOR NO KEY UPDATE;
    IF NOT coalesce(freeze_covers(f.scope, f.key, a.profile, a.connection_key), false) THEN
        RAISE EXCEPTION 'this freeze did not stop that action' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    began := greatest(f.since, a.requested_at);
    -- What another freeze still counts is counted when that one is lifted.
    SELECT least(f.lifted_at, min(x.since)) INTO ended FROM freezes x
     WHERE x.org_id = NEW.org_id AND x.lifted_at IS NULL AND freeze_covers(x.scope, x.key, a.profile, a.connection_key);
    IF a.state NOT IN ('staged', 'approved') OR ended <= began OR a.expires_at <= began THEN
        RETURN NULL;
    END IF;
    NEW.added := ended - began;
    UPDATE actions SET expires_at = expires_at + NEW.added WHERE id = a.id;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER frozen_time_given BEFORE INSERT OR UPDATE OR DELETE ON frozen_time FOR EACH ROW EXECUTE FUNCTION frozen_time_given();

CREATE OR REPLACE FUNCTION each_action_past_expiry(most integer) RETURNS TABLE (org text, action text) LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp AS $$
    SELECT a.org_id, a.id FROM actions a WHERE a.state IN ('staged', 'approved') AND a.expires_at <= clock_timestamp()
       AND a.expires_at <= action_clock(a.org_id, a.profile, a.connection_key) ORDER BY a.expires_at, a.id LIMIT most
$$;
CREATE OR REPLACE FUNCTION each_action_to_claim(most integer) RETURNS TABLE (org text, action text) LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp AS $$
    SELECT a.org_id, a.id FROM actions a WHERE a.state = 'approved' AND a.expires_at > clock_timestamp()
       AND NOT EXISTS (SELECT FROM freezes f WHERE f.org_id = a.org_id AND f.lifted_at IS NULL AND freeze_covers(f.scope, f.key, a.profile, a.connection_key))
     ORDER BY a.decided_at, a.id LIMIT most
$$;

ALTER TABLE freezes ENABLE ROW LEVEL SECURITY;
ALTER TABLE frozen_time ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_org ON freezes USING (org_id = current_org());
CREATE POLICY own_org ON frozen_time USING (org_id = current_org());
GRANT SELECT, INSERT, UPDATE ON freezes TO countersign_app;
GRANT SELECT, INSERT ON frozen_time TO countersign_app;

-- +goose Down
DROP TRIGGER actions_more_time ON actions;
DROP TRIGGER actions_lifecycle_change ON actions;
DROP TRIGGER actions_lifecycle ON actions;
CREATE TRIGGER actions_lifecycle BEFORE INSERT OR UPDATE OR DELETE ON actions FOR EACH ROW EXECUTE FUNCTION actions_lifecycle();
DROP TRIGGER actions_frozen_update ON actions;
DROP TRIGGER actions_frozen_insert ON actions;
CREATE OR REPLACE FUNCTION each_action_past_expiry(most integer) RETURNS TABLE (org text, action text) LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
    SELECT a.org_id, a.id FROM actions a WHERE a.state IN ('staged', 'approved') AND a.expires_at <= clock_timestamp() ORDER BY a.expires_at, a.id LIMIT most
$$;
CREATE OR REPLACE FUNCTION each_action_to_claim(most integer) RETURNS TABLE (org text, action text) LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
    SELECT a.org_id, a.id FROM actions a WHERE a.state = 'approved' AND a.expires_at > clock_timestamp() ORDER BY a.decided_at, a.id LIMIT most
$$;
DROP TABLE frozen_time;
DROP FUNCTION frozen_time_given(), actions_more_time(), actions_frozen(), action_clock(text, text, text), standing_freezes(text), hold_switch(text), press_switch(text);
DROP TABLE freezes;
DROP FUNCTION freezes_guard(), freeze_covers(text, text, text, text);
