package direct

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"countersign/internal/fault"
	"countersign/internal/policy"
	"countersign/internal/provider"
	"countersign/internal/registry"
)

// Link is one connection, ready to be asked.
type Link struct {
	Conn   *provider.Conn
	Action string // the id of the action that is sent or looked for; empty for reads
	vendor *Vendor
}

// Setting is a resource setting of the connection; empty where it has none.
func (l *Link) Setting(name string) string { return l.Conn.Settings.Resources[name] }

// Request is one request.
type Request struct {
	Role   registry.Role
	Method string
	Path   string // below the endpoint's address, starting with a slash; its parts escaped
	Query  url.Values
	Body   any // marshalled as JSON; nil: none
	// Before is what was seen of the thing before a write, for the write's own Look. It is kept with the evidence: no secret, no answer.
	Before string
}

// Reply is an answer, whole or as far as it came.
type Reply struct {
	Status int
	Header http.Header
	Body   []byte
	Whole  bool
}

// Good reports whether the status says so.
func (r Reply) Good() bool { return r.Status/100 == 2 }

// JSON decodes the body, with numbers as they are written.
func (r Reply) JSON(into any) error {
	d := json.NewDecoder(bytes.NewReader(r.Body))
	d.UseNumber()
	return d.Decode(into)
}

// At escapes values into a path: At("/orders/%s/refund", id).
func At(path string, values ...string) string {
	for _, v := range values {
		path = strings.Replace(path, "%s", url.PathEscape(v), 1)
	}
	return path
}

// Ask sends a request without an effect. A status that is not good is a *Refused; anything else a fault.
func (l *Link) Ask(ctx context.Context, q Request) (Reply, error) {
	e, err := l.Conn.Endpoint(q.Role)
	if err != nil {
		return Reply{}, err
	}
	if err := l.pace(ctx, policy.Read); err != nil {
		return Reply{}, err
	}
	r, err := l.exchange(ctx, e.Reader, e.URL, q)
	if err != nil {
		return r, provider.Broken(err)
	}
	if r.Good() {
		return r, nil
	}
	return r, l.refused(r)
}

// Refused is an error answer that says something about the request: whoever asked can do something about it.
type Refused struct {
	Reply Reply
	Words string
}

// Error implements error.
func (r *Refused) Error() string { return r.Words }

// Is404 reports whether the vendor knows no such thing.
func Is404(err error) bool {
	var r *Refused
	return errors.As(err, &r) && r.Reply.Status == http.StatusNotFound
}

// refused turns an error answer into a fault where only an admin or time can help, else into a Refused.
func (l *Link) refused(r Reply) error {
	cause := errors.New("HTTP " + strconv.Itoa(r.Status))
	words := l.explain(r)
	switch {
	case r.Status == http.StatusUnauthorized:
		return provider.Unauthorized()
	case r.Status == http.StatusTooManyRequests:
		return fault.New(fault.Limited, fault.UpstreamError, "The service limits how often it may be called.", "Wait a minute and call less often.").Wrap(cause)
	case r.Status == http.StatusGatewayTimeout, r.Status == http.StatusRequestTimeout:
		return provider.TimedOut(cause)
	case r.Status/100 == 3:
		return provider.Unreachable("The service redirects to another address, which is never followed.", cause)
	case r.Status >= 500:
		return provider.Upstream("The service has a problem of its own (HTTP "+strconv.Itoa(r.Status)+").", cause)
	}
	return &Refused{Reply: r, Words: words}
}

func (l *Link) explain(r Reply) string {
	words := ""
	if l.vendor.Explain != nil {
		words = l.vendor.Explain(r)
	}
	if words == "" {
		words = http.StatusText(r.Status)
	}
	return l.vendor.Name + " answered with HTTP " + strconv.Itoa(r.Status) + ": " + clip(provider.Printable(words), maxWords)
}

// maxWords bounds what is passed on of an error text.
const maxWords = 2 << 10

func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

func (l *Link) pace(ctx context.Context, e policy.Effect) error {
	if l.vendor.Pace == nil {
		return nil
	}
	return l.vendor.Pace(ctx, l, e)
}

// exchange sends one request and reads the answer. The reply says what came even where an error says that not all did.
func (l *Link) exchange(ctx context.Context, client *http.Client, address string, q Request) (Reply, error) {
	out, err := l.request(ctx, address, q)
	if err != nil {
		return Reply{}, err
	}
	return l.do(client, out)
}

func (l *Link) do(client *http.Client, out *http.Request) (Reply, error) {
	res, err := client.Do(out)
	if err != nil {
		return Reply{}, err
	}
	defer res.Body.Close()
	r := Reply{Status: res.StatusCode, Header: res.Header}
	r.Body, err = io.ReadAll(res.Body)
	r.Whole = err == nil
	if l.vendor.Paced != nil {
		l.vendor.Paced(l, r)
	}
	return r, err
}

func (l *Link) request(ctx context.Context, address string, q Request) (*http.Request, error) {
	var body io.Reader
	if q.Body != nil {
		raw, err := json.Marshal(q.Body)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(raw)
	}
	address = strings.TrimSuffix(address, "/") + q.Path
	if len(q.Query) > 0 {
		address += "?" + q.Query.Encode()
	}
	r, err := http.NewRequestWithContext(ctx, q.Method, address, body)
	if err != nil {
		return nil, err
	}
	media := l.vendor.Accept
	if media == "" {
		media = "application/json"
	}
	r.Header.Set("Accept", media)
	if q.Body != nil {
		r.Header.Set("Content-Type", media)
	}
	return r, nil
}
