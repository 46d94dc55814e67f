-- The ledger of the day counts where a limit is, and nowhere else. Its row stays locked until the commit of whoever counted is durable, so
-- a row that bounds nothing would make all agents of one profile stage one after the other. And a call is found by its key, not by its run.

-- +goose Up

-- Of a run's few actions the key's index finds all. Beside it, a plan made while the table was small would read them all for each key.
DROP INDEX actions_of_run;

-- What came to an end lately, for the overview.
CREATE INDEX actions_ended ON actions (org_id, finished_at DESC, id DESC) WHERE finished_at IS NOT NULL;

-- How long a lost call may still be applied is part of the intent to send it, so that it holds whoever finds the loss.
ALTER TABLE dispatches ADD COLUMN settle interval NOT NULL DEFAULT '5 minutes' CHECK (settle > interval '0');

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION actions_daily() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    on_day date := (NEW.requested_at AT TIME ZONE 'UTC')::date;
    limits record;
BEGIN
    IF TG_OP = 'INSERT' THEN
        SELECT u.daily_actions, u.daily_amount, u.daily_currency INTO limits FROM profile_uses u
         WHERE u.org_id = NEW.org_id AND u.profile = NEW.profile AND u.connection_key = NEW.connection_key;
        IF limits.daily_actions > 0 THEN
            INSERT INTO budget_days AS b (org_id, profile, connection_id, day, measure, used, most)
            VALUES (NEW.org_id, NEW.profile, NEW.connection_id, on_day, 'actions', 1, limits.daily_actions)
            ON CONFLICT (org_id, profile, connection_id, day, measure) DO UPDATE SET used = b.used + 1, most = excluded.most;
        END IF;
        IF limits.daily_amount > 0 AND NEW.amount IS NOT NULL THEN
            IF limits.daily_currency <> NEW.currency THEN
                RAISE EXCEPTION 'the amount of a day is in another currency' USING ERRCODE = 'check_violation', CONSTRAINT = 'budget_days_currency';
            END IF;
            INSERT INTO budget_days AS b (org_id, profile, connection_id, day, measure, used, most)
            VALUES (NEW.org_id, NEW.profile, NEW.connection_id, on_day, NEW.currency, NEW.amount, limits.daily_amount)
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

-- A limit that is set in the middle of a day counts what the day has taken, and one that is lifted leaves no row that nobody keeps. The
-- switch keeps everybody who stages waiting meanwhile; the rows of the day are locked against those who give a place back just now.
-- +goose StatementBegin
CREATE FUNCTION open_ledger() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    of_use profile_uses := coalesce(NEW, OLD);
    of_connection text;
    today date;
BEGIN
    PERFORM press_switch(of_use.org_id);
    SELECT c.id INTO of_connection FROM connections c WHERE c.org_id = of_use.org_id AND c.key = of_use.connection_key;
    DELETE FROM budget_days b WHERE b.org_id = of_use.org_id AND b.profile = of_use.profile AND b.connection_id = of_connection;
    IF TG_OP = 'DELETE' OR of_connection IS NULL OR (NEW.daily_actions = 0 AND NEW.daily_amount = 0) THEN
        RETURN NULL;
    END IF;
    today := (clock_timestamp() AT TIME ZONE 'UTC')::date;
    WITH taken AS (
        SELECT a.amount, a.currency FROM actions a
         WHERE a.org_id = NEW.org_id AND a.profile = NEW.profile AND a.connection_id = of_connection AND a.budget_held
           AND a.requested_at >= today::timestamp AT TIME ZONE 'UTC' FOR SHARE
    )
    INSERT INTO budget_days (org_id, profile, connection_id, day, measure, used)
    SELECT NEW.org_id, NEW.profile, of_connection, today, 'actions', count(*) FROM taken WHERE NEW.daily_actions > 0 HAVING count(*) > 0
    UNION ALL
    SELECT NEW.org_id, NEW.profile, of_connection, today, NEW.daily_currency, sum(t.amount) FROM taken t
     WHERE NEW.daily_amount > 0 AND t.currency = NEW.daily_currency HAVING count(*) > 0;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER profile_uses_open_ledger AFTER INSERT OR DELETE OR UPDATE OF daily_actions, daily_amount, daily_currency ON profile_uses
    FOR EACH ROW EXECUTE FUNCTION open_ledger();

-- What was counted without a limit.
DELETE FROM budget_days b WHERE NOT EXISTS (
    SELECT FROM profile_uses u JOIN connections c ON c.org_id = u.org_id AND c.key = u.connection_key
     WHERE u.org_id = b.org_id AND u.profile = b.profile AND c.id = b.connection_id
       AND CASE WHEN b.measure = 'actions' THEN u.daily_actions > 0 ELSE u.daily_amount > 0 AND u.daily_currency = b.measure END);
