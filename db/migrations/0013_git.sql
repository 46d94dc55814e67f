-- What a push leaves behind until it is delivered: its pack, in pieces, so that any replica can deliver it, and what a person reads of it.
-- And which repository of GitHub each name of a connection means.

-- +goose Up

CREATE TABLE git_packs (
    org_id        text NOT NULL,
    connection_id text NOT NULL,
    digest        text NOT NULL CHECK (digest ~ '^sha256:[0-9a-f]{64}$'),
    bytes         bigint NOT NULL CHECK (bytes > 0),
    pieces        integer NOT NULL CHECK (pieces > 0),
    diff          text NOT NULL,
    kept_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (connection_id, digest),
    FOREIGN KEY (org_id, connection_id) REFERENCES connections (org_id, id)
);
CREATE INDEX git_packs_kept ON git_packs (kept_at);

CREATE TABLE git_pack_pieces (
    org_id        text NOT NULL,
    connection_id text NOT NULL,
    digest        text NOT NULL,
    piece         integer NOT NULL CHECK (piece >= 0),
    data          bytea NOT NULL CHECK (octet_length(data) BETWEEN 1 AND 1048576),
    PRIMARY KEY (connection_id, digest, piece),
    FOREIGN KEY (connection_id, digest) REFERENCES git_packs (connection_id, digest) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED
);
ALTER TABLE git_pack_pieces ALTER COLUMN data SET STORAGE EXTERNAL; -- compressed already

CREATE TABLE git_repositories (
    org_id        text NOT NULL,
    connection_id text NOT NULL,
    name          text NOT NULL CHECK (name = lower(name)),
    github_id     bigint NOT NULL CHECK (github_id > 0),
    pinned_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (connection_id, name),
    FOREIGN KEY (org_id, connection_id) REFERENCES connections (org_id, id)
);

ALTER TABLE git_packs ENABLE ROW LEVEL SECURITY;
ALTER TABLE git_pack_pieces ENABLE ROW LEVEL SECURITY;
ALTER TABLE git_repositories ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_org ON git_packs USING (org_id = current_org());
CREATE POLICY own_org ON git_pack_pieces USING (org_id = current_org());
CREATE POLICY own_org ON git_repositories USING (org_id = current_org());

-- A pack and a pin are inserted and read; nothing changes them. Packs are removed when nothing waits for them any more.
GRANT SELECT, INSERT, DELETE ON git_packs, git_pack_pieces TO countersign_app;
GRANT SELECT, INSERT ON git_repositories TO countersign_app;

-- +goose Down
DROP TABLE git_repositories, git_pack_pieces, git_packs;
