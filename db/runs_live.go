package db

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"countersign/db/rows"
	"countersign/internal/capability"
	"countersign/internal/fault"
	"countersign/internal/identity"
	"countersign/internal/policy"
	"countersign/internal/run"
)

// The statements of one reading of a run. They travel together: every call of an agent begins with them, and one round trip is what
// that may cost. Each ends in the condition that names the run. Columns are listed: a newer version of the server may have added some.
const (
	enterByToken = `SELECT set_config('countersign.org', coalesce(find_run_org($1), ''), true)`
	enterByOrg   = `SELECT set_config('countersign.org', $1, true)`
	byToken      = `r.token_hash = $1 AND r.ended_at IS NULL AND r.expires_at > clock_timestamp()`
	byID         = `r.id = $1`

	liveRun = `SELECT r.id, r.org_id, r.surface, r.profile, r.task, r.on_behalf_of, r.on_behalf_email, r.token_id, r.token_owner, r.budget,
		r.consequential_used, r.started_at, r.expires_at, r.ended_at, o.slug, o.name, clock_timestamp()
		FROM runs r JOIN orgs o ON o.id = r.org_id WHERE `
	liveConnections = `SELECT c.id, c.org_id, c.key, c.integration, c.kind, c.runtime, c.release_digest, c.name, c.state, c.mode, c.snapshot_version, c.version,
		c.destination, c.contract, c.tested_at, c.healthy, c.found, c.trouble, c.remedy, c.health_since, c.created_by, c.created_at, c.retired_at, c.durable_reads, c.header,
		rc.mode, u.connection_key IS NOT NULL, u.mode, u.tools,
		(SELECT jsonb_object_agg(x.setting, to_jsonb(x.allowed)) FROM profile_resources x WHERE x.org_id = r.org_id AND x.profile = r.profile AND x.connection_key = c.key) FROM runs r JOIN run_connections rc ON rc.run_id = r.id
		JOIN connections c ON c.id = rc.connection_id
		LEFT JOIN profile_uses u ON u.org_id = r.org_id AND u.profile = r.profile AND u.connection_key = c.key WHERE `
	liveSettings = `SELECT s.org_id, s.connection_id, s.name, s.value FROM runs r JOIN run_connections rc ON rc.run_id = r.id JOIN connection_settings s ON s.connection_id = rc.connection_id WHERE `
	liveMinted   = `SELECT g.connection_id, g.tool, g.digest, g.recipe, g.effect, g.destructive FROM runs r JOIN run_grants g ON g.run_id = r.id WHERE `
	livePinned   = `SELECT p.connection_id, p.tool, p.digest, p.recipe, p.effect, p.destructive FROM runs r JOIN run_connections rc ON rc.run_id = r.id
		JOIN pinned_tools p ON p.connection_id = rc.connection_id WHERE `
)

// ByToken implements capability.Store.
func (s Runs) ByToken(ctx context.Context, hash []byte) (capability.Live, error) {
	l, err := s.live(ctx, enterByToken, hash, byToken, hash)
	if errors.Is(err, pgx.ErrNoRows) {
		return capability.Live{}, fault.New(fault.Unauthenticated, fault.CodeUnauthenticated, "This run token is not valid.", "Start a new run.")
	}
	return l, err
}

// Run implements capability.Store.
func (s Runs) Run(ctx context.Context, org identity.OrgID, id run.ID) (capability.Live, error) {
	l, err := s.live(ctx, enterByOrg, string(org), byID, string(id))
	return l, orAbsent(err, "run")
}

// live reads a run whole. The statements of a batch are one transaction, so the organization that the first one sets holds for the
// others and for nothing after them.
func (s Runs) live(ctx context.Context, enter string, enterArg any, where string, arg any) (l capability.Live, err error) {
	b := &pgx.Batch{}
	var use []profileUse
	var connections []rows.Connection
	var settings []rows.ConnectionSetting
	var minted, pinned map[string][]policy.Pinned
	b.Queue(enter, enterArg)
	b.Queue(liveRun+where, arg).QueryRow(func(row pgx.Row) (err error) {
		l, err = scanRun(row)
		return err
	})
	b.Queue(liveConnections+where+` ORDER BY c.key`, arg).Query(func(found pgx.Rows) (err error) {
		connections, use, err = scanUses(found)
		return err
	})
	b.Queue(liveSettings+where, arg).Query(func(found pgx.Rows) (err error) {
		settings, err = pgx.CollectRows(found, pgx.RowToStructByPos[rows.ConnectionSetting])
		return err
	})
	b.Queue(liveMinted+where, arg).Query(func(found pgx.Rows) (err error) {
		minted, err = scanPins(found)
		return err
	})
	b.Queue(livePinned+where, arg).Query(func(found pgx.Rows) (err error) {
		pinned, err = scanPins(found)
		return err
	})
	if err := s.pool.SendBatch(ctx, b).Close(); err != nil {
		return capability.Live{}, translated(err)
	}
	l.Grants, err = grantsOf(connections, use, settings, minted, pinned)
	return l, err
}

// profileUse is how the run's profile uses a connection now, beside the mode that was minted.
type profileUse struct {
	minted    policy.Mode
	in        bool
	mode      *string
	tools     []string
	resources map[string][]string
}

func grantsOf(found []rows.Connection, use []profileUse, settings []rows.ConnectionSetting, minted, pinned map[string][]policy.Pinned) ([]capability.Grant, error) {
	connections, err := connectionsOf(found, settings, pinned)
	if err != nil {
		return nil, err
	}
	out := make([]capability.Grant, len(connections))
	for i, c := range connections {
		snapshot, err := policy.NewSnapshot(minted[c.ID])
		if err != nil {
			return nil, err
		}
		out[i] = capability.Grant{Connection: c, Minted: snapshot, InProfile: use[i].in, Resources: use[i].resources}
		if use[i].in { // what the profile uses no more grants nothing
			out[i].Now = useOf(use[i].mode, use[i].tools).Narrow(c.Standing)
			out[i].Now.Mode = out[i].Now.Mode.Within(use[i].minted)
		}
	}
	return out, nil
}

func scanRun(row pgx.Row) (l capability.Live, err error) {
	var r rows.Run
	var slug, name string
	var now time.Time
	err = row.Scan(&r.ID, &r.OrgID, &r.Surface, &r.Profile, &r.Task, &r.OnBehalfOf, &r.OnBehalfEmail, &r.TokenID, &r.TokenOwner,
		&r.Budget, &r.ConsequentialUsed, &r.StartedAt, &r.ExpiresAt, &r.EndedAt, &slug, &name, &now)
	return capability.Live{Run: runOf(r), Org: identity.Org{ID: identity.OrgID(r.OrgID), Slug: slug, Name: name}, Now: now}, err
}

func scanUses(found pgx.Rows) (connections []rows.Connection, uses []profileUse, err error) {
	for found.Next() {
		var c rows.Connection
		var u profileUse
		err := found.Scan(&c.ID, &c.OrgID, &c.Key, &c.Integration, &c.Kind, &c.Runtime, &c.ReleaseDigest, &c.Name, &c.State, &c.Mode, &c.SnapshotVersion,
			&c.Version, &c.Destination, &c.Contract, &c.TestedAt, &c.Healthy, &c.Found, &c.Trouble, &c.Remedy, &c.HealthSince, &c.CreatedBy, &c.CreatedAt,
			&c.RetiredAt, &c.DurableReads, &c.Header, &u.minted, &u.in, &u.mode, &u.tools, &u.resources)
		if err != nil {
			return nil, nil, err
		}
		connections, uses = append(connections, c), append(uses, u)
	}
	return connections, uses, found.Err()
}

func scanPins(found pgx.Rows) (map[string][]policy.Pinned, error) {
	out := map[string][]policy.Pinned{}
	for found.Next() {
		var connection, effect string
		var p policy.Pinned
		if err := found.Scan(&connection, &p.Tool, &p.Digest, &p.Recipe, &effect, &p.Destructive); err != nil {
			return nil, err
		}
		p.Effect = policy.Effect(effect)
		out[connection] = append(out[connection], p)
	}
	return out, found.Err()
}
