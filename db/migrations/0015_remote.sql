-- Connections to MCP servers that an organization runs itself: the header a person named for the credential, and which definitions an
-- admin confirmed as reads.

-- +goose Up

ALTER TABLE connections ADD COLUMN header text NOT NULL DEFAULT '' CHECK (header = '' OR kind = 'remote' AND header ~ '^[!#$%&''*+.^_`|~0-9A-Za-z-]{1,64}$');

-- +goose StatementBegin
CREATE FUNCTION connections_header_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'where a credential travels never changes' USING ERRCODE = 'integrity_constraint_violation';
END $$;
-- +goose StatementEnd
CREATE TRIGGER connections_header_guard BEFORE UPDATE OF header ON connections FOR EACH ROW WHEN (NEW.header IS DISTINCT FROM OLD.header)
    EXECUTE FUNCTION connections_header_guard();

-- One definition of one tool that an admin has read. Another definition of the same tool is another row.
CREATE TABLE confirmed_reads (
    org_id        text NOT NULL,
    connection_id text NOT NULL,
    tool          text NOT NULL,
    digest        text NOT NULL CHECK (digest <> ''),
    confirmed_by  text NOT NULL,
    confirmed_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (connection_id, tool, digest),
    FOREIGN KEY (org_id, connection_id) REFERENCES connections (org_id, id)
);

-- What nobody confirmed is not granted as a read: no catalog reviews the tools of such a server.
-- +goose StatementBegin
CREATE FUNCTION pinned_tools_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.effect = 'read' AND EXISTS (SELECT FROM connections c WHERE c.id = NEW.connection_id AND c.kind = 'remote')
        AND NOT EXISTS (SELECT FROM confirmed_reads r WHERE r.connection_id = NEW.connection_id AND r.tool = NEW.tool AND r.digest = NEW.digest) THEN
        RAISE EXCEPTION 'a tool of a custom server is a read only once its definition was confirmed' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER pinned_tools_guard BEFORE INSERT OR UPDATE ON pinned_tools FOR EACH ROW EXECUTE FUNCTION pinned_tools_guard();

ALTER TABLE confirmed_reads ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_org ON confirmed_reads USING (org_id = current_org());
GRANT SELECT, INSERT, DELETE ON confirmed_reads TO countersign_app;

-- +goose Down
DROP TRIGGER pinned_tools_guard ON pinned_tools;
DROP TABLE confirmed_reads;
ALTER TABLE connections DROP COLUMN header CASCADE;
DROP FUNCTION connections_header_guard(), pinned_tools_guard();
