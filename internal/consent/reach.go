package consent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"countersign/internal/credential"
	"countersign/internal/egress"
	"countersign/internal/fault"
	"countersign/internal/installation"
	"countersign/internal/registry"
)

// Bounds of one exchange with an authorization server.
const (
	exchangeTimeout = 20 * time.Second
	maxAnswer       = 256 << 10
)

// Site is where a connection leads: its runtime and the address it was made for.
type Site struct {
	Entry registry.Entry
	MCP   egress.Destination   // the address that stands for it
	also  []egress.Destination // its other ones, where the same token opens them
}

// SiteOf is where a connection leads, as long as that is where it was made for.
func SiteOf(table registry.Table, c installation.Connection) (Site, error) {
	s, err := siteNow(table, c)
	if err == nil && s.MCP.URL() != c.Destination {
		err = credential.ErrElsewhere
	}
	return s, err
}

// siteNow is where the runtime of a connection leads now.
func siteNow(table registry.Table, c installation.Connection) (Site, error) {
	entry, err := installation.EntryOf(table, c)
	if err != nil || !entry.OAuth {
		return Site{}, fault.New(fault.Unavailable, fault.ConnectionUnavailable, "This server knows no way to ask for consent for the runtime “"+string(c.Runtime)+"”.", "Update the server, or retire the connection.")
	}
	endpoint, err := entry.Endpoint(entry.Primary())
	if err != nil {
		return Site{}, err
	}
	s := Site{Entry: entry}
	if s.MCP, err = destinationOf(endpoint); err != nil {
		return Site{}, err
	}
	for _, role := range registry.Own {
		if e, ok := entry.Endpoints[role]; ok && e.URL != "" && role != entry.Primary() {
			d, err := destinationOf(e)
			if err != nil {
				return Site{}, err
			}
			s.also = append(s.also, d)
		}
	}
	return s, nil
}

func destinationOf(e registry.Endpoint) (egress.Destination, error) {
	if e.Overridden {
		return egress.Operator(e.URL)
	}
	return egress.Public(e.URL)
}

// destination is where an address from a document leads: a public one, or one on an origin that the operator vouches for.
func (s Site) destination(raw string) (egress.Destination, error) {
	for _, e := range s.Entry.Endpoints {
		if !e.Overridden {
			continue
		}
		if vouched, err := egress.Operator(e.URL); err == nil {
			if d, err := vouched.At(raw); err == nil {
				return d, nil
			}
		}
	}
	d, err := egress.Public(raw)
	if err != nil {
		return d, fmt.Errorf("%w: %w", errForbidden, err)
	}
	return d, nil
}

var errForbidden = errors.New("the address is not that of a public service")

// answer is what a server said, read whole and bounded.
type answer struct {
	status    int
	challenge string
	body      []byte
	json      bool
}

// exchange sends one request and reads the answer. Nothing is followed anywhere, and the connection is not kept.
func exchange(ctx context.Context, d egress.Destination, r *http.Request) (answer, error) {
	client := egress.Client(d, egress.Options{Timeout: exchangeTimeout, MaxBytes: maxAnswer})
	defer client.CloseIdleConnections()
	if r.Header.Get("Accept") == "" {
		r.Header.Set("Accept", "application/json") // some answer in a form otherwise
	}
	res, err := client.Do(r.WithContext(ctx))
	if err != nil {
		return answer{}, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return answer{}, err
	}
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	return answer{
		status: res.StatusCode, challenge: strings.Join(res.Header.Values("WWW-Authenticate"), ", "), body: body,
		json: kind == "application/json" || strings.HasSuffix(kind, "+json"),
	}, nil
}

// document reads a JSON document at an address met on the way. Absent is the answer to anything that is no such document.
func (s Site) document(ctx context.Context, raw string, into any) error {
	d, err := s.destination(raw)
	if err != nil {
		return err
	}
	r, err := http.NewRequest(http.MethodGet, d.URL(), nil)
	if err != nil {
		return errAbsent
	}
	a, err := exchange(ctx, d, r)
	if err != nil {
		return err
	}
	if a.status != http.StatusOK || !a.json || json.Unmarshal(a.body, into) != nil {
		return errAbsent
	}
	return nil
}

var errAbsent = errors.New("there is no such document")

// post sends a form or a JSON text.
func (s Site) post(ctx context.Context, raw, kind string, body []byte, authorize func(*http.Request)) (answer, error) {
	d, err := s.destination(raw)
	if err != nil {
		return answer{}, err
	}
	r, err := http.NewRequest(http.MethodPost, d.URL(), bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	r.Header.Set("Content-Type", kind)
	if authorize != nil {
		authorize(r)
	}
	return exchange(ctx, d, r)
}

func originOf(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	return egress.OriginOf(u)
}
