package reach_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"countersign/internal/crm"
	"countersign/internal/fault"
	"countersign/internal/provider"
	"countersign/internal/provider/hosted"
	"countersign/internal/reach"
	"countersign/internal/reach/reachtest"
)

const listing = "tools/list"

func TestAListServesCallsUntilItIsTooOld(t *testing.T) {
	w := newWorld(t)
	line := opened(t, w.Lines, w.Installed)
	for range 3 {
		if tools, err := line.Tools(t.Context(), reach.FreshFor); err != nil || len(tools) == 0 {
			t.Fatal(len(tools), err)
		}
	}
	if n := w.Upstream.Asked(listing); n != 0 {
		t.Errorf("a young list was asked for %d times again", n)
	}
	w.Patch("contacts_get", `{"description":"Something else."}`)
	pinned, _ := w.Installed.Standing.Snapshot.Find("contacts_get")
	if d, ok, err := line.Live(t.Context(), "contacts_get", 0); err != nil || !ok || d.Digest == pinned.Digest {
		t.Errorf("zero did not fetch the list of this moment: %t, %v", ok, err)
	}
	if d, _, _ := line.Live(t.Context(), "contacts_get", reach.FreshFor); d.Digest == pinned.Digest {
		t.Error("the newer list does not serve the calls after it")
	}
}

func TestALiveToolIsOfferedAndUsable(t *testing.T) {
	w := newWorld(t)
	line := opened(t, w.Lines, w.Installed)
	w.Patch("contacts_get", `{"inputSchema":null}`)
	w.Patch("deals_move", `null`)
	for tool, want := range map[string]bool{"contacts_list": true, "contacts_get": false, "deals_move": false, "contacts_List": false, "": false} {
		if _, ok, err := line.Live(t.Context(), tool, 0); err != nil || ok != want {
			t.Errorf("%q: %t, %v", tool, ok, err)
		}
	}
}

// Calls that need no newer list wait for the one under way; one that needs the list of now does not join it; and who gives up leaves it
// to the others.
func TestCallsWaitForOneListTogether(t *testing.T) {
	w := newWorld(t)
	w.Installed.Version++
	line := opened(t, w.Lines, w.Installed)
	arrived, release := w.Upstream.Hold(listing)
	defer release()
	impatient, giveUp := context.WithCancel(t.Context())
	var waiting, first sync.WaitGroup
	first.Go(func() {
		if _, err := line.Tools(impatient, reach.FreshFor); !fault.Is(err, fault.UpstreamTimeout) {
			t.Errorf("who gave up is answered %v", err)
		}
	})
	<-arrived
	for range 10 {
		waiting.Go(func() {
			if tools, err := line.Tools(t.Context(), reach.FreshFor); err != nil || len(tools) == 0 {
				t.Error(len(tools), err)
			}
		})
	}
	giveUp()
	first.Wait()
	if _, err := line.Tools(t.Context(), 0); err != nil {
		t.Error(err)
	}
	release()
	waiting.Wait()
	if n := w.Upstream.Asked(listing); n != 2 {
		t.Errorf("the list was asked for %d times, want the held one and the one of now", n)
	}
}

func TestAListThatFailedIsNotRemembered(t *testing.T) {
	w := newWorld(t)
	line := opened(t, w.NewLines(&faulty{Provider: hosted.New("test"), panics: 1}), w.Installed)
	if _, err := line.Tools(t.Context(), reach.FreshFor); !fault.Is(err, fault.CodeInternal) || strings.Contains(err.Error(), "secret") {
		t.Errorf("a panic is answered %v", err)
	}
	if tools, err := line.Tools(t.Context(), reach.FreshFor); err != nil || len(tools) == 0 {
		t.Errorf("after it: %d tools, %v", len(tools), err)
	}
}

// faulty panics a few times, then offers nothing at all or what it stands before.
type faulty struct {
	provider.Provider
	panics int
	empty  bool
	lists  int
}

func (f *faulty) Tools(ctx context.Context, c *provider.Conn) ([]provider.Definition, error) {
	f.lists++
	if f.lists <= f.panics {
		panic(errors.New("holds a secret"))
	}
	if f.empty {
		return nil, nil
	}
	return f.Provider.Tools(ctx, c)
}

func TestAnEmptyListIsAList(t *testing.T) {
	w := newWorld(t)
	f := &faulty{Provider: hosted.New("test"), empty: true}
	line := opened(t, w.NewLines(f), w.Installed)
	for range 2 {
		if tools, err := line.Tools(t.Context(), reach.FreshFor); err != nil || tools == nil || len(tools) != 0 {
			t.Errorf("%v, %v", tools, err)
		}
	}
	if f.lists != 1 {
		t.Errorf("it was asked for %d times", f.lists)
	}
}

func TestWhatPeopleAreShownLeavesOutWhatHasNoName(t *testing.T) {
	usable := provider.Define([]byte(`{"name":"ask","title":"Ask","description":"Asks.","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`))
	broken := provider.Define([]byte(`{"name":"tell"}`))
	shown := reach.Observed([]provider.Definition{usable, provider.Define([]byte(`{"description":"nameless"}`)), broken})
	if len(shown) != 2 || shown[0].Tool != "ask" || shown[0].Digest != usable.Digest || shown[0].Title != "Ask" || shown[0].Annotations != usable.Annotations ||
		string(shown[0].Raw) != string(usable.Raw) || shown[0].Recipe != provider.Recipe || shown[1].Tool != "tell" || shown[1].Problem == "" {
		t.Errorf("%+v", shown)
	}
}

func TestATestOfAConnectionSaysWhatItProved(t *testing.T) {
	w := newWorld(t)
	found := w.Lines.Probe(t.Context(), w.Installed)
	if !found.OK || !strings.HasPrefix(found.Found, "The credential works") || len(found.Tools) < 10 {
		t.Errorf("%+v", found)
	}
	w.Patch("contacts_get", `{"inputSchema":null}`)
	w.Patch("contacts_list", `null`) // the probe of the manifest
	found = w.Lines.Probe(t.Context(), w.Installed)
	if !found.OK || !strings.HasPrefix(found.Found, "Nothing here proves the credential") || !strings.HasSuffix(found.Found, " 1 of them cannot be used.") {
		t.Errorf("%+v", found)
	}
	inactive := w.Installed
	inactive.State = "disconnected"
	if found = w.Lines.Probe(t.Context(), inactive); found.OK || found.What != "The connection is not active." || found.Tools != nil {
		t.Errorf("%+v", found)
	}
}

func TestARefusedCredentialIsSaidAndNeverShown(t *testing.T) {
	w := newWorld(t)
	w.Upstream.Become(crm.New(crm.Config{BearerToken: "another"}).Handler())
	found := w.Lines.Probe(t.Context(), w.Installed)
	if found.OK || !strings.Contains(found.What, "refused the credential") || found.Next == "" || strings.Contains(found.What+found.Next, reachtest.Credential) {
		t.Errorf("%+v", found)
	}
	w.Server.Close()
	if found = w.Lines.Probe(t.Context(), w.Installed); found.OK || found.What == "" || found.Next == "" {
		t.Errorf("where nobody listens: %+v", found)
	}
}
