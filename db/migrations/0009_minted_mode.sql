-- +goose Up
-- What a run may do only ever shrinks, and how freely it acts is part of it: a run that began under "ask before writing" does not act by
-- itself because an admin allows later runs to. The default serves a server of the version before, beside this one during an upgrade.
ALTER TABLE run_connections ADD COLUMN mode text NOT NULL DEFAULT 'autonomous' CHECK (mode IN ('', 'read_only', 'ask_user_on_write', 'autonomous'));
