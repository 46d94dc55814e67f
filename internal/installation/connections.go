package installation

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"countersign/internal/audit"
	"countersign/internal/connector"
	"countersign/internal/credential"
	"countersign/internal/fault"
	"countersign/internal/identity"
	"countersign/internal/manifest"
	"countersign/internal/policy"
	"countersign/internal/registry"
	"countersign/internal/release"
	"countersign/internal/secret"
)

// Releases finds the manifest a connection was installed from. release.Store implements it.
type Releases interface {
	Current(ctx context.Context) (release.Release, error)
	ByDigest(ctx context.Context, d release.Digest) (release.Release, error)
}

// Credentials reads what is sealed. credential.Store implements it.
type Credentials interface {
	Current(ctx context.Context, p credential.Place) ([]credential.Record, error)
}

// Connections is what people do with connections.
type Connections struct {
	Read        Reader
	Write       Writer
	Prober      Prober
	Scout       Scout // nil: nothing is listed to choose from
	Releases    Releases
	Credentials Credentials
	Registry    registry.Table
	Keys        *secret.Keyset
}

// Manifest is the manifest a connection was installed from. One that this server no longer accepts makes the connection unavailable.
func (s *Connections) Manifest(ctx context.Context, c Connection) (manifest.Manifest, error) {
	r, err := s.Releases.ByDigest(ctx, release.Digest(c.Release))
	if err != nil {
		return manifest.Manifest{}, err
	}
	m, ok := r.Manifest(c.Integration)
	if !ok {
		return manifest.Manifest{}, fault.New(fault.Unavailable, fault.ConnectionUnavailable,
			"This server no longer accepts the catalog entry this connection was installed from.", "Install it again from the present catalog, and retire this one.")
	}
	return m, nil
}

// Tools is what the connection page lists.
func (s *Connections) Tools(ctx context.Context, c Connection) ([]Tool, error) {
	m, err := s.Manifest(ctx, c)
	if err != nil {
		return nil, err
	}
	observed, err := s.Read.ObservedTools(ctx, c.Org, c.Key)
	if err != nil {
		return nil, err
	}
	raws, err := s.Read.PinnedDefinitions(ctx, c.Org, c.Key)
	if err != nil {
		return nil, err
	}
	return Merge(c, observed, raws, m), nil
}

// Install makes a connection from the current release, seals its credential and tests it. What the test finds is on the connection;
// a failing test is not an error, since the person corrects it on the page that shows it. It grants no tool. A form that is sent twice
// makes one connection: the second answer is the first one's.
func (s *Connections) Install(ctx context.Context, by identity.Person, q Setup) (Connection, error) {
	if c, ok, err := s.installed(ctx, by.Org, q.ID); err != nil || ok {
		return c, err
	}
	current, err := s.Releases.Current(ctx)
	if err != nil {
		return Connection{}, err
	}
	m, ok := current.Manifest(q.Integration)
	if !ok {
		return Connection{}, fault.Absent("integration in the catalog")
	}
	c, sealed, err := s.prepare(by, m, string(current.Digest()), q)
	if err != nil {
		return Connection{}, err
	}
	e := entry(by, audit.ConnectionInstalled, c.Key, audit.Fact{Name: "integration", Value: m.Key}, audit.Fact{Name: "release", Value: c.Release}, audit.Fact{Name: "auth", Value: c.Contract})
	made, err := s.Write.Install(ctx, c, sealed, e)
	if err != nil {
		if first, ok, _ := s.installed(ctx, by.Org, c.ID); ok { // both presses got this far, and the database let one through
			return first, nil
		}
		return Connection{}, err
	}
	if made.State == NeedsConsent { // nothing can be tested before a person has signed in at the service
		return made, nil
	}
	return s.test(ctx, made, by)
}

func (s *Connections) installed(ctx context.Context, org identity.OrgID, id string) (Connection, bool, error) {
	if id == "" {
		return Connection{}, false, nil
	}
	all, err := s.Read.Connections(ctx, org)
	i := slices.IndexFunc(all, func(c Connection) bool { return c.ID == id })
	if err != nil || i < 0 {
		return Connection{}, false, err
	}
	return all[i], true, nil
}

func (s *Connections) prepare(by identity.Person, m manifest.Manifest, digest string, q Setup) (Connection, []credential.Record, error) {
	if q.Contract == "" && len(m.Auth) > 0 {
		q.Contract = m.Auth[0].Contract
	}
	q.Secrets = entered(q.Contract, q.Secrets)
	var faults fault.List
	id, err := checkID(q.ID)
	faults = collect(faults, err)
	name, err := checkName(q.Name, m.Name)
	faults = collect(faults, err)
	settings, err := checkSettings(m, q.Settings)
	faults = collect(faults, err)
	c := Connection{
		ID: id, Org: by.Org, Key: connector.NewKey(m.Key), Integration: m.Key, Kind: m.Kind, Runtime: m.Runtime, Release: digest, Name: name, State: Active,
		Destination: q.Remote.Address, Header: q.Remote.Header, Contract: string(q.Contract), Settings: settings, CreatedBy: by.Display(),
	}
	parts, unreachable, err := s.lead(&c, m, q)
	if faults = collect(faults, err); len(faults) > 0 {
		return Connection{}, nil, faults
	}
	if unreachable != nil {
		return Connection{}, nil, unreachable
	}
	if q.Contract == manifest.OAuth2 {
		c.State = NeedsConsent
	}
	sealed, err := sealParts(s.Keys, credential.Place{Org: by.Org, Connection: c.Key}, 1, parts, q.Secrets)
	return c, sealed, err
}

// lead finds where a new connection leads and takes apart what authorises it there. What a person typed wrong is an error of its own: a
// runtime without an address is nothing they could mend.
func (s *Connections) lead(c *Connection, m manifest.Manifest, q Setup) (parts []Part, unreachable, wrong error) {
	entry, unreachable := EntryOf(s.Registry, *c)
	if unreachable != nil {
		return nil, unreachable, nil
	}
	if err := checkRemote(entry.Kind, q.Contract, q.Remote); err != nil {
		return nil, nil, err
	}
	destination, err := WhereTyped(entry, q.Contract, m.FieldsFor(q.Contract), q.Secrets)
	if f, ok := fault.As(err); ok && f.Field != "" { // what was typed is no address
		return nil, nil, err
	}
	if err != nil {
		return nil, err, nil
	}
	c.Destination = destination.URL()
	parts, err = checkSecrets(m, entry, q.Contract, c.Settings, q.Secrets, destination)
	return parts, nil, err
}

// Test calls the service with the credential and records what was found.
func (s *Connections) Test(ctx context.Context, by identity.Person, key connector.Key) (Connection, error) {
	c, err := s.open(ctx, by.Org, key)
	if err != nil {
		return Connection{}, err
	}
	return s.test(ctx, c, by)
}

func (s *Connections) test(ctx context.Context, c Connection, by identity.Person) (Connection, error) {
	finding := s.Prober.Probe(ctx, c)
	tested := entry(by, audit.ConnectionTested, c.Key, audit.Fact{Name: "ok", Value: strconv.FormatBool(finding.OK)})
	return s.record(ctx, c, finding, &tested)
}

// Examine tests a connection part by part, and records what was found as Test does.
func (s *Connections) Examine(ctx context.Context, by identity.Person, key connector.Key) ([]Check, Connection, error) {
	c, err := s.open(ctx, by.Org, key)
	if err != nil {
		return nil, Connection{}, err
	}
	checks, finding := s.Prober.Examine(ctx, c)
	tested := entry(by, audit.ConnectionTested, c.Key, audit.Fact{Name: "ok", Value: strconv.FormatBool(finding.OK)}, audit.Fact{Name: "part by part", Value: "true"})
	c, err = s.record(ctx, c, finding, &tested)
	return checks, c, err
}

// Observe records the list a replica just read, so that people see the drift it met. The finding of the last test stays.
func (s *Connections) Observe(ctx context.Context, c Connection, tools []Observed) error {
	before, err := s.Read.ObservedTools(ctx, c.Org, c.Key)
	if err != nil || sameList(before, tools) {
		return err
	}
	_, err = s.record(ctx, c, Finding{OK: c.Health.OK, Found: c.Health.Found, What: c.Health.What, Next: c.Health.Next, Tools: tools}, nil)
	return err
}

func (s *Connections) record(ctx context.Context, c Connection, f Finding, tested *audit.Entry) (Connection, error) {
	var held []audit.Entry
	if f.Tools != nil && c.Standing.Snapshot.Len() > 0 {
		before, err := s.Read.ObservedTools(ctx, c.Org, c.Key)
		if err != nil {
			return Connection{}, err
		}
		for _, t := range newlyHeld(c, before, f.Tools) {
			held = append(held, audit.Entry{
				Org: c.Org, Actor: audit.System("discovery"), Event: audit.DefinitionHeld, Object: audit.Object{Kind: "connection", ID: c.Key.String()},
				Facts: []audit.Fact{{Name: "tool", Value: t.Tool}, {Name: "definition", Value: t.Digest}},
			})
		}
	}
	return s.Write.RecordFinding(ctx, c, f, tested, held)
}

// Access is what the access form of a connection posted. Version 0 means the row as it is.
type Access struct {
	Key     connector.Key
	Version int
	policy.Choice
}

// SaveAccess changes mode and tools together, by the rules of policy.Select. Nothing is asked of the service: narrowing must work while
// it is down, and a definition that moved meanwhile is held back at its next use.
func (s *Connections) SaveAccess(ctx context.Context, by identity.Person, a Access) (Connection, error) {
	c, err := s.at(ctx, by.Org, a.Key, a.Version)
	if err != nil {
		return Connection{}, err
	}
	tools, err := s.Tools(ctx, c)
	if err != nil {
		return Connection{}, err
	}
	next, err := policy.Select(c.Standing, a.Choice, Candidates(tools))
	if err != nil {
		return Connection{}, err
	}
	if next.Mode == c.Standing.Mode && next.Snapshot.Equal(c.Standing.Snapshot) {
		return c, nil
	}
	raws := map[string][]byte{}
	for _, t := range tools {
		if p, ok := next.Snapshot.Find(t.Tool); ok {
			raws[t.Tool] = rawOf(t, p)
		}
	}
	added, removed := difference(c.Standing.Snapshot, next.Snapshot)
	e := entry(by, audit.AccessSaved, c.Key, audit.Fact{Name: "mode", Value: string(next.Mode)}, audit.Fact{Name: "mode before", Value: string(c.Standing.Mode)},
		audit.Fact{Name: "tools", Value: strconv.Itoa(next.Snapshot.Len())}, audit.Fact{Name: "added", Value: added}, audit.Fact{Name: "removed", Value: removed})
	return s.Write.SaveStanding(ctx, c, next, raws, e)
}

// AcceptDefinition pins the definition a person has just reviewed, named by its digest: if it changed again meanwhile, nothing is
// accepted.
func (s *Connections) AcceptDefinition(ctx context.Context, by identity.Person, a Access, tool, digest string) (Connection, error) {
	c, err := s.at(ctx, by.Org, a.Key, a.Version)
	if err != nil {
		return Connection{}, err
	}
	tools, err := s.Tools(ctx, c)
	if err != nil {
		return Connection{}, err
	}
	raws := map[string][]byte{}
	var reviewed *Tool
	for i, t := range tools {
		raws[t.Tool] = t.PinnedRaw
		if t.Tool == tool {
			reviewed = &tools[i]
		}
	}
	if reviewed == nil || !reviewed.Listed {
		return Connection{}, fault.Absent("tool on this connection")
	}
	if reviewed.Digest != digest {
		return Connection{}, fault.Stale("Not accepted. “" + tool + "” changed again while you read.")
	}
	next, err := policy.Accept(c.Standing, reviewed.Candidate())
	if err != nil {
		return Connection{}, err
	}
	raws[tool] = reviewed.Raw
	e := entry(by, audit.DefinitionAccepted, c.Key, audit.Fact{Name: "tool", Value: tool}, audit.Fact{Name: "definition", Value: digest}, audit.Fact{Name: "effect", Value: string(reviewed.Class.Effect)})
	return s.Write.SaveStanding(ctx, c, next, raws, e)
}

// ReplaceCredential seals new values for the address the runtime has now, and tests them. Tools, mode and key stay.
func (s *Connections) ReplaceCredential(ctx context.Context, by identity.Person, key connector.Key, values map[string]secret.Value) (Connection, error) {
	c, err := s.open(ctx, by.Org, key)
	if err != nil {
		return Connection{}, err
	}
	m, err := s.Manifest(ctx, c)
	if err != nil {
		return Connection{}, err
	}
	if c.Contract == string(manifest.OAuth2) {
		return Connection{}, fault.New(fault.Conflict, fault.CodeConflict, "Nothing is typed in for this connection: a person signs in at the service.", "Sign in again from the connection's page.")
	}
	runtime, err := EntryOf(s.Registry, c)
	if err != nil {
		return Connection{}, err
	}
	id := manifest.Contract(c.Contract)
	destination, err := WhereTyped(runtime, id, m.FieldsFor(id), values)
	if err != nil {
		return Connection{}, err
	}
	values = entered(id, values)
	parts, err := checkSecrets(m, runtime, id, c.Settings, values, destination)
	if err != nil {
		return Connection{}, err
	}
	place := credential.Place{Org: c.Org, Connection: c.Key}
	now, err := s.Credentials.Current(ctx, place)
	if err != nil {
		return Connection{}, err
	}
	sealed, err := sealParts(s.Keys, place, nextVersion(now), parts, values)
	if err != nil {
		return Connection{}, err
	}
	c.Destination = destination.URL()
	if c, err = s.Write.ReplaceCredential(ctx, c, sealed, entry(by, audit.CredentialReplaced, c.Key)); err != nil {
		return Connection{}, err
	}
	return s.test(ctx, c, by)
}

// Rename changes the display name; the key stays for ever.
func (s *Connections) Rename(ctx context.Context, by identity.Person, a Access, name string) (Connection, error) {
	c, err := s.at(ctx, by.Org, a.Key, a.Version)
	if err != nil {
		return Connection{}, err
	}
	if strings.TrimSpace(name) == "" {
		return Connection{}, fault.Field("name", "A connection needs a name.")
	}
	if name, err = checkName(name, c.Name); err != nil {
		return Connection{}, err
	}
	return s.Write.Rename(ctx, c, name, entry(by, audit.ConnectionRenamed, c.Key, audit.Fact{Name: "name", Value: name}))
}

// RecordReads chooses when a read must be in the trail: durably before its answer leaves, or soon after.
func (s *Connections) RecordReads(ctx context.Context, by identity.Person, a Access, durably bool) (Connection, error) {
	c, err := s.at(ctx, by.Org, a.Key, a.Version)
	if err != nil || c.DurableReads == durably {
		return c, err
	}
	return s.Write.RecordReads(ctx, c, durably, entry(by, audit.ReadRecording, c.Key, audit.Fact{Name: "durable", Value: strconv.FormatBool(durably)}))
}

// Disconnect forgets the credential and cancels what waits; a new credential makes the connection active again.
func (s *Connections) Disconnect(ctx context.Context, by identity.Person, a Access) (Connection, error) {
	return s.end(ctx, by, a, Disconnected, audit.ConnectionDisconnect)
}

// Retire ends a connection for good.
func (s *Connections) Retire(ctx context.Context, by identity.Person, a Access) (Connection, error) {
	return s.end(ctx, by, a, Retired, audit.ConnectionRetired)
}

func (s *Connections) end(ctx context.Context, by identity.Person, a Access, state State, event audit.Event) (Connection, error) {
	c, err := s.at(ctx, by.Org, a.Key, a.Version)
	if err != nil {
		return Connection{}, err
	}
	return s.Write.End(ctx, c, state, entry(by, event, c.Key))
}

// open reads a connection that is not retired.
func (s *Connections) open(ctx context.Context, org identity.OrgID, key connector.Key) (Connection, error) {
	c, err := s.Read.Connection(ctx, org, key)
	if err != nil {
		return Connection{}, err
	}
	if c.State == Retired {
		return Connection{}, fault.New(fault.Conflict, fault.CodeConflict, "This connection is retired; that cannot be undone.", "Install the integration again for a new connection.")
	}
	return c, nil
}

// at is open, for a form that was shown at a version.
func (s *Connections) at(ctx context.Context, org identity.OrgID, key connector.Key, version int) (Connection, error) {
	c, err := s.open(ctx, org, key)
	if err != nil {
		return Connection{}, err
	}
	if version != 0 && version != c.Version {
		return Connection{}, fault.Stale("Not saved. Somebody else changed this connection while you read.")
	}
	return c, nil
}

func entry(by identity.Person, event audit.Event, key connector.Key, facts ...audit.Fact) audit.Entry {
	return audit.Entry{Org: by.Org, Actor: audit.Person(by), Event: event, Object: audit.Object{Kind: "connection", ID: key.String()}, Facts: facts}
}
