-- The inbox: what waits for a decision, soonest expiry first, however many actions have ended. actions_due serves the clock, which looks
-- across organizations.

-- +goose Up
CREATE INDEX actions_waiting ON actions (org_id, expires_at, id) WHERE state IN ('staged', 'approved');

-- +goose Down
DROP INDEX actions_waiting;
