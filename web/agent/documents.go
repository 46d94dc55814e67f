package agent

import (
	"net/http"
	"strings"
	"time"

	"countersign/internal/audit"
	"countersign/internal/capability"
	"countersign/internal/installation"
)

// startedRun is a run as the service API shows it. Token is there once, in the answer that started it.
type startedRun struct {
	ID         string            `json:"id"`
	Token      string            `json:"token,omitempty"`
	Surface    string            `json:"surface"`
	Profile    string            `json:"profile"`
	Task       string            `json:"task,omitempty"`
	OnBehalfOf string            `json:"on_behalf_of,omitempty"`
	State      string            `json:"state"` // live, ended or expired
	Budget     consequential     `json:"budget"`
	StartedAt  time.Time         `json:"started_at"`
	ExpiresAt  time.Time         `json:"expires_at"`
	EndedAt    *time.Time        `json:"ended_at,omitempty"`
	Gateway    capability.Config `json:"gateway"`
}

type consequential struct {
	Limit int `json:"consequential"`
	Used  int `json:"used"`
}

func runDocument(l capability.Live, publicURL string) startedRun {
	r := l.Run
	state := "live"
	switch {
	case r.EndedAt != nil:
		state = "ended"
	case !r.Live(l.Now):
		state = "expired"
	}
	return startedRun{
		ID: string(r.ID), Surface: string(r.Surface), Profile: r.Profile, Task: r.Task, OnBehalfOf: r.OnBehalfEmail, State: state,
		Budget: consequential{Limit: r.Budget, Used: r.Used}, StartedAt: r.StartedAt.UTC(), ExpiresAt: r.ExpiresAt.UTC(), EndedAt: r.EndedAt,
		Gateway: capability.ConfigOf(l, publicURL),
	}
}

// connectionDocument is a connection as the service API shows it.
type connectionDocument struct {
	Key         string   `json:"key"`
	Name        string   `json:"name"`
	Integration string   `json:"integration"`
	Kind        string   `json:"kind"`
	State       string   `json:"state"`
	Mode        string   `json:"mode,omitempty"` // absent until a person has chosen one
	Tools       []string `json:"tools"`          // granted
	Healthy     bool     `json:"healthy"`
}

func describeConnection(c installation.Connection) connectionDocument {
	return connectionDocument{
		Key: c.Key.String(), Name: c.Name, Integration: c.Integration, Kind: string(c.Kind), State: string(c.State),
		Mode: string(c.Standing.Mode), Tools: c.Standing.Snapshot.Tools(), Healthy: c.Health.OK,
	}
}

// auditDocument is an entry of the trail as the service API shows it.
type auditDocument struct {
	ID     int64             `json:"id"`
	Seq    int64             `json:"seq,omitempty"` // absent until the entry is sealed into the chain
	At     time.Time         `json:"at"`
	Actor  auditActor        `json:"actor"`
	Event  string            `json:"event"`
	Object auditObject       `json:"object"`
	Digest string            `json:"args_digest,omitempty"`
	Facts  map[string]string `json:"facts"`
}

type auditActor struct {
	Kind string `json:"kind"`
	ID   string `json:"id"`
	Name string `json:"name"`
}

type auditObject struct {
	Kind string `json:"kind"`
	ID   string `json:"id"`
}

func describeEntry(r audit.Recorded) auditDocument {
	d := auditDocument{
		ID: r.ID, Seq: r.Seq, At: r.At.UTC(), Actor: auditActor{string(r.Actor.Kind), r.Actor.ID, r.Actor.Name}, Event: string(r.Event),
		Object: auditObject{r.Object.Kind, r.Object.ID}, Digest: r.Digest, Facts: map[string]string{},
	}
	for _, f := range r.Facts {
		d.Facts[f.Name] = f.Value
	}
	return d
}

// bearer reads the one Authorization header.
func bearer(r *http.Request) (string, bool) {
	values := r.Header.Values("Authorization")
	if len(values) != 1 {
		return "", false
	}
	scheme, token, ok := strings.Cut(values[0], " ")
	return strings.TrimSpace(token), ok && strings.EqualFold(scheme, "Bearer")
}
