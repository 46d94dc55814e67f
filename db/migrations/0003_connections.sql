-- Connections of an organization, their sealed credentials, what their upstream lists, and the snapshot a person granted.

-- +goose Up

CREATE TABLE connections (
    id               text PRIMARY KEY,
    org_id           text NOT NULL REFERENCES orgs (id),
    -- Unique for ever and over all organizations: a retired connection keeps its row, so nobody can ever be given its key again.
    key              text NOT NULL CONSTRAINT connections_key_unique UNIQUE CHECK (key ~ '^[a-z][a-z0-9-]{0,19}-[a-z2-7]{6}$'),
    integration      text NOT NULL,
    kind             text NOT NULL CHECK (kind IN ('hosted', 'direct', 'remote', 'stdio', 'cli', 'git')),
    runtime          text NOT NULL,
    release_digest   text NOT NULL REFERENCES releases (digest),
    name             text NOT NULL,
    state            text NOT NULL CHECK (state IN ('active', 'disconnected', 'needs_consent', 'retired')),
    mode             text NOT NULL DEFAULT '' CHECK (mode IN ('', 'read_only', 'ask_user_on_write', 'autonomous')),
    snapshot_version integer NOT NULL DEFAULT 0 CHECK (snapshot_version >= 0),
    version          integer NOT NULL DEFAULT 1 CHECK (version >= 1),
    destination      text NOT NULL,
    contract         text NOT NULL,
    tested_at        timestamptz,
    healthy          boolean NOT NULL DEFAULT false,
    found            text NOT NULL DEFAULT '',
    trouble          text NOT NULL DEFAULT '',
    remedy           text NOT NULL DEFAULT '',
    health_since     timestamptz,
    created_by       text NOT NULL,
    created_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    retired_at       timestamptz,
    UNIQUE (org_id, id),
    CHECK ((state = 'retired') = (retired_at IS NOT NULL))
);
CREATE INDEX connections_of_org ON connections (org_id, name);

-- Non-secret choices of a connection.
CREATE TABLE connection_settings (
    org_id        text NOT NULL,
    connection_id text NOT NULL,
    name          text NOT NULL,
    value         text NOT NULL,
    PRIMARY KEY (connection_id, name),
    FOREIGN KEY (org_id, connection_id) REFERENCES connections (org_id, id)
);

-- Ciphertext only. It opens nowhere but at its organization, connection, field, origin and version.
CREATE TABLE credentials (
    org_id        text NOT NULL,
    connection_id text NOT NULL,
    field         text NOT NULL,
    version       bigint NOT NULL CHECK (version >= 1),
    sealed        bytea NOT NULL,
    origin        text NOT NULL,
    fingerprint   text NOT NULL,
    last4         text NOT NULL,
    created_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (connection_id, version, field),
    FOREIGN KEY (org_id, connection_id) REFERENCES connections (org_id, id)
);

-- What the upstream lists now. It grants nothing.
CREATE TABLE observed_tools (
    org_id        text NOT NULL,
    connection_id text NOT NULL,
    tool          text NOT NULL,
    title         text NOT NULL,
    description   text NOT NULL,
    digest        text NOT NULL,
    recipe        integer NOT NULL,
    raw           bytea NOT NULL,
    read_only     smallint NOT NULL,
    destructive   smallint NOT NULL,
    problem       text NOT NULL,
    first_seen    timestamptz NOT NULL DEFAULT clock_timestamp(),
    seen_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (connection_id, tool),
    FOREIGN KEY (org_id, connection_id) REFERENCES connections (org_id, id)
);

-- The snapshot: what a person granted, with the very bytes that person accepted.
CREATE TABLE pinned_tools (
    org_id        text NOT NULL,
    connection_id text NOT NULL,
    tool          text NOT NULL,
    digest        text NOT NULL,
    recipe        integer NOT NULL,
    effect        text NOT NULL CHECK (effect IN ('read', 'consequential')),
    destructive   boolean NOT NULL CHECK (NOT destructive OR effect = 'consequential'),
    raw           bytea NOT NULL,
    PRIMARY KEY (connection_id, tool),
    FOREIGN KEY (org_id, connection_id) REFERENCES connections (org_id, id)
);

-- +goose StatementBegin
CREATE FUNCTION connections_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        RAISE EXCEPTION 'a connection is retired, never deleted: its key must not come back' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    IF OLD.state = 'retired' THEN
        RAISE EXCEPTION 'a retired connection never changes' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    IF (NEW.id, NEW.org_id, NEW.key, NEW.integration, NEW.kind, NEW.runtime, NEW.release_digest, NEW.destination, NEW.created_by, NEW.created_at)
        IS DISTINCT FROM (OLD.id, OLD.org_id, OLD.key, OLD.integration, OLD.kind, OLD.runtime, OLD.release_digest, OLD.destination, OLD.created_by, OLD.created_at) THEN
        RAISE EXCEPTION 'what a connection is and where it leads never changes' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    IF NEW.version NOT IN (OLD.version, OLD.version + 1) OR NEW.snapshot_version NOT IN (OLD.snapshot_version, OLD.snapshot_version + 1) THEN
        RAISE EXCEPTION 'versions grow by one' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    IF NEW.version = OLD.version AND (NEW.state, NEW.mode, NEW.snapshot_version, NEW.name, NEW.contract)
        IS DISTINCT FROM (OLD.state, OLD.mode, OLD.snapshot_version, OLD.name, OLD.contract) THEN
        RAISE EXCEPTION 'a change needs a new version' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER connections_guard BEFORE UPDATE OR DELETE ON connections FOR EACH ROW EXECUTE FUNCTION connections_guard();

-- A token refresh that was under way when somebody disconnected must not bring a credential back.
-- +goose StatementBegin
CREATE FUNCTION credentials_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM connections c WHERE c.id = NEW.connection_id AND c.state IN ('active', 'needs_consent') FOR SHARE) THEN
        RAISE EXCEPTION 'a connection that was ended holds no credential' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER credentials_guard BEFORE INSERT OR UPDATE ON credentials FOR EACH ROW EXECUTE FUNCTION credentials_guard();

ALTER TABLE connections ENABLE ROW LEVEL SECURITY;
ALTER TABLE connection_settings ENABLE ROW LEVEL SECURITY;
ALTER TABLE credentials ENABLE ROW LEVEL SECURITY;
ALTER TABLE observed_tools ENABLE ROW LEVEL SECURITY;
ALTER TABLE pinned_tools ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_org ON connections USING (org_id = current_org());
CREATE POLICY own_org ON connection_settings USING (org_id = current_org());
CREATE POLICY own_org ON credentials USING (org_id = current_org());
CREATE POLICY own_org ON observed_tools USING (org_id = current_org());
CREATE POLICY own_org ON pinned_tools USING (org_id = current_org());

GRANT SELECT, INSERT, UPDATE ON connections TO countersign_app;
GRANT SELECT, INSERT ON connection_settings TO countersign_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON credentials, observed_tools TO countersign_app;
GRANT SELECT, INSERT, DELETE ON pinned_tools TO countersign_app;

-- +goose Down
DROP TABLE pinned_tools, observed_tools, credentials, connection_settings, connections;
DROP FUNCTION connections_guard(), credentials_guard();
