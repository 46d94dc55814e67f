-- A connection may ask that each read is in the trail, durably, before its answer leaves. It is part of the connection that a replica
-- remembers; every change of it grows the version, which ends that memory.

-- +goose Up
ALTER TABLE connections ADD COLUMN durable_reads boolean NOT NULL DEFAULT false;

-- +goose Down
ALTER TABLE connections DROP COLUMN durable_reads;
