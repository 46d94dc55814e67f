-- name: SessionInsert :exec
INSERT INTO sessions (hash, org_id, person_id, expires_at, flash)
VALUES (@hash, @org_id, @person_id, clock_timestamp() + @life::interval, @flash);

-- name: SessionDropOthers :exec
DELETE FROM sessions WHERE org_id = @org_id AND person_id = @person_id AND hash IS DISTINCT FROM @keep::bytea;

-- name: AttemptLock :exec
SELECT pg_advisory_xact_lock(@purpose::integer, @subject::integer);

-- name: AttemptWait :one
-- How long the newest attempts of a subject still fill the window, no row while one more is free. before_last: one less than what is free.
SELECT (a.at + sqlc.arg(span)::interval - clock_timestamp())::interval AS wait
FROM sign_in_attempts a
WHERE a.subject = @subject AND a.at > clock_timestamp() - @span::interval
ORDER BY a.at DESC
LIMIT 1 OFFSET @before_last::integer;

-- name: AttemptInsert :exec
INSERT INTO sign_in_attempts (subject) SELECT unnest(@subjects::bytea[]);

-- name: AttemptForget :exec
DELETE FROM sign_in_attempts WHERE subject = @subject;

-- name: AttemptForgetNewest :exec
DELETE FROM sign_in_attempts a
WHERE a.id = (SELECT b.id FROM sign_in_attempts b WHERE b.subject = @subject ORDER BY b.at DESC, b.id DESC LIMIT 1);

-- name: AttemptForgetOld :exec
DELETE FROM sign_in_attempts WHERE at < clock_timestamp() - @span::interval;
