-- Limits by the day, resources that a profile narrows, and who must sign and how many. The ledger is kept by triggers where the action
-- is, so that no code can forget it; what was asked for stays as it was when the action was staged, whatever is edited later.

-- +goose Up

-- People who may be named as the ones to decide. The key is the name, which never changes.
CREATE TABLE approver_groups (
    org_id  text NOT NULL REFERENCES orgs (id),
    name    text NOT NULL CHECK (name ~ '^[a-z][a-z0-9-]{0,39}$'),
    version bigint NOT NULL DEFAULT nextval('profile_versions'),
    PRIMARY KEY (org_id, name)
);
CREATE TABLE approver_group_members (
    org_id     text NOT NULL,
    group_name text NOT NULL,
    person_id  text NOT NULL,
    PRIMARY KEY (org_id, group_name, person_id),
    FOREIGN KEY (org_id, group_name) REFERENCES approver_groups (org_id, name) ON DELETE CASCADE,
    FOREIGN KEY (org_id, person_id) REFERENCES people (org_id, id)
);

-- Zero and '' are no limit of the use's own. Amounts count ten-thousandths of the currency's unit, the finest a manifest can name.
ALTER TABLE profile_uses
    ADD COLUMN daily_actions integer NOT NULL DEFAULT 0 CHECK (daily_actions >= 0),
    ADD COLUMN daily_amount bigint NOT NULL DEFAULT 0 CHECK (daily_amount >= 0),
    ADD COLUMN daily_currency text NOT NULL DEFAULT '' CHECK (daily_currency ~ '^([A-Z]{3})?$'),
    ADD COLUMN approvers text,
    ADD COLUMN signatures smallint NOT NULL DEFAULT 1 CHECK (signatures BETWEEN 1 AND 5),
    ADD CONSTRAINT profile_uses_amount_has_currency CHECK ((daily_amount = 0) = (daily_currency = '')),
    ADD CONSTRAINT profile_uses_approvers FOREIGN KEY (org_id, approvers) REFERENCES approver_groups (org_id, name);
CREATE TABLE profile_quorums (
    org_id         text NOT NULL,
    profile        text NOT NULL,
    connection_key text NOT NULL,
    tool           text NOT NULL,
    signatures     smallint NOT NULL CHECK (signatures BETWEEN 1 AND 5),
    PRIMARY KEY (org_id, profile, connection_key, tool),
    FOREIGN KEY (org_id, profile, connection_key) REFERENCES profile_uses (org_id, profile, connection_key) ON DELETE CASCADE
);
-- An empty list allows nothing.
CREATE TABLE profile_resources (
    org_id         text NOT NULL,
    profile        text NOT NULL,
    connection_key text NOT NULL,
    setting        text NOT NULL,
    allowed        text[] NOT NULL,
    PRIMARY KEY (org_id, profile, connection_key, setting),
    FOREIGN KEY (org_id, profile, connection_key) REFERENCES profile_uses (org_id, profile, connection_key) ON DELETE CASCADE
);

ALTER TABLE actions
    ADD COLUMN approvers text, -- the group that decides; null: anybody who may
    ADD COLUMN signatures_needed smallint NOT NULL DEFAULT 1 CHECK (signatures_needed BETWEEN 1 AND 5),
    ADD COLUMN amount bigint CHECK (amount >= 0),
    ADD COLUMN currency text CHECK (currency ~ '^[A-Z]{3}$'),
    ADD COLUMN resource_setting text NOT NULL DEFAULT '', -- the setting that bounds what the call names; '' where none does
    ADD COLUMN resource_value text, -- what it names; null where it names nothing
    ADD CONSTRAINT actions_amount_has_currency CHECK ((amount IS NULL) = (currency IS NULL));
CREATE INDEX actions_open_of_group ON actions (org_id, approvers) WHERE approvers IS NOT NULL AND state IN ('staged', 'approved', 'executing', 'uncertain');

-- One person's signature under one action. It never changes, and nobody signs twice.
CREATE TABLE action_approvals (
    org_id      text NOT NULL,
    action_id   text NOT NULL,
    person_id   text NOT NULL,
    person_name text NOT NULL,
    args_digest text NOT NULL,
    version     integer NOT NULL,
    reason      text NOT NULL DEFAULT '',
    at          timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT action_approvals_once PRIMARY KEY (action_id, person_id),
    FOREIGN KEY (org_id, action_id) REFERENCES actions (org_id, id),
    FOREIGN KEY (org_id, person_id) REFERENCES people (org_id, id)
);

-- What of a day's limits is taken. most is the limit as it was at the last reservation: lowering it never breaks the row, it only stops
-- the next one.
CREATE TABLE budget_days (
    org_id        text NOT NULL REFERENCES orgs (id),
    profile       text NOT NULL,
    connection_id text NOT NULL,
    day           date NOT NULL, -- UTC, of staging
    measure       text NOT NULL CHECK (measure = 'actions' OR measure ~ '^[A-Z]{3}$'),
    used          bigint NOT NULL,
    most          bigint,
    PRIMARY KEY (org_id, profile, connection_id, day, measure),
    FOREIGN KEY (org_id, connection_id) REFERENCES connections (org_id, id),
    CONSTRAINT budget_days_hold CHECK (used >= 0 AND (most IS NULL OR used <= most))
);
INSERT INTO budget_days (org_id, profile, connection_id, day, measure, used)
SELECT org_id, profile, connection_id, (requested_at AT TIME ZONE 'UTC')::date, 'actions', count(*) FROM actions WHERE budget_held GROUP BY 1, 2, 3, 4;

-- +goose StatementBegin
CREATE FUNCTION actions_daily() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    on_day date := (NEW.requested_at AT TIME ZONE 'UTC')::date;
    limits record;
BEGIN
    IF TG_OP = 'INSERT' THEN
        SELECT u.daily_actions, u.daily_amount, u.daily_currency INTO limits FROM profile_uses u
         WHERE u.org_id = NEW.org_id AND u.profile = NEW.profile AND u.connection_key = NEW.connection_key;
        INSERT INTO budget_days AS b (org_id, profile, connection_id, day, measure, used, most)
        VALUES (NEW.org_id, NEW.profile, NEW.connection_id, on_day, 'actions', 1, nullif(limits.daily_actions, 0))
        ON CONFLICT (org_id, profile, connection_id, day, measure) DO UPDATE SET used = b.used + 1, most = excluded.most;
        IF NEW.amount IS NOT NULL THEN
            IF limits.daily_currency <> '' AND limits.daily_currency <> NEW.currency THEN
                RAISE EXCEPTION 'the amount of a day is in another currency' USING ERRCODE = 'check_violation', CONSTRAINT = 'budget_days_currency';
            END IF;
            INSERT INTO budget_days AS b (org_id, profile, connection_id, day, measure, used, most)
            VALUES (NEW.org_id, NEW.profile, NEW.connection_id, on_day, NEW.currency, NEW.amount, nullif(limits.daily_amount, 0))
            ON CONFLICT (org_id, profile, connection_id, day, measure) DO UPDATE SET used = b.used + excluded.used, most = excluded.most;
        END IF;
    ELSIF OLD.budget_held AND NOT NEW.budget_held THEN
        UPDATE budget_days SET used = used - 1
         WHERE org_id = NEW.org_id AND profile = NEW.profile AND connection_id = NEW.connection_id AND day = on_day AND measure = 'actions';
        UPDATE budget_days SET used = used - NEW.amount
         WHERE NEW.amount IS NOT NULL AND org_id = NEW.org_id AND profile = NEW.profile AND connection_id = NEW.connection_id AND day = on_day AND measure = NEW.currency;
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER actions_daily AFTER INSERT OR UPDATE ON actions FOR EACH ROW EXECUTE FUNCTION actions_daily();

-- +goose StatementBegin
CREATE FUNCTION actions_signed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        IF NEW.approvers IS NOT NULL THEN
            PERFORM FROM approver_groups g WHERE g.org_id = NEW.org_id AND g.name = NEW.approvers FOR KEY SHARE;
            IF NOT FOUND THEN
                RAISE EXCEPTION 'the group that is to decide does not exist' USING ERRCODE = 'integrity_constraint_violation';
            END IF;
        END IF;
        IF NEW.approved_by_policy AND (NEW.approvers IS NOT NULL OR NEW.signatures_needed > 1) THEN
            RAISE EXCEPTION 'policy does not sign for the people who are asked' USING ERRCODE = 'integrity_constraint_violation';
        END IF;
        RETURN NEW;
    END IF;
    IF (NEW.approvers, NEW.signatures_needed, NEW.amount, NEW.currency, NEW.resource_setting, NEW.resource_value)
        IS DISTINCT FROM (OLD.approvers, OLD.signatures_needed, OLD.amount, OLD.currency, OLD.resource_setting, OLD.resource_value) THEN
        RAISE EXCEPTION 'what was asked for never changes' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    -- One signature of anybody is also what a server of the version before writes, without a row here, while both run.
    IF OLD.state = 'staged' AND NEW.state = 'approved' AND (NEW.approvers IS NOT NULL OR NEW.signatures_needed > 1) THEN
        IF (SELECT count(*) FROM action_approvals s WHERE s.action_id = NEW.id AND s.args_digest = NEW.args_digest AND s.version = OLD.version) < NEW.signatures_needed
            OR NOT EXISTS (SELECT FROM action_approvals s WHERE s.action_id = NEW.id AND s.person_id = NEW.decided_by) THEN
            RAISE EXCEPTION 'fewer people have signed than were asked' USING ERRCODE = 'integrity_constraint_violation';
        END IF;
    END IF;
    IF OLD.state = 'staged' AND NEW.state = 'denied' AND NEW.approvers IS NOT NULL AND NOT EXISTS (
        SELECT FROM approver_group_members m WHERE m.org_id = NEW.org_id AND m.group_name = NEW.approvers AND m.person_id = NEW.decided_by) THEN
        RAISE EXCEPTION 'only the group that was asked decides' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER actions_signed BEFORE INSERT OR UPDATE ON actions FOR EACH ROW EXECUTE FUNCTION actions_signed();

-- +goose StatementBegin
CREATE FUNCTION action_approvals_guard() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    a actions%ROWTYPE;
BEGIN
    IF TG_OP <> 'INSERT' THEN
        RAISE EXCEPTION 'a signature never changes' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    SELECT * INTO a FROM actions x WHERE x.id = NEW.action_id FOR NO KEY UPDATE;
    IF NOT FOUND OR a.state <> 'staged' OR a.version <> NEW.version OR a.args_digest <> NEW.args_digest THEN
        RAISE EXCEPTION 'a signature belongs to the bytes that wait for it' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    IF NEW.person_id IN (a.on_behalf_of, a.token_owner) THEN
        RAISE EXCEPTION 'nobody countersigns their own' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    IF NOT EXISTS (SELECT FROM people p WHERE p.org_id = NEW.org_id AND p.id = NEW.person_id AND p.active AND p.roles && ARRAY ['owner', 'approver']) THEN
        RAISE EXCEPTION 'only an active approver or owner signs' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    IF a.approvers IS NOT NULL AND NOT EXISTS (
        SELECT FROM approver_group_members m WHERE m.org_id = NEW.org_id AND m.group_name = a.approvers AND m.person_id = NEW.person_id) THEN
        RAISE EXCEPTION 'only the group that was asked signs' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER action_approvals_guard BEFORE INSERT OR UPDATE OR DELETE ON action_approvals FOR EACH ROW EXECUTE FUNCTION action_approvals_guard();

-- A group that was asked stays until nothing waits for it: made again under its name, it would be other people.
-- +goose StatementBegin
CREATE FUNCTION approver_groups_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM actions a WHERE a.org_id = OLD.org_id AND a.approvers = OLD.name AND a.state IN ('staged', 'approved', 'executing', 'uncertain')) THEN
        RAISE EXCEPTION 'something waits for this group' USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'approver_groups_asked';
    END IF;
    RETURN OLD;
END $$;
-- +goose StatementEnd
CREATE TRIGGER approver_groups_guard BEFORE DELETE ON approver_groups FOR EACH ROW EXECUTE FUNCTION approver_groups_guard();

ALTER TABLE approver_groups ENABLE ROW LEVEL SECURITY;
ALTER TABLE approver_group_members ENABLE ROW LEVEL SECURITY;
ALTER TABLE profile_quorums ENABLE ROW LEVEL SECURITY;
ALTER TABLE profile_resources ENABLE ROW LEVEL SECURITY;
ALTER TABLE action_approvals ENABLE ROW LEVEL SECURITY;
ALTER TABLE budget_days ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_org ON approver_groups USING (org_id = current_org());
CREATE POLICY own_org ON approver_group_members USING (org_id = current_org());
CREATE POLICY own_org ON profile_quorums USING (org_id = current_org());
CREATE POLICY own_org ON profile_resources USING (org_id = current_org());
CREATE POLICY own_org ON action_approvals USING (org_id = current_org());
CREATE POLICY own_org ON budget_days USING (org_id = current_org());

GRANT SELECT, INSERT, UPDATE (version), DELETE ON approver_groups TO countersign_app;
GRANT SELECT, INSERT, DELETE ON approver_group_members, profile_quorums, profile_resources TO countersign_app;
GRANT SELECT, INSERT ON action_approvals TO countersign_app;
GRANT SELECT, INSERT, UPDATE (used, most) ON budget_days TO countersign_app;

-- +goose Down
DROP TRIGGER actions_signed ON actions;
DROP TRIGGER actions_daily ON actions;
DROP TABLE budget_days, action_approvals, profile_resources, profile_quorums;
ALTER TABLE actions DROP COLUMN approvers, DROP COLUMN signatures_needed, DROP COLUMN amount, DROP COLUMN currency, DROP COLUMN resource_setting, DROP COLUMN resource_value;
ALTER TABLE profile_uses DROP COLUMN daily_actions, DROP COLUMN daily_amount, DROP COLUMN daily_currency, DROP COLUMN approvers, DROP COLUMN signatures;
DROP TABLE approver_group_members, approver_groups;
DROP FUNCTION approver_groups_guard(), action_approvals_guard(), actions_signed(), actions_daily();
