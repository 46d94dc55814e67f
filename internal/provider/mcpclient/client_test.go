package mcpclient_test

import (
	"encoding/json"
	"testing"

	"countersign/internal/provider"
)

func TestQuick(t *testing.T) {
	w := startCRM(t)
	c := w.conn(t, provider.Settings{})
	tools, err := client.Tools(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range tools {
		t.Log(d.Name, d.Digest, d.Annotations, d.Problem)
	}
	r, err := client.Read(t.Context(), c, provider.Call{Tool: "contacts_list", Arguments: json.RawMessage(`{"limit":2}`)})
	t.Log(string(r.Raw), err)
	f, err := client.Test(t.Context(), c)
	t.Log(f, err)
	o := client.Execute(t.Context(), c, provider.Call{Tool: "notes_add", Arguments: json.RawMessage(`{"contact_id":"c_1001","text":"hi"}`)})
	t.Log(o.Kind(), string(o.Result()), o.Sentence(), o.Evidence())
	for _, mode := range []string{"apply_then_hang", "apply_then_reset", "apply_then_500", "apply_then_truncate", "reject", "hang", "reset", "slow", "late_apply"} {
		w.fault(t, "notes_add", mode)
		o := client.Execute(t.Context(), c, provider.Call{Tool: "notes_add", Arguments: json.RawMessage(`{"contact_id":"c_1001","text":"hi"}`)})
		t.Log(mode, o.Kind(), string(o.Result()), o.Sentence(), o.Evidence())
	}
}
