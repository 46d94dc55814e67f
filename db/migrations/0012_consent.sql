-- What people allowed connections at authorization servers, and consents that are under way. Tokens are sealed in credentials, under the
-- version a consent names; nothing here opens anything.

-- +goose Up

CREATE TABLE consents (
    connection_id      text PRIMARY KEY,
    org_id             text NOT NULL,
    -- Drawn with each consent: versions of credentials begin anew after a disconnect, and what was begun under one consent must not end another.
    id                 text NOT NULL,
    issuer             text NOT NULL,
    authorize_url      text NOT NULL,
    token_url          text NOT NULL,
    revoke_url         text NOT NULL,
    resource           text NOT NULL,
    client_identity    text NOT NULL CHECK (client_identity IN ('registered', 'document', 'dynamic')),
    client_id          text NOT NULL,
    client_auth        text NOT NULL CHECK (client_auth IN ('none', 'client_secret_basic', 'client_secret_post')),
    asked              text[] NOT NULL,
    granted            text[] NOT NULL,
    person_id          text NOT NULL REFERENCES people (id),
    person_name        text NOT NULL,
    given_at           timestamptz NOT NULL DEFAULT clock_timestamp(),
    lost               text NOT NULL DEFAULT '',
    credential_version bigint NOT NULL CHECK (credential_version >= 1),
    issued_at          timestamptz NOT NULL,
    expires_at         timestamptz,
    renews             boolean NOT NULL,
    -- The lease of the one renewal: a refresh token may be sent once, and whoever sent it must have time to store what it brought.
    renewing_by        text NOT NULL DEFAULT '',
    renewing_until     timestamptz,
    refused            text[] NOT NULL DEFAULT '{}',
    FOREIGN KEY (org_id, connection_id) REFERENCES connections (org_id, id)
);
CREATE INDEX consents_of_person ON consents (org_id, person_id);
CREATE INDEX consents_of_client ON consents (org_id, client_id);

CREATE TABLE consent_requests (
    state           bytea PRIMARY KEY CHECK (octet_length(state) = 32), -- a digest
    org_id          text NOT NULL,
    connection_id   text NOT NULL,
    connection_key  text NOT NULL,
    person_id       text NOT NULL REFERENCES people (id),
    session         bytea NOT NULL,
    issuer          text NOT NULL,
    authorize_url   text NOT NULL,
    token_url       text NOT NULL,
    revoke_url      text NOT NULL,
    resource        text NOT NULL,
    names_issue     boolean NOT NULL,
    client_identity text NOT NULL,
    client_id       text NOT NULL,
    client_auth     text NOT NULL,
    client_secret   bytea NOT NULL,
    verifier        bytea NOT NULL,
    asked           text[] NOT NULL,
    expires_at      timestamptz NOT NULL,
    FOREIGN KEY (org_id, connection_id) REFERENCES connections (org_id, id)
);
CREATE INDEX consent_requests_over ON consent_requests (org_id, expires_at);

-- A consent belongs to a connection that is made by consent and lives, like its tokens.
-- +goose StatementBegin
CREATE FUNCTION consents_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' OR NEW.id <> OLD.id THEN
        IF NOT EXISTS (SELECT FROM connections c WHERE c.id = NEW.connection_id AND c.contract = 'oauth2' AND c.state IN ('active', 'needs_consent') FOR SHARE) THEN
            RAISE EXCEPTION 'a connection that was ended, or proves itself in another way, holds no consent' USING ERRCODE = 'integrity_constraint_violation';
        END IF;
    ELSE
        IF (NEW.org_id, NEW.issuer, NEW.authorize_url, NEW.token_url, NEW.revoke_url, NEW.resource, NEW.client_identity, NEW.client_id, NEW.client_auth, NEW.person_id)
            IS DISTINCT FROM (OLD.org_id, OLD.issuer, OLD.authorize_url, OLD.token_url, OLD.revoke_url, OLD.resource, OLD.client_identity, OLD.client_id, OLD.client_auth, OLD.person_id) THEN
            RAISE EXCEPTION 'where a consent was given and by whom never changes: another one is given' USING ERRCODE = 'integrity_constraint_violation';
        END IF;
        IF NEW.credential_version NOT IN (OLD.credential_version, OLD.credential_version + 1) THEN
            RAISE EXCEPTION 'a consent is renewed one version at a time' USING ERRCODE = 'integrity_constraint_violation';
        END IF;
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER consents_guard BEFORE INSERT OR UPDATE ON consents FOR EACH ROW EXECUTE FUNCTION consents_guard();

ALTER TABLE consents ENABLE ROW LEVEL SECURITY;
ALTER TABLE consent_requests ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_org ON consents USING (org_id = current_org());
CREATE POLICY own_org ON consent_requests USING (org_id = current_org());
GRANT SELECT, INSERT, UPDATE, DELETE ON consents TO countersign_app;
GRANT SELECT, INSERT, DELETE ON consent_requests TO countersign_app;

-- +goose Down
DROP TABLE consent_requests, consents;
DROP FUNCTION consents_guard();
