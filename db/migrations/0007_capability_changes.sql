-- Replicas remember what a run may do. Whatever that follows from says so when it changes: to the replicas by one notification of the
-- organization (PostgreSQL sends equal ones of a transaction once), and to the changing session by a notice, so that it can wait until
-- they have heard. The statements of staging and of claiming fire none of these triggers: a transaction that notifies commits alone.

-- +goose Up

-- +goose StatementBegin
CREATE FUNCTION capability_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('countersign_capability', COALESCE(NEW.org_id, OLD.org_id));
    RAISE NOTICE 'a capability changed' USING ERRCODE = 'CS001';
    RETURN NULL;
END $$;
-- +goose StatementEnd

-- The same for changes of many rows at once.
-- +goose StatementBegin
CREATE FUNCTION capabilities_changed() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    org text;
BEGIN
    FOR org IN SELECT DISTINCT c.org_id FROM changed c LOOP
        PERFORM pg_notify('countersign_capability', org);
        RAISE NOTICE 'a capability changed' USING ERRCODE = 'CS001';
    END LOOP;
    RETURN NULL;
END $$;
-- +goose StatementEnd

CREATE TRIGGER runs_change_capabilities AFTER UPDATE OF ended_at, expires_at, profile, token_hash ON runs
    FOR EACH ROW EXECUTE FUNCTION capability_changed();
CREATE TRIGGER connections_change_capabilities AFTER UPDATE OF state, mode, snapshot_version, version, name, contract ON connections
    FOR EACH ROW EXECUTE FUNCTION capability_changed();
CREATE TRIGGER people_change_capabilities AFTER UPDATE OF active, roles ON people
    FOR EACH ROW EXECUTE FUNCTION capability_changed();

-- Rows of these come and go many at once. A trigger with a transition table is for one kind of change only.
-- +goose StatementBegin
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY ['pinned_tools', 'profile_uses', 'profile_resources'] LOOP
        EXECUTE format('CREATE TRIGGER %I AFTER INSERT ON %I REFERENCING NEW TABLE AS changed
            FOR EACH STATEMENT EXECUTE FUNCTION capabilities_changed()', name || '_change_capabilities_by_insert', name);
        EXECUTE format('CREATE TRIGGER %I AFTER UPDATE ON %I REFERENCING NEW TABLE AS changed
            FOR EACH STATEMENT EXECUTE FUNCTION capabilities_changed()', name || '_change_capabilities_by_update', name);
        EXECUTE format('CREATE TRIGGER %I AFTER DELETE ON %I REFERENCING OLD TABLE AS changed
            FOR EACH STATEMENT EXECUTE FUNCTION capabilities_changed()', name || '_change_capabilities_by_delete', name);
    END LOOP;
END $$;
-- +goose StatementEnd

CREATE TRIGGER profiles_change_capabilities AFTER UPDATE OR DELETE ON profiles
    FOR EACH ROW EXECUTE FUNCTION capability_changed();

-- +goose Down
DROP FUNCTION capabilities_changed(), capability_changed() CASCADE; -- and their triggers
