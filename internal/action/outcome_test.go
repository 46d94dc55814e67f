package action

import (
	"testing"

	"countersign/internal/egress"
	"countersign/internal/fault"
)

func TestForgettingToDecideIsUncertain(t *testing.T) {
	var o Outcome
	if o.Kind() != OutcomeUncertain || o.Code() == "" || o.Sentence() == "" {
		t.Errorf("%s %s %s", o.Kind(), o.Code(), o.Sentence())
	}
	if o = o.WithAnswer([]byte(`{}`)); o.Kind() != OutcomeUncertain || string(o.Result()) != `{}` {
		t.Errorf("%s %s", o.Kind(), o.Result())
	}
	s := Succeeded([]byte(`{"a":1}`), Evidence{}).WithAnswer([]byte(`{"b":2}`))
	if string(s.Result()) != `{"a":1}` || s.Code() != "" || s.Sentence() != "" {
		t.Errorf("%s", s.Result())
	}
}

// TestWhatTheTransportProves is the classification of actions.md, row by row.
func TestWhatTheTransportProves(t *testing.T) {
	sent := egress.Record{Watched: true, BytesWritten: 100}
	answered := func(status int) egress.Record { r := sent; r.Status = status; return r }
	broke := func(f egress.Failure) egress.Record { r := sent; r.Failure = f; return r }
	unsent := func(f egress.Failure) egress.Record { return egress.Record{Watched: true, Failure: f} }
	judge := func(name string, r egress.Record, want OutcomeKind) {
		t.Helper()
		o, settled := Classify(r)
		if !settled || o.Kind() != want {
			t.Errorf("%s: %s (settled %v), want %s", name, o.Kind(), settled, want)
		}
		if o.Code() == "" || o.Sentence() == "" || o.Evidence().BytesWritten != r.BytesWritten {
			t.Errorf("%s: %q %q %+v", name, o.Code(), o.Sentence(), o.Evidence())
		}
	}
	for _, f := range []egress.Failure{egress.Refused, egress.Unresolved, egress.Undialled, egress.Untrusted, egress.TimedOut, egress.Cancelled, egress.Broken} {
		judge("unsent: "+string(f), unsent(f), OutcomeFailed)
	}
	for _, f := range []egress.Failure{egress.TimedOut, egress.Cancelled, egress.Broken, egress.Untrusted, egress.Oversized, egress.Interrupted} {
		judge("sent: "+string(f), broke(f), OutcomeUncertain)
	}
	for status := 100; status < 600; status++ {
		switch status {
		case 400, 401, 403, 404, 405, 413, 415, 422, 429, 307, 308:
			judge("status", answered(status), OutcomeFailed)
		default:
			if status/100 == 2 && status != 202 {
				if _, settled := Classify(answered(status)); settled {
					t.Errorf("%d is settled by the transport alone", status)
				}
				continue
			}
			judge("status", answered(status), OutcomeUncertain)
		}
	}
	judge("nobody watched", egress.Record{Failure: egress.Undialled}, OutcomeUncertain)
	judge("nothing is known", egress.Record{Watched: true}, OutcomeUncertain)
	if o, _ := Classify(broke(egress.TimedOut)); o.Code() != fault.UpstreamTimeout {
		t.Errorf("a timeout is %s", o.Code())
	}
	// A status that came before the connection broke is still a status.
	r := answered(404)
	r.Failure = egress.Broken
	judge("404 with a broken body", r, OutcomeFailed)
}
