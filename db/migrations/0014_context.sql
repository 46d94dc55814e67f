-- The context of an organization: preferences.toml, whole, one row a revision. Nothing else in the database reads it: no state of a
-- connection follows from these words.

-- +goose Up

CREATE TABLE context_revisions (
    org_id     text NOT NULL REFERENCES orgs (id),
    revision   bigint NOT NULL CHECK (revision >= 1),
    text       text NOT NULL CHECK (octet_length(text) BETWEEN 1 AND 131072),
    how        text NOT NULL CHECK (how IN ('written', 'filled', 'restored', 'pushed')),
    actor_kind text NOT NULL,
    actor_id   text NOT NULL,
    actor_name text NOT NULL,
    saved_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (org_id, revision)
);

-- +goose StatementBegin
CREATE FUNCTION context_revisions_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        RAISE EXCEPTION 'a revision never changes' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    IF NEW.revision <> 1 + coalesce((SELECT max(c.revision) FROM context_revisions c WHERE c.org_id = NEW.org_id), 0) THEN
        RAISE EXCEPTION 'revisions follow each other' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER context_revisions_guard BEFORE INSERT OR UPDATE OR DELETE ON context_revisions FOR EACH ROW EXECUTE FUNCTION context_revisions_guard();

ALTER TABLE context_revisions ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_org ON context_revisions USING (org_id = current_org());
GRANT SELECT, INSERT ON context_revisions TO countersign_app;

-- +goose Down
DROP TABLE context_revisions;
DROP FUNCTION context_revisions_guard();
