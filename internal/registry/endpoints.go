package registry

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"countersign/internal/fault"
)

// Override points one endpoint of a trusted runtime at another address. It is made by NewOverride or LoadEndpoints only, which
// check it against the table; it is the only way to a private address.
type Override struct {
	key  Key
	role Role
	url  string
}

// Key is the runtime that is moved.
func (o Override) Key() Key { return o.key }

// Role is the endpoint that is moved.
func (o Override) Role() Role { return o.role }

// URL is where it now points. It carries no credential.
func (o Override) URL() string { return o.url }

// Target is the key of the endpoints file: "<key>" or "<key>/<role>".
func (o Override) Target() string { return target(o.key, o.role) }

// NewOverride checks one line of an endpoints file: target is "<key>" or "<key>/<role>", address an http or https URL.
func (t Table) NewOverride(tgt, address string) (Override, error) {
	name, role, named := strings.Cut(tgt, "/")
	if !named {
		role = string(MCP)
	}
	e, ok := t.entries[Key(name)]
	if !ok {
		return Override{}, invalid("There is no runtime “"+name+"”.", "The runtimes are: "+joined(t.Keys())+".")
	}
	if e.Kind == Remote {
		return Override{}, invalid("The runtime “"+name+"” is for addresses people type, and can never be pointed at one by an endpoints file.",
			"Remove the line; such a connection is reached at its own public address.")
	}
	if _, ok := e.Endpoints[Role(role)]; !ok {
		return Override{}, invalid("The runtime “"+name+"” has no endpoint with the role “"+role+"”.", "Its endpoints are: "+strings.Join(targets(e), ", ")+".")
	}
	if why := badAddress(address); why != "" {
		return Override{}, invalid("The address of "+quoted(tgt)+" "+why+".", "Write it like \"http://127.0.0.1:9001/mcp\".")
	}
	return Override{key: e.Key, role: Role(role), url: address}, nil
}

// With returns the table with the overrides applied; the receiver is unchanged. Overrides of what the table does not hold are
// ignored.
func (t Table) With(overrides ...Override) Table {
	out := Table{entries: make(map[Key]Entry, len(t.entries))}
	for k := range t.entries {
		out.entries[k], _ = t.Lookup(k)
	}
	for _, o := range overrides {
		e, ok := out.entries[o.key]
		if _, has := e.Endpoints[o.role]; ok && has && e.Kind != Remote {
			e.Endpoints[o.role] = Endpoint{URL: o.url, Overridden: true}
		}
	}
	return out
}

// maxEndpointsFile bounds the operator's file, in bytes.
const maxEndpointsFile = 1 << 20

// LoadEndpoints reads an operator's endpoints file strictly: one table [endpoints] of "<key>" or "<key>/<role>" = "url". Name is
// used in sentences only. Every wrong line is reported, each with its number; with any, no override is returned.
func (t Table) LoadEndpoints(name string, r io.Reader) ([]Override, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxEndpointsFile+1))
	if err != nil {
		return nil, fault.New(fault.Unavailable, fault.CodeUnavailable, "The endpoints file "+name+" cannot be read.", "Check that it exists and that the server may read it.").Wrap(err)
	}
	if len(data) > maxEndpointsFile {
		return nil, fault.New(fault.TooLarge, fault.CodeTooLarge, "The endpoints file "+name+" is larger than 1 MiB.", "Name the right file in COUNTERSIGN_ENDPOINTS_FILE.")
	}
	var file struct {
		Endpoints map[string]string `toml:"endpoints"`
	}
	if err := toml.NewDecoder(bytes.NewReader(data)).DisallowUnknownFields().Decode(&file); err != nil {
		return nil, syntax(name, err)
	}
	lines := endpointLines(data)
	var (
		out  []Override
		list fault.List
	)
	for tgt, address := range file.Endpoints {
		o, err := t.NewOverride(tgt, address)
		if err != nil {
			f := *fault.Of(err)
			f.What, f.Field = fmt.Sprintf("%s:%d: %s", name, lines[tgt], f.What), tgt
			list = append(list, &f)
			continue
		}
		out = append(out, o)
	}
	slices.SortFunc(list, func(a, b *fault.Error) int { return lines[a.Field] - lines[b.Field] })
	if len(list) > 0 {
		return nil, list
	}
	slices.SortFunc(out, func(a, b Override) int { return lines[a.Target()] - lines[b.Target()] })
	return out, nil
}

// endpointLines maps every key of a valid endpoints file to its line.
func endpointLines(data []byte) map[string]int {
	lines := map[string]int{}
	var p unstable.Parser
	p.Reset(data)
	for p.NextExpression() {
		n := p.Expression()
		if n.Kind != unstable.KeyValue {
			continue
		}
		var last *unstable.Node
		for it := n.Key(); it.Next(); {
			last = it.Node()
		}
		lines[string(last.Data)] = p.Shape(last.Raw).Start.Line
		for it := n.Value().Children(); n.Value().Kind == unstable.InlineTable && it.Next(); {
			k := it.Node().Key()
			k.Next()
			lines[string(k.Node().Data)] = p.Shape(k.Node().Raw).Start.Line
		}
	}
	return lines
}

// syntax turns a TOML error into a sentence with its line.
func syntax(name string, err error) error {
	var unknown *toml.StrictMissingError
	if errors.As(err, &unknown) && len(unknown.Errors) > 0 {
		row, _ := unknown.Errors[0].Position()
		return invalid(fmt.Sprintf("%s:%d: “%s” is not part of an endpoints file.", name, row, strings.Join(unknown.Errors[0].Key(), ".")), "It holds one table, [endpoints], and nothing else.")
	}
	var bad *toml.DecodeError
	if errors.As(err, &bad) {
		row, _ := bad.Position()
		return invalid(fmt.Sprintf("%s:%d: This is not valid here: %s.", name, row, strings.TrimPrefix(bad.Error(), "toml: ")), "A line looks like \"context7.v1\" = \"https://proxy.example.com/mcp\".")
	}
	return invalid(name+": This is not an endpoints file: "+err.Error()+".", "It holds one table, [endpoints].")
}

// badAddress says what is wrong with an override's address, or nothing. Private addresses and plain http are the operator's right;
// a credential in a URL is nobody's, since the address is logged at start and shown to admins.
func badAddress(s string) string {
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return "is not a URL"
	case u.User != nil:
		return "carries a user or password; a credential never belongs in a URL"
	case u.Scheme != "http" && u.Scheme != "https":
		return "must start with http:// or https://"
	case u.Hostname() == "":
		return "has no host"
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return "carries a query or fragment; neither is sent"
	}
	return ""
}

func invalid(what, next string) *fault.Error {
	return fault.New(fault.Invalid, fault.CodeInvalid, what, next)
}

func target(k Key, r Role) string {
	if r == MCP {
		return string(k)
	}
	return string(k) + "/" + string(r)
}

func targets(e Entry) []string {
	var out []string
	for _, r := range Roles {
		if _, ok := e.Endpoints[r]; ok {
			out = append(out, quoted(target(e.Key, r)))
		}
	}
	return out
}

func joined(keys []Key) string {
	s := make([]string, len(keys))
	for i, k := range keys {
		s[i] = string(k)
	}
	return strings.Join(s, ", ")
}

func quoted(s string) string { return "\"" + s + "\"" }
