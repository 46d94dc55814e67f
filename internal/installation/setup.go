package installation

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"countersign/internal/credential"
	"countersign/internal/egress"
	"countersign/internal/fault"
	"countersign/internal/identity"
	"countersign/internal/manifest"
	"countersign/internal/registry"
	"countersign/internal/secret"
	"countersign/internal/unseen"
)

// Setup is what a person fills in to install a connection, as the form posted it.
type Setup struct {
	ID          string // drawn with the form by NewID: one form makes one connection, however often it is sent; drawn now when empty
	Integration string
	Name        string                  // display name; the integration's when empty
	Contract    manifest.Contract       // which of the manifest's auth contracts; the first when empty
	Remote      Remote                  // what is typed in for a remote runtime alone
	Secrets     map[string]secret.Value // setup fields, by name
	Settings    map[string]string       // resource settings, by name
}

// NewID draws the id of a connection that a form will make.
func NewID() string { return identity.NewID("con_") }

var idShape = regexp.MustCompile(`^con_[a-z2-7]{26}$`)

func checkID(id string) (string, error) {
	if id == "" {
		return NewID(), nil
	}
	if !idShape.MatchString(id) {
		return "", fault.New(fault.Invalid, fault.CodeInvalid, "Not installed. This form was not drawn here.", "Open the integration's page and start again.")
	}
	return id, nil
}

// EntryOf is the trusted runtime of a connection. That of a remote one is completed with what was typed when the connection was made.
func EntryOf(table registry.Table, c Connection) (registry.Entry, error) {
	entry, ok := table.Lookup(c.Runtime)
	if !ok {
		return registry.Entry{}, fault.New(fault.Unavailable, fault.ConnectionUnavailable, "This server does not know the runtime “"+string(c.Runtime)+"”.", "Update the server, or retire the connection.")
	}
	return entry.For(c.Destination, c.Header), nil
}

// AddressOf is where a runtime is now: public HTTPS, unless the operator's endpoints file moved it, which it never does to a remote one.
func AddressOf(entry registry.Entry) (egress.Destination, error) {
	if entry.Kind == registry.Stdio { // it works beside the agent, and so nothing is ever sent for it
		return egress.Destination{}, nil
	}
	endpoint, err := entry.Endpoint(entry.Primary())
	if err != nil {
		return egress.Destination{}, err
	}
	if endpoint.Overridden {
		return egress.Operator(endpoint.URL)
	}
	return egress.Public(endpoint.URL)
}

// DestinationOf is the address a runtime has now. A remote one has none: its connections have their own.
func DestinationOf(table registry.Table, runtime registry.Key) (egress.Destination, error) {
	entry, err := EntryOf(table, Connection{Runtime: runtime})
	if err != nil {
		return egress.Destination{}, err
	}
	return AddressOf(entry)
}

// WhereTyped is where a connection leads that is being made or entered again: where its runtime is, or what its connection string names.
func WhereTyped(entry registry.Entry, contract manifest.Contract, fields []manifest.Field, values map[string]secret.Value) (egress.Destination, error) {
	if contract != manifest.ConnectionString || moved(entry) || len(fields) != 1 {
		return AddressOf(entry)
	}
	d, err := credential.AddressOf(values[fields[0].Name])
	if err != nil {
		f := *fault.Of(err)
		f.Field = fields[0].Name
		return d, &f
	}
	return d, nil
}

// WhereStored is WhereTyped for a connection that was made before: what was typed is in its row.
func WhereStored(table registry.Table, c Connection) (egress.Destination, error) {
	entry, err := EntryOf(table, c)
	if err != nil {
		return egress.Destination{}, err
	}
	if manifest.Contract(c.Contract) != manifest.ConnectionString || moved(entry) {
		return AddressOf(entry)
	}
	if d, err := egress.Database(c.Destination); err == nil {
		return d, nil
	}
	return egress.Destination{}, credential.ErrElsewhere // it was made for an operator's endpoint that is gone
}

// moved reports whether the operator's endpoints file says where the runtime is.
func moved(entry registry.Entry) bool { return entry.Endpoints[entry.Primary()].Overridden }

// ContractOf turns a manifest's auth contract into the one that authorises requests.
func ContractOf(m manifest.Manifest, id manifest.Contract) (credential.Contract, error) {
	auth, ok := m.Contract(id)
	if !ok {
		return credential.Contract{}, fault.Field("contract", m.Name+" does not offer this way to authenticate.")
	}
	if fields := m.FieldsFor(id); id == manifest.ConnectionString && len(fields) == 1 {
		return credential.ConnectionString(fields[0].Name), nil
	}
	if id == manifest.OAuth2 { // nothing is typed in: what authorises is kept by consent
		return credential.NewContract()
	}
	var headers []credential.Header
	for _, f := range m.FieldsFor(id) {
		if f.Secret {
			headers = append(headers, credential.Header{Field: f.Name, Name: auth.Header, Format: auth.Format})
		}
	}
	return credential.NewContract(headers...)
}

// checkSecrets judges the credential fields of a contract: the manifest's own pattern first, then what can travel. It answers the parts
// that the fields make.
func checkSecrets(m manifest.Manifest, entry registry.Entry, id manifest.Contract, settings map[string]string, values map[string]secret.Value, to egress.Destination) ([]Part, error) {
	var faults fault.List
	for _, f := range m.FieldsFor(id) {
		if err := f.Check(values[f.Name].Reveal()); err != nil {
			e := *fault.Of(err)
			e.Field = f.Name
			faults = append(faults, &e)
		}
	}
	if err := faults.Err(); err != nil {
		return nil, err
	}
	parts, err := Parts(m, entry, id, settings, to)
	if err != nil {
		return nil, err
	}
	if len(parts) == 0 || len(entry.Parts) > 0 || id == manifest.ServiceAccount {
		return parts, checkParts(m, parts, values)
	}
	return parts, parts[0].Contract.Check(values)
}

// checkSettings keeps exactly the manifest's resource settings.
func checkSettings(m manifest.Manifest, settings map[string]string) (map[string]string, error) {
	var faults fault.List
	kept := map[string]string{}
	for _, r := range m.Resources {
		value := strings.TrimSpace(settings[r.Name])
		if err := r.Check(value); err != nil {
			e := *fault.Of(err)
			e.Field = r.Name
			faults = append(faults, &e)
		} else if value != "" {
			kept[r.Name] = value
		}
	}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		if !slices.ContainsFunc(m.Resources, func(r manifest.Resource) bool { return r.Name == name }) {
			faults = append(faults, fault.Field(name, m.Name+" has no setting “"+name+"”."))
		}
	}
	return kept, faults.Err()
}

// checkName refuses what makes one name look like another's: it stands on approval pages and in titles, where nothing can mark it.
func checkName(name, otherwise string) (string, error) {
	if name = strings.TrimSpace(name); name == "" {
		return otherwise, nil
	}
	if !utf8.ValidString(name) || utf8.RuneCountInString(name) > 80 || strings.ContainsFunc(name, unseen.Is) {
		return "", fault.Field("name", "A name is one line of at most 80 characters, all of them visible.")
	}
	return name, nil
}
