-- name: ConsentByKey :one
SELECT n.* FROM consents n JOIN connections c ON c.id = n.connection_id WHERE c.org_id = @org_id AND c.key = @key;

-- name: ConsentLock :one
SELECT * FROM consents WHERE connection_id = @connection_id FOR UPDATE;

-- name: ConsentScopeList :many
SELECT connection_id, granted, refused, lost FROM consents WHERE connection_id = ANY (@connections::text[]);

-- name: ConsentGive :exec
INSERT INTO consents (connection_id, org_id, id, issuer, authorize_url, token_url, revoke_url, resource, client_identity, client_id, client_auth,
    asked, granted, person_id, person_name, credential_version, issued_at, expires_at, renews)
VALUES (@connection_id, @org_id, @id, @issuer, @authorize_url, @token_url, @revoke_url, @resource, @client_identity, @client_id, @client_auth,
    @asked, @granted, @person_id, @person_name, @credential_version, @issued_at, @expires_at, @renews)
ON CONFLICT (connection_id) DO UPDATE SET id = excluded.id, issuer = excluded.issuer, authorize_url = excluded.authorize_url, token_url = excluded.token_url,
    revoke_url = excluded.revoke_url, resource = excluded.resource, client_identity = excluded.client_identity, client_id = excluded.client_id,
    client_auth = excluded.client_auth, asked = excluded.asked, granted = excluded.granted, person_id = excluded.person_id,
    person_name = excluded.person_name, given_at = clock_timestamp(), lost = '', credential_version = excluded.credential_version,
    issued_at = excluded.issued_at, expires_at = excluded.expires_at, renews = excluded.renews, renewing_by = '', renewing_until = NULL, refused = '{}';

-- name: ConsentClaim :execrows
-- ConsentClaim takes the lease of one version, which nobody else can have until it ends or is given back.
UPDATE consents n SET renewing_by = @renewing_by, renewing_until = clock_timestamp() + @lease::interval
FROM connections c WHERE c.id = n.connection_id AND c.org_id = @org_id AND c.key = @key AND n.id = @id AND n.credential_version = @version AND n.lost = ''
  AND (n.renewing_until IS NULL OR n.renewing_until <= clock_timestamp());

-- name: ConsentIsNewest :one
SELECT EXISTS (SELECT FROM consents n JOIN connections c ON c.id = n.connection_id
WHERE c.org_id = @org_id AND c.key = @key AND n.id = @id AND n.credential_version = @version AND n.lost = '');

-- name: ConsentRenew :execrows
UPDATE consents SET credential_version = credential_version + 1, issued_at = @issued_at, expires_at = @expires_at, renews = @renews, granted = @granted,
       renewing_by = '', renewing_until = NULL
WHERE connection_id = @connection_id AND id = @id AND credential_version = @version AND renewing_by = @renewing_by;

-- name: ConsentRelease :exec
UPDATE consents n SET renewing_by = '', renewing_until = NULL
FROM connections c WHERE c.id = n.connection_id AND c.org_id = @org_id AND c.key = @key AND n.id = @id AND n.renewing_by = @renewing_by;

-- name: ConsentLose :execrows
UPDATE consents SET lost = @lost, renewing_by = '', renewing_until = NULL
WHERE connection_id = @connection_id AND id = @id AND credential_version = @version AND lost = '';

-- name: ConsentRefuse :execrows
UPDATE consents n SET refused = @refused
FROM connections c WHERE c.id = n.connection_id AND c.org_id = @org_id AND c.key = @key AND n.id = @id AND n.refused <> @refused::text[];

-- name: ConsentForget :exec
DELETE FROM consents WHERE connection_id = @connection_id;

-- name: ConsentOfPerson :many
SELECT sqlc.embed(n), c.key FROM consents n JOIN connections c ON c.id = n.connection_id
WHERE n.org_id = @org_id AND n.person_id = @person_id ORDER BY c.name, c.key;

-- name: ConsentSharing :one
SELECT count(*) FROM consents n JOIN connections c ON c.id = n.connection_id
WHERE n.org_id = @org_id AND c.key <> @key AND n.client_id = @client_id AND n.token_url = @token_url;

-- name: ConsentRequestInsert :exec
INSERT INTO consent_requests (state, org_id, connection_id, connection_key, person_id, session, issuer, authorize_url, token_url, revoke_url, resource, names_issue,
    client_identity, client_id, client_auth, client_secret, verifier, asked, expires_at)
VALUES (@state, @org_id, @connection_id, @connection_key, @person_id, @session, @issuer, @authorize_url, @token_url, @revoke_url, @resource, @names_issue,
    @client_identity, @client_id, @client_auth, @client_secret, @verifier, @asked, @expires_at);

-- name: ConsentRequestTake :one
-- ConsentRequestTake answers a request once, ever. One that is over is gone too.
DELETE FROM consent_requests WHERE org_id = @org_id AND state = @state RETURNING *, (expires_at > clock_timestamp())::boolean AS alive;

-- name: ConsentRequestForgetOver :exec
DELETE FROM consent_requests WHERE org_id = @org_id AND expires_at < clock_timestamp();

-- name: ConnectionLoseConsent :execrows
UPDATE connections SET state = 'needs_consent', healthy = false, trouble = @trouble, remedy = @remedy, tested_at = clock_timestamp(),
       health_since = CASE WHEN health_since IS NULL OR healthy THEN clock_timestamp() ELSE health_since END, version = version + 1
WHERE id = @id AND state = 'active';
