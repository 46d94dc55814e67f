package installation

import (
	"maps"
	"slices"

	"countersign/internal/credential"
	"countersign/internal/egress"
	"countersign/internal/fault"
	"countersign/internal/manifest"
	"countersign/internal/registry"
	"countersign/internal/secret"
)

// Part is one part of a connection's credential: what it is made of, and the one address it may be sent to.
type Part struct {
	Role        registry.Role // of the endpoint it authorises
	Reads       bool          // it authorises reads alone
	Everywhere  bool          // it authorises the runtime's other addresses too, where it does its own
	Account     bool          // the key of a service account: Destination is where it is exchanged
	Fields      []string
	Contract    credential.Contract // not of an account
	Destination egress.Destination
}

// Parts takes a connection's credential apart. A part whose endpoint the connection has not chosen is left out. The common case is one
// part: a token for the address that stands for the runtime, which is primary.
func Parts(m manifest.Manifest, entry registry.Entry, id manifest.Contract, settings map[string]string, primary egress.Destination) ([]Part, error) {
	if _, ok := m.Contract(id); !ok {
		return nil, fault.Field("contract", m.Name+" does not offer this way to authenticate.")
	}
	switch {
	case entry.Kind == registry.Stdio: // it works beside the agent, where no credential of the organization goes
		return nil, nil
	case id == manifest.ServiceAccount:
		d, ok, err := Place(entry, registry.Token, settings)
		if err != nil || !ok || len(m.FieldsFor(id)) != 1 {
			return nil, noAddress(entry.Key, err)
		}
		return []Part{{Role: registry.Token, Account: true, Fields: []string{m.FieldsFor(id)[0].Name}, Destination: d}}, nil
	case id == manifest.Token && len(entry.Parts) > 0:
		return parted(entry, settings)
	}
	contract, err := ContractOf(m, id)
	if err != nil {
		return nil, err
	}
	if id == manifest.ConnectionString {
		return []Part{{Role: entry.Primary(), Fields: contract.Fields(), Contract: contract, Destination: primary}}, nil
	}
	d, ok, err := Place(entry, entry.Primary(), settings)
	if err != nil || !ok {
		return nil, noAddress(entry.Key, err)
	}
	return []Part{{Role: entry.Primary(), Everywhere: id == manifest.PAT, Fields: contract.Fields(), Contract: contract, Destination: d}}, nil
}

func parted(entry registry.Entry, settings map[string]string) ([]Part, error) {
	var out []Part
	for _, p := range entry.Parts {
		d, ok, err := Place(entry, p.Role, settings)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		fields := p.Fields()
		h := credential.Header{Field: fields[len(fields)-1], Name: p.Header, Format: p.Slotted()}
		if len(fields) > 1 {
			h.User = fields[0]
		}
		contract, err := credential.NewContract(h)
		if err != nil {
			return nil, err
		}
		out = append(out, Part{Role: p.Role, Reads: p.Reads, Fields: fields, Contract: contract, Destination: d})
	}
	return out, nil
}

// Place is where an endpoint of a runtime is for one connection; false where the connection has not chosen it.
func Place(entry registry.Entry, role registry.Role, settings map[string]string) (egress.Destination, bool, error) {
	e, ok := entry.Endpoints[role]
	if !ok {
		return egress.Destination{}, false, nil
	}
	if e, ok = e.At(settings); !ok {
		return egress.Destination{}, false, nil
	}
	if e.Overridden {
		d, err := egress.Operator(e.URL)
		return d, err == nil, err
	}
	d, err := egress.Public(e.URL)
	return d, err == nil, err
}

func noAddress(k registry.Key, err error) error {
	if err != nil {
		return err
	}
	return fault.New(fault.Unavailable, fault.ConnectionUnavailable, "This server does not know where the credential of “"+string(k)+"” goes.", "Update the server, or retire the connection.")
}

// entered brings what a person pasted into the form it is kept in.
func entered(id manifest.Contract, values map[string]secret.Value) map[string]secret.Value {
	if id != manifest.ServiceAccount {
		return values
	}
	out := map[string]secret.Value{}
	for name, v := range values {
		out[name] = credential.CompactKey(v)
	}
	return out
}

// checkParts judges entered fields part by part. A part is optional as far as the manifest leaves its fields so, but never half there; at
// least one has to be.
func checkParts(m manifest.Manifest, parts []Part, values map[string]secret.Value) error {
	var faults fault.List
	used, whole := map[string]bool{}, 0
	for _, p := range parts {
		has := slices.DeleteFunc(slices.Clone(p.Fields), func(f string) bool { return values[f].IsZero() })
		switch {
		case len(has) == 0 && optional(m, p.Fields):
			continue
		case p.Account:
			if why := credential.CheckKey(values[p.Fields[0]]); why != "" {
				faults = append(faults, fault.Field(p.Fields[0], why))
			}
		default:
			faults = collect(faults, p.Contract.Check(only(values, p.Fields)))
		}
		whole++
		for _, f := range p.Fields {
			used[f] = true
		}
	}
	for _, f := range slices.Sorted(maps.Keys(values)) {
		if !used[f] && !values[f].IsZero() {
			faults = append(faults, fault.Field(f, "This connection has no place for it: the setting it belongs to is empty."))
		}
	}
	if whole == 0 && len(parts) > 0 && len(faults) == 0 {
		faults = append(faults, fault.New(fault.Invalid, fault.CodeInvalid, m.Name+" needs at least one credential.", "Fill in one of the groups of fields."))
	}
	return faults.Err()
}

func optional(m manifest.Manifest, fields []string) bool {
	for _, f := range m.Setup.Fields {
		if f.Required && slices.Contains(fields, f.Name) {
			return false
		}
	}
	return true
}

// sealParts seals each part for its own address.
func sealParts(keys *secret.Keyset, p credential.Place, version int64, parts []Part, values map[string]secret.Value) ([]credential.Record, error) {
	var out []credential.Record
	for _, part := range parts {
		sealed, err := credential.Seal(keys, p, version, only(values, part.Fields), part.Destination)
		if err != nil {
			return nil, err
		}
		out = append(out, sealed...)
	}
	return out, nil
}

func only(values map[string]secret.Value, fields []string) map[string]secret.Value {
	out := map[string]secret.Value{}
	for _, f := range fields {
		if v, ok := values[f]; ok && !v.IsZero() {
			out[f] = v
		}
	}
	return out
}
