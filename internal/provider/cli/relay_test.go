package cli

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"countersign/internal/action"
	"countersign/internal/policy"
	"countersign/internal/provider"
	"countersign/internal/provider/direct"
	"countersign/internal/provider/direct/directtest"
	"countersign/internal/registry"
)

var (
	project = Flag{Argument: "project", Name: "--project", Value: Word("A project."), Required: true}
	reading = Invocation{Tool: "list", Words: []string{"list"}, Flags: []Flag{project}, Effect: policy.Read, Asks: []string{"GET /projects/{project}/things/*"}}
	writing = Invocation{
		Tool: "close", Words: []string{"close"}, Flags: []Flag{project}, Effect: policy.Consequential,
		Asks: []string{"GET /projects/{project}/things/*", "PUT /projects/{project}/things/?id={project}"},
	}
)

// between is a relay over a service that counts, as a program would find it.
func between(t *testing.T, i Invocation) (r *relay, ask func(method, path, ticket string) int, service *directtest.Server) {
	t.Helper()
	service = &directtest.Server{Name: func(r *http.Request) string { return r.Method + " " + r.URL.RequestURI() }, Next: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer the-real-token" || r.Header.Get("X-Smuggled") != "" {
			t.Errorf("the service got %v", r.Header)
		}
		_, _ = io.WriteString(w, "{}")
	})}
	service.Start(t)
	c := directtest.Connect(t, provider.Settings{}, map[registry.Role]directtest.At{Role: {URL: service.URL, Editor: directtest.Bearer(t, service.URL, "the-real-token")}})
	e, err := c.Endpoint(Role)
	if err != nil {
		t.Fatal(err)
	}
	r = newRelay(t.Context(), func() {}, e, i, direct.Arguments{"project": json.RawMessage(`"shop"`)})
	inside := httptest.NewServer(r)
	t.Cleanup(inside.Close)
	return r, func(method, path, ticket string) int {
		t.Helper()
		q, err := http.NewRequestWithContext(t.Context(), method, inside.URL+path, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set("Authorization", "Bearer "+ticket)
		q.Header.Set("X-Smuggled", "yes")
		res, err := http.DefaultTransport.RoundTrip(q)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		return res.StatusCode
	}, service
}

// A program that was turned against its users still asks nothing but what the approved invocation needs.
func TestTheRelayPassesOnlyWhatTheInvocationNeeds(t *testing.T) {
	t.Parallel()
	r, ask, service := between(t, writing)
	for _, bad := range []string{
		"GET /projects/other/things/1", "GET /projects/shop/things/1/2", "GET /projects/shop/things/..", "GET /projects/shop/things/%2e%2e", "GET /projects/shop/things/a%2Fb",
		"GET /projects/shop/things/", "DELETE /projects/shop/things/1", "POST /projects/shop/things/?id=shop", "PUT /projects/shop/things/?id=other", "PUT /projects/shop/things/",
		"PUT /projects/shop/things/?id=shop&id=other", "GET //projects/shop/things/1", "PATCH /",
	} {
		method, path, _ := strings.Cut(bad, " ")
		if status := ask(method, path, r.ticket); status != http.StatusForbidden {
			t.Errorf("%s: %d", bad, status)
		}
	}
	if status := ask("GET", "/projects/shop/things/1", "another"); status != http.StatusUnauthorized {
		t.Errorf("without the ticket: %d", status)
	}
	if got := service.Requests(); len(got) != 0 {
		t.Errorf("the service was asked for %v", got)
	}
	if status := ask("GET", "/projects/shop/things/1", r.ticket); status != http.StatusOK {
		t.Errorf("what it needs: %d", status)
	}
}

func TestOneEffectIsPassedOnce(t *testing.T) {
	t.Parallel()
	r, ask, service := between(t, writing)
	const change = "/projects/shop/things/?id=shop"
	if status := ask("PUT", change, r.ticket); status != http.StatusOK {
		t.Fatalf("the first: %d", status)
	}
	if status := ask("PUT", change, r.ticket); status != http.StatusForbidden {
		t.Errorf("the second: %d", status)
	}
	saw := r.end()
	if _, settled := action.Classify(saw.record); !saw.sent || settled || saw.record.Status != http.StatusOK {
		t.Errorf("%+v", saw)
	}
	if got := service.Requests(); len(got) != 1 {
		t.Errorf("the service was asked %v", got)
	}
}

func TestAReadHasNoEffect(t *testing.T) {
	t.Parallel()
	r, ask, service := between(t, reading)
	for _, method := range []string{"PUT", "POST", "DELETE", "PATCH"} {
		if status := ask(method, "/projects/shop/things/1", r.ticket); status != http.StatusForbidden {
			t.Errorf("%s: %d", method, status)
		}
	}
	if len(service.Requests()) != 0 {
		t.Errorf("%v", service.Requests())
	}
}

// What a program left in a socket must not be sent after its run was judged to have sent nothing.
func TestNothingIsPassedAfterTheEnd(t *testing.T) {
	t.Parallel()
	r, _, service := between(t, writing)
	if saw := r.end(); saw.sent {
		t.Fatal("something was sent")
	}
	q := httptest.NewRequest("PUT", "/projects/shop/things/?id=shop", nil)
	q.Header.Set("Authorization", "Bearer "+r.ticket)
	r.ServeHTTP(httptest.NewRecorder(), q)
	if len(service.Requests()) != 0 {
		t.Errorf("%v", service.Requests())
	}
}

// A declaration that leaves something open is no declaration.
func TestAnOpenGrammarIsRefused(t *testing.T) {
	t.Parallel()
	free := Shaped("Anything.", `.*`)
	for name, i := range map[string]Invocation{
		"an effect nobody decided":   {Tool: "x", Words: []string{"x"}, Asks: []string{"GET /x"}},
		"a read that writes":         {Tool: "x", Words: []string{"x"}, Effect: policy.Read, Asks: []string{"POST /x"}},
		"a write that asks nothing":  {Tool: "x", Words: []string{"x"}, Effect: policy.Consequential, Asks: []string{"GET /x"}},
		"a word that is a flag":      {Tool: "x", Words: []string{"--x"}, Effect: policy.Read, Asks: []string{"GET /x"}},
		"a flag without a bound":     {Tool: "x", Words: []string{"x"}, Effect: policy.Read, Asks: []string{"GET /x"}, Flags: []Flag{{Argument: "a", Name: "--a", Value: free}}},
		"an alternative left open":   {Tool: "x", Words: []string{"x"}, Effect: policy.Read, Asks: []string{"GET /x"}, Flags: []Flag{{Argument: "a", Name: "--a", Value: Shaped("A.", `^a|b$`)}}},
		"a flag of the caller":       {Tool: "x", Words: []string{"x"}, Effect: policy.Read, Asks: []string{"GET /x"}, Flags: []Flag{{Argument: "a", Name: "--a=", Value: Word("A.")}}},
		"free text as an operand":    {Tool: "x", Words: []string{"x"}, Effect: policy.Read, Asks: []string{"GET /x"}, Operands: []Flag{{Argument: "a", Value: Line("A.", 9), Required: true}}},
		"an operand that may be not": {Tool: "x", Words: []string{"x"}, Effect: policy.Read, Asks: []string{"GET /x"}, Operands: []Flag{{Argument: "a", Value: Word("A.")}}},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s was accepted", name)
				}
			}()
			Command{Name: "toy", Tools: []Invocation{i}}.check()
		}()
	}
}

// waiting is a relay to a service that says when it was asked, and answers when answer is closed.
func waiting(t *testing.T, i Invocation) (r *relay, arrived, answer chan struct{}) {
	t.Helper()
	arrived, answer = make(chan struct{}, maxRequests), make(chan struct{})
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		arrived <- struct{}{}
		<-answer
		_, _ = io.WriteString(w, "{}")
	}))
	t.Cleanup(service.Close)
	c := directtest.Connect(t, provider.Settings{}, map[registry.Role]directtest.At{Role: {URL: service.URL, Editor: directtest.Bearer(t, service.URL, "the-real-token")}})
	e, err := c.Endpoint(Role)
	if err != nil {
		t.Fatal(err)
	}
	return newRelay(t.Context(), func() {}, e, i, direct.Arguments{"project": json.RawMessage(`"shop"`)}), arrived, answer
}

// A program that is killed, or gives up, while its one effect is under way takes nothing back: what came of it is waited for and kept.
func TestAnEffectIsJudgedWhenItsProgramIsGone(t *testing.T) {
	t.Parallel()
	r, arrived, answer := waiting(t, writing)
	ctx, killed := context.WithCancel(t.Context())
	q := httptest.NewRequestWithContext(ctx, "PUT", "/projects/shop/things/?id=shop", strings.NewReader("{}"))
	q.Header.Set("Authorization", "Bearer "+r.ticket)
	go r.ServeHTTP(httptest.NewRecorder(), q)
	<-arrived
	killed()
	close(answer)
	saw := r.end()
	if _, settled := action.Classify(saw.record); !saw.sent || settled || saw.record.Status != http.StatusOK {
		t.Errorf("%+v", saw)
	}
}

// A program that asks without end is stopped before the vendor is.
func TestAProgramAsksOnlySoOften(t *testing.T) {
	t.Parallel()
	r, ask, service := between(t, reading)
	refused := 0
	for range maxRequests + 5 {
		if ask("GET", "/projects/shop/things/1", r.ticket) == http.StatusForbidden {
			refused++
		}
	}
	if n := len(service.Requests()); n != maxRequests || refused != 5 {
		t.Errorf("the service was asked %d times, and %d were refused", n, refused)
	}
}

// Each request under way holds its body in this server's memory.
func TestAProgramHasFewRequestsUnderWay(t *testing.T) {
	t.Parallel()
	r, arrived, answer := waiting(t, reading)
	var all sync.WaitGroup
	begun := make(chan struct{}, 5*maxAtOnce)
	for range cap(begun) {
		all.Go(func() {
			q := httptest.NewRequestWithContext(t.Context(), "GET", "/projects/shop/things/1", signalled{begun})
			q.Header.Set("Authorization", "Bearer "+r.ticket)
			r.ServeHTTP(httptest.NewRecorder(), q)
		})
	}
	for range maxAtOnce {
		<-arrived
	}
	if n := len(begun); n != maxAtOnce {
		t.Errorf("%d bodies were read while %d requests are under way", n, maxAtOnce)
	}
	close(answer)
	all.Wait()
}

// signalled is a body that says when it is read.
type signalled struct{ begun chan<- struct{} }

func (s signalled) Read([]byte) (int, error) {
	s.begun <- struct{}{}
	return 0, io.EOF
}

// What a caller writes in an argument is one name in a path: no pattern, no other argument's place and no way up.
func TestAnArgumentIsNoPattern(t *testing.T) {
	t.Parallel()
	free := Invocation{
		Tool: "show", Words: []string{"show"}, Flags: []Flag{{Argument: "a", Value: Line("A.", 99)}, {Argument: "b", Value: Line("B.", 99)}}, Effect: policy.Read,
		Asks: []string{"GET /{a}/{b}"},
	}
	for value, open := range map[string]string{"*": "/other/else", "..": "/../else", ".": "/./else", "a/b": "/a/b", "a?": "/a?/else"} {
		a, _ := json.Marshal(value)
		r := newRelay(t.Context(), func() {}, provider.Endpoint{}, free, direct.Arguments{"a": a, "b": json.RawMessage(`"else"`)})
		if r.may(httptest.NewRequest("GET", open, nil)) {
			t.Errorf("%q opens %s: %v", value, open, r.asks)
		}
	}
}
