-- Organizations, the people in them, how they get in, what they publish, and the trail of what they did.
-- The server works as countersign_app, which owns nothing: row-level security shows it one organization at a time, and the functions
-- named find_… and each_… are the only way to look across, each answering the least that its caller needs.

-- +goose Up

-- +goose StatementBegin
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'countersign_app') THEN
        CREATE ROLE countersign_app NOLOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOBYPASSRLS;
    END IF;
EXCEPTION WHEN duplicate_object OR unique_violation THEN
    NULL; -- another database of this cluster is being migrated at the same moment
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
DO $$
BEGIN
    IF NOT pg_has_role(current_user, 'countersign_app', 'MEMBER') THEN
        EXECUTE format('GRANT countersign_app TO %I', current_user);
    END IF;
END $$;
-- +goose StatementEnd

GRANT USAGE ON SCHEMA public TO countersign_app;

-- The organization of this transaction; null outside one, and null equals nothing.
-- +goose StatementBegin
CREATE FUNCTION current_org() RETURNS text LANGUAGE sql STABLE PARALLEL SAFE
AS $$ SELECT nullif(current_setting('countersign.org', true), '') $$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'rows of % never change', TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation';
END $$;
-- +goose StatementEnd

-- ---------------------------------------------------------------------------------------------------------------------------
-- Organizations and people

CREATE TABLE orgs (
    id         text PRIMARY KEY,
    slug       text NOT NULL UNIQUE CHECK (slug ~ '^[a-z][a-z0-9-]{0,39}$'),
    name       text NOT NULL CHECK (name <> ''),
    created_at timestamptz NOT NULL DEFAULT now()
);
ALTER TABLE orgs ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_org ON orgs USING (id = current_org());
GRANT SELECT, INSERT ON orgs TO countersign_app;

CREATE TABLE people (
    id                text PRIMARY KEY,
    org_id            text NOT NULL REFERENCES orgs (id),
    email             text NOT NULL UNIQUE CHECK (email = lower(email) AND email <> ''),
    name              text NOT NULL DEFAULT '',
    roles             text[] NOT NULL CHECK (cardinality(roles) > 0 AND roles <@ ARRAY ['owner', 'admin', 'approver', 'auditor', 'member']),
    active            boolean NOT NULL DEFAULT true,
    password_hash     text NOT NULL DEFAULT '',
    created_at        timestamptz NOT NULL DEFAULT now(),
    last_signed_in_at timestamptz,
    UNIQUE (org_id, id)
);
ALTER TABLE people ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_org ON people USING (org_id = current_org());
GRANT SELECT, INSERT, UPDATE (name, roles, active, password_hash, last_signed_in_at) ON people TO countersign_app;

-- Two owners who demote each other at the same moment must not both succeed: the lock makes the second one look after the first
-- has committed.
-- +goose StatementBegin
CREATE FUNCTION keep_an_owner() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(1, hashtext(OLD.org_id));
    IF NOT EXISTS (SELECT FROM people WHERE org_id = OLD.org_id AND id <> OLD.id AND active AND 'owner' = ANY (roles)) THEN
        RAISE EXCEPTION 'the last active owner stays' USING ERRCODE = 'check_violation', CONSTRAINT = 'people_keep_an_owner';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER people_keep_an_owner BEFORE UPDATE OF roles, active ON people FOR EACH ROW
    WHEN (OLD.active AND 'owner' = ANY (OLD.roles) AND NOT (NEW.active AND 'owner' = ANY (NEW.roles)))
    EXECUTE FUNCTION keep_an_owner();

CREATE TABLE invitations (
    link_hash  bytea PRIMARY KEY,
    org_id     text NOT NULL,
    person_id  text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL,
    used_at    timestamptz,
    FOREIGN KEY (org_id, person_id) REFERENCES people (org_id, id)
);
CREATE INDEX invitations_by_person ON invitations (person_id) WHERE used_at IS NULL;
ALTER TABLE invitations ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_org ON invitations USING (org_id = current_org());
GRANT SELECT, INSERT, DELETE, UPDATE (used_at) ON invitations TO countersign_app;

CREATE TABLE sessions (
    hash       bytea PRIMARY KEY,
    org_id     text NOT NULL,
    person_id  text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    used_at    timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL,
    flash      bytea NOT NULL DEFAULT '',
    FOREIGN KEY (org_id, person_id) REFERENCES people (org_id, id)
);
CREATE INDEX sessions_by_person ON sessions (person_id);
CREATE INDEX sessions_by_end ON sessions (expires_at);
ALTER TABLE sessions ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_org ON sessions USING (org_id = current_org());
GRANT SELECT, INSERT, DELETE ON sessions TO countersign_app;

-- An attempt belongs to no organization yet. Subjects are hashes: people type passwords into the email field.
CREATE TABLE sign_in_attempts (
    id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    subject bytea NOT NULL,
    at      timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX sign_in_attempts_by_subject ON sign_in_attempts (subject, at);
CREATE INDEX sign_in_attempts_by_time ON sign_in_attempts (at);
GRANT SELECT, INSERT, DELETE ON sign_in_attempts TO countersign_app;

CREATE TABLE service_tokens (
    id           text PRIMARY KEY,
    org_id       text NOT NULL,
    name         text NOT NULL CHECK (name <> ''),
    scopes       text[] NOT NULL CHECK (cardinality(scopes) > 0),
    owner_id     text NOT NULL,
    hash         bytea NOT NULL UNIQUE,
    last_four    text NOT NULL,
    created_at   timestamptz NOT NULL DEFAULT now(),
    expires_at   timestamptz NOT NULL,
    last_used_at timestamptz,
    revoked_at   timestamptz,
    UNIQUE (org_id, id),
    FOREIGN KEY (org_id, owner_id) REFERENCES people (org_id, id)
);
ALTER TABLE service_tokens ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_org ON service_tokens USING (org_id = current_org());
GRANT SELECT, INSERT, UPDATE (revoked_at) ON service_tokens TO countersign_app;

-- ---------------------------------------------------------------------------------------------------------------------------
-- Profiles

-- Versions come from one sequence: a profile that was removed and made again never has a version that an old page still holds.
CREATE SEQUENCE profile_versions;
GRANT USAGE ON SEQUENCE profile_versions TO countersign_app;

CREATE TABLE profiles (
    org_id     text NOT NULL REFERENCES orgs (id),
    name       text NOT NULL,
    department text NOT NULL DEFAULT '',
    budget     integer NOT NULL CHECK (budget >= 0),
    version    bigint NOT NULL DEFAULT nextval('profile_versions'),
    PRIMARY KEY (org_id, name)
);
ALTER TABLE profiles ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_org ON profiles USING (org_id = current_org());
GRANT SELECT, INSERT, UPDATE, DELETE ON profiles TO countersign_app;

-- A null mode is the connection's own; null tools are all that the connection grants, an empty list is none.
CREATE TABLE profile_uses (
    org_id         text NOT NULL,
    profile        text NOT NULL,
    connection_key text NOT NULL,
    position       integer NOT NULL,
    mode           text,
    tools          text[],
    PRIMARY KEY (org_id, profile, connection_key),
    FOREIGN KEY (org_id, profile) REFERENCES profiles (org_id, name) ON DELETE CASCADE
);
CREATE INDEX profile_uses_by_connection ON profile_uses (org_id, connection_key);
ALTER TABLE profile_uses ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_org ON profile_uses USING (org_id = current_org());
GRANT SELECT, INSERT, DELETE ON profile_uses TO countersign_app;

-- ---------------------------------------------------------------------------------------------------------------------------
-- Releases: the same for every organization, and never changed

CREATE TABLE releases (
    digest       text PRIMARY KEY CHECK (digest ~ '^sha256:[0-9a-f]{64}$'),
    published_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    file_count   integer NOT NULL
);
CREATE TRIGGER releases_never_change BEFORE UPDATE OR DELETE OR TRUNCATE ON releases EXECUTE FUNCTION refuse_change();
GRANT SELECT, INSERT ON releases TO countersign_app;

CREATE TABLE release_files (
    digest text NOT NULL REFERENCES releases (digest) DEFERRABLE INITIALLY DEFERRED,
    name   text NOT NULL,
    data   bytea NOT NULL,
    PRIMARY KEY (digest, name)
);
CREATE TRIGGER release_files_never_change BEFORE UPDATE OR DELETE OR TRUNCATE ON release_files EXECUTE FUNCTION refuse_change();
GRANT SELECT, INSERT ON release_files TO countersign_app;

-- Files are stored before their release: once that row exists nothing can be slipped into it.
-- +goose StatementBegin
CREATE FUNCTION refuse_late_file() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM releases WHERE digest = NEW.digest) THEN
        RAISE EXCEPTION 'release % is complete', NEW.digest USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER release_files_none_late BEFORE INSERT ON release_files FOR EACH ROW EXECUTE FUNCTION refuse_late_file();

-- Which release is current is a choice that changes; the last row is the present one.
CREATE TABLE release_choices (
    id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    digest text NOT NULL REFERENCES releases (digest),
    at     timestamptz NOT NULL DEFAULT clock_timestamp()
);
GRANT SELECT, INSERT ON release_choices TO countersign_app;

-- ---------------------------------------------------------------------------------------------------------------------------
-- The audit trail. Facts are two arrays and not a document: what is signed must read back as the same text.

CREATE TABLE audit_entries (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    org_id      text NOT NULL REFERENCES orgs (id),
    at          timestamptz NOT NULL DEFAULT clock_timestamp(),
    actor_kind  text NOT NULL,
    actor_id    text NOT NULL,
    actor_name  text NOT NULL,
    event       text NOT NULL CHECK (event <> ''),
    object_kind text NOT NULL,
    object_id   text NOT NULL,
    digest      text NOT NULL DEFAULT '',
    fact_names  text[] NOT NULL DEFAULT '{}',
    fact_values text[] NOT NULL DEFAULT '{}',
    CHECK (cardinality(fact_names) = cardinality(fact_values))
);
CREATE INDEX audit_entries_by_org ON audit_entries (org_id, id);
CREATE INDEX audit_entries_by_object ON audit_entries (org_id, object_id, id);
ALTER TABLE audit_entries ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_org ON audit_entries USING (org_id = current_org());
CREATE TRIGGER audit_entries_never_change BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_entries EXECUTE FUNCTION refuse_change();
GRANT SELECT, INSERT ON audit_entries TO countersign_app;

-- Entries that wait for their seal.
CREATE TABLE audit_pending (
    org_id   text NOT NULL,
    entry_id bigint NOT NULL,
    PRIMARY KEY (org_id, entry_id)
);
ALTER TABLE audit_pending ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_org ON audit_pending USING (org_id = current_org());
GRANT SELECT, DELETE ON audit_pending TO countersign_app;

-- +goose StatementBegin
CREATE FUNCTION await_seal() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    INSERT INTO audit_pending (org_id, entry_id) SELECT org_id, id FROM added;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER audit_entries_await_seal AFTER INSERT ON audit_entries REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION await_seal();

-- Batches of entries that were written, by name, so that one whose commit was not answered is not written twice. Each writer takes its
-- last name away with its next batch.
CREATE TABLE audit_batches (
    name text PRIMARY KEY,
    at   timestamptz NOT NULL DEFAULT clock_timestamp()
);
GRANT SELECT, INSERT, DELETE ON audit_batches TO countersign_app;

CREATE TABLE audit_seals (
    org_id   text NOT NULL,
    seq      bigint NOT NULL CHECK (seq > 0),
    entry_id bigint NOT NULL UNIQUE,
    mac      bytea NOT NULL,
    PRIMARY KEY (org_id, seq)
);
ALTER TABLE audit_seals ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_org ON audit_seals USING (org_id = current_org());
CREATE TRIGGER audit_seals_never_change BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_seals EXECUTE FUNCTION refuse_change();
GRANT SELECT, INSERT ON audit_seals TO countersign_app;

CREATE TABLE audit_checkpoints (
    org_id text NOT NULL,
    seq    bigint NOT NULL,
    mac    bytea NOT NULL,
    at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (org_id, seq)
);
ALTER TABLE audit_checkpoints ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_org ON audit_checkpoints USING (org_id = current_org());
CREATE TRIGGER audit_checkpoints_never_change BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_checkpoints EXECUTE FUNCTION refuse_change();
GRANT SELECT, INSERT ON audit_checkpoints TO countersign_app;

-- ---------------------------------------------------------------------------------------------------------------------------
-- The doors between organizations

-- +goose StatementBegin
CREATE FUNCTION find_any_org() RETURNS boolean LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp
AS $$ SELECT EXISTS (SELECT FROM orgs) $$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION find_org(wanted text) RETURNS TABLE (org text) LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp
AS $$ SELECT o.id FROM orgs o WHERE o.slug = wanted $$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION each_org() RETURNS TABLE (org text) LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp
AS $$ SELECT o.id FROM orgs o ORDER BY o.id $$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION each_org_with_pending() RETURNS TABLE (org text) LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp
AS $$ SELECT o.id FROM orgs o WHERE EXISTS (SELECT FROM audit_pending p WHERE p.org_id = o.id) ORDER BY o.id $$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION find_person_by_email(wanted text) RETURNS TABLE (org text, person text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp
AS $$ SELECT p.org_id, p.id FROM people p WHERE p.email = wanted $$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION find_invitee(wanted bytea) RETURNS TABLE (org text, person text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT p.org_id, p.id FROM invitations i JOIN people p ON p.id = i.person_id
    WHERE i.link_hash = wanted AND i.used_at IS NULL AND i.expires_at > clock_timestamp() AND p.active
$$;
-- +goose StatementEnd

-- A session that is used again within seconds is not written again: a page of twenty requests costs one write.
-- +goose StatementBegin
CREATE FUNCTION find_session(wanted bytea, idle interval)
RETURNS TABLE (org text, org_slug text, org_name text, person text, email text, name text, roles text[], started timestamptz, flash bytea)
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    WITH live AS (
        SELECT o.id AS org, o.slug, o.name AS org_name, p.id AS person, p.email, p.name, p.roles, s.created_at, s.flash
        FROM sessions s JOIN people p ON p.id = s.person_id JOIN orgs o ON o.id = s.org_id
        WHERE s.hash = wanted AND s.expires_at > clock_timestamp() AND s.used_at > clock_timestamp() - idle AND p.active
    ), noted AS (
        UPDATE sessions s SET used_at = clock_timestamp()
        WHERE s.hash = wanted AND s.used_at < clock_timestamp() - interval '10 seconds' AND EXISTS (SELECT FROM live)
    )
    SELECT * FROM live
$$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION save_session_flash(wanted bytea, message bytea) RETURNS boolean
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp
AS $$ WITH saved AS (UPDATE sessions s SET flash = message WHERE s.hash = wanted RETURNING 1) SELECT EXISTS (SELECT FROM saved) $$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION end_session(wanted bytea) RETURNS boolean
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp
AS $$ WITH gone AS (DELETE FROM sessions s WHERE s.hash = wanted RETURNING 1) SELECT EXISTS (SELECT FROM gone) $$;
-- +goose StatementEnd

-- Sessions that are over for everybody; what a sweeper calls.
-- +goose StatementBegin
CREATE FUNCTION end_old_sessions(idle interval) RETURNS bigint
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    WITH gone AS (DELETE FROM sessions s WHERE s.expires_at <= clock_timestamp() OR s.used_at <= clock_timestamp() - idle RETURNING 1)
    SELECT count(*) FROM gone
$$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION find_service_token(wanted bytea)
RETURNS TABLE (id text, org text, name text, scopes text[], owner text, owner_name text, created timestamptz, expires timestamptz,
               used timestamptz, last_four text)
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    WITH live AS (
        SELECT t.id, t.org_id, t.name, t.scopes, t.owner_id, coalesce(nullif(p.name, ''), p.email), t.created_at, t.expires_at,
               t.last_used_at, t.last_four
        FROM service_tokens t JOIN people p ON p.id = t.owner_id
        WHERE t.hash = wanted AND t.revoked_at IS NULL AND t.expires_at > clock_timestamp() AND p.active
    ), noted AS (
        UPDATE service_tokens t SET last_used_at = clock_timestamp()
        WHERE t.hash = wanted AND EXISTS (SELECT FROM live)
          AND (t.last_used_at IS NULL OR t.last_used_at < clock_timestamp() - interval '1 minute')
    )
    SELECT * FROM live
$$;
-- +goose StatementEnd

REVOKE EXECUTE ON FUNCTION find_any_org(), find_org(text), each_org(), each_org_with_pending(), find_person_by_email(text),
    find_invitee(bytea), find_session(bytea, interval), save_session_flash(bytea, bytea), end_session(bytea),
    end_old_sessions(interval), find_service_token(bytea) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION find_any_org(), find_org(text), each_org(), each_org_with_pending(), find_person_by_email(text),
    find_invitee(bytea), find_session(bytea, interval), save_session_flash(bytea, bytea), end_session(bytea),
    end_old_sessions(interval), find_service_token(bytea) TO countersign_app;
