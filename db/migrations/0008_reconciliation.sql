-- What is found out about actions whose outcome nobody knows: the reads people made, and where the automatic ones stand. Nothing here
-- changes an action; settling one is a transition like any other.

-- +goose Up

CREATE TABLE look_ups (
    id         text PRIMARY KEY,
    org_id     text NOT NULL,
    action_id  text NOT NULL,
    at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    by_id      text NOT NULL REFERENCES people (id),
    by_name    text NOT NULL,
    tool       text NOT NULL,
    arguments  bytea NOT NULL CHECK (octet_length(arguments) <= 1048576),
    seen       text NOT NULL CHECK (octet_length(seen) <= 65536), -- the provider's words, as untrusted as any
    not_kept   integer NOT NULL CHECK (not_kept >= 0),
    is_error   boolean NOT NULL,
    FOREIGN KEY (org_id, action_id) REFERENCES actions (org_id, id)
);
CREATE INDEX look_ups_of_action ON look_ups (action_id, at DESC, id DESC);

CREATE TABLE probes (
    action_id text PRIMARY KEY,
    org_id    text NOT NULL,
    attempts  integer NOT NULL DEFAULT 1,
    last_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    next_at   timestamptz NOT NULL,
    sentence  text NOT NULL DEFAULT '',
    FOREIGN KEY (org_id, action_id) REFERENCES actions (org_id, id)
);

-- The pause after the nth probe: 4 seconds, doubled each time, at most ten minutes. It is longer than a read may take at first and covers a
-- reconciler that dies in its turn.
CREATE FUNCTION probe_pause(n integer) RETURNS interval LANGUAGE sql IMMUTABLE AS $$
    SELECT least(interval '4 seconds' * power(2, least(n, 20) - 1), interval '10 minutes')
$$;

-- +goose StatementBegin
CREATE FUNCTION look_ups_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        RAISE EXCEPTION 'what was seen never changes' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    PERFORM FROM actions a WHERE a.org_id = NEW.org_id AND a.id = NEW.action_id AND a.state = 'uncertain' FOR SHARE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'only an uncertain action is looked into' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER look_ups_guard BEFORE INSERT OR UPDATE OR DELETE ON look_ups FOR EACH ROW EXECUTE FUNCTION look_ups_guard();

CREATE FUNCTION each_action_to_probe(most integer) RETURNS TABLE (org text, action text) LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
    SELECT a.org_id, a.id FROM actions a LEFT JOIN probes p ON p.action_id = a.id
     WHERE a.state = 'uncertain' AND (p.next_at IS NULL OR p.next_at <= clock_timestamp()) ORDER BY coalesce(p.next_at, a.claimed_at), a.id LIMIT most
$$;
REVOKE ALL ON FUNCTION each_action_to_probe(integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION each_action_to_probe(integer) TO countersign_app;

ALTER TABLE look_ups ENABLE ROW LEVEL SECURITY;
ALTER TABLE probes ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_org ON look_ups USING (org_id = current_org());
CREATE POLICY own_org ON probes USING (org_id = current_org());
GRANT SELECT, INSERT ON look_ups TO countersign_app;
GRANT SELECT, INSERT, UPDATE ON probes TO countersign_app;

-- +goose Down
DROP FUNCTION each_action_to_probe(integer);
DROP TABLE probes, look_ups;
DROP FUNCTION look_ups_guard(), probe_pause(integer);
