package web_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"countersign/internal/policy"
)

func TestModeAndTools(t *testing.T) {
	s := newShop(t)
	b := s.as("admin@harbor.test")
	key := b.installed()
	path := "/connections/" + key.String()

	b.save(key, "", "").is(t, 422, "Choose how freely agents may act here")
	b.save(key, "root", "").is(t, 422, "There is no mode")
	s.grants(key, "")

	b.save(key, "read_only", "").goes(t, path)
	s.grants(key, policy.ReadOnly, crmReads...)

	// An explicit list wins over what the mode would select, and an explicit empty one means none.
	b.save(key, "autonomous", "1", "contacts_get", "refund_issue").goes(t, path)
	s.grants(key, policy.Autonomous, "contacts_get", "refund_issue")
	if !strings.Contains(b.get(path).body, `name="tools_supplied" value="1" checked`) {
		t.Error("a narrower list does not open as a list")
	}

	// An unchanged mode without a list changes nothing, and says so.
	b.save(key, "autonomous", "").goes(t, path)
	b.get(path).is(t, 200, "Nothing to change")
	s.grants(key, policy.Autonomous, "contacts_get", "refund_issue")
	b.save(key, "autonomous", "", "contacts_get", "refund_issue").goes(t, path)
	s.grants(key, policy.Autonomous, "contacts_get", "refund_issue")

	// A browser without a script can post ticks beside "every tool": the question is asked back, with the ticks kept.
	asked := b.save(key, "autonomous", "", "contacts_get").is(t, 409, "Not saved. You ticked single tools")
	ticks(t, asked, "contacts_get")
	s.grants(key, policy.Autonomous, "contacts_get", "refund_issue")

	// What the mode does not allow refuses the whole save, and keeps mode and ticks.
	refused := b.save(key, "read_only", "1", "contacts_get", "contacts_delete", "nowhere").is(t, 422, "“contacts_delete” writes", "no tool “nowhere” any more", `value="read_only" checked`)
	ticks(t, refused, "contacts_delete", "contacts_get")
	s.grants(key, policy.Autonomous, "contacts_get", "refund_issue")

	b.save(key, "read_only", "1").goes(t, path)
	s.grants(key, policy.ReadOnly)
}

var checkedTool = regexp.MustCompile(`name="tools" value="([^"]*)" checked`)

// ticks fails unless exactly these tools are ticked.
func ticks(t *testing.T, p page, want ...string) {
	t.Helper()
	var got []string
	for _, m := range checkedTool.FindAllStringSubmatch(p.body, -1) {
		got = append(got, m[1])
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Fatalf("ticked: %v, want %v", got, want)
	}
}

func TestAChangedToolIsHeldBackUntilSomebodyReadIt(t *testing.T) {
	s := newShop(t)
	b := s.as("admin@harbor.test")
	key := b.installed()
	path := "/connections/" + key.String()
	b.save(key, "ask_user_on_write", "").goes(t, path)

	s.patch("deals_move", map[string]any{"description": "Moves a deal to another stage and emails the contact.", "inputSchema": map[string]any{"properties": map[string]any{"notify": map[string]any{"type": "boolean", "default": true}}}})
	s.patch("deals_archive", map[string]any{"description": "Archives a deal.", "inputSchema": map[string]any{"type": "object"}})
	b.post(path+"/test").goes(t, path)

	p := b.get(path).is(t, 200, "changed and is held back", "emails the contact", `data-test="accept-definition"`, "Difference of deals_move", "definition_changed", ">New<")
	if strings.Index(p.body, "held back") > strings.Index(p.body, `data-test="save-access"`) {
		t.Error("the change does not stand first")
	}
	if !regexp.MustCompile(`value="deals_move" disabled`).MatchString(p.body) {
		t.Error("a held-back tool can be ticked")
	}
	b.get("/catalog").is(t, 200, "Needs a review")
	b.get("/connections").is(t, 200, "1 is held back", "1 is new and not granted")
	s.grants(key, policy.AskUserOnWrite, crmAll...)

	b.save(key, "ask_user_on_write", "1", "deals_move").is(t, 422, "“deals_move” changed and is held back")

	accept := func(version, digest string) page {
		return b.post(path+"/accept", "tool", "deals_move", "digest", digest, "version", version)
	}
	digest := p.between(t, `name="digest" value="`, `"`)
	accept(b.version(key), strings.Repeat("0", 64)).is(t, 409, "changed again while you read")

	// It changes once more before the press: what was read is not what would be accepted.
	stale := b.version(key)
	s.patch("deals_move", map[string]any{"description": "Moves a deal and deletes the contact."})
	b.post(path + "/test")
	accept(stale, digest).is(t, 409)
	accept(b.version(key), digest).is(t, 409, "changed again while you read", "deletes the contact")

	digest = b.get(path).between(t, `name="digest" value="`, `"`)
	version := b.version(key)
	accept(version, digest).goes(t, path)
	accept(version, digest).is(t, 409)
	b.get(path).is(t, 200, "Accepted.").lacks(t, "changed and is held back")
	if pin, _ := s.standing(key).Snapshot.Find("deals_move"); pin.Digest != digest {
		t.Errorf("pinned %s, want %s", pin.Digest, digest)
	}
	if _, granted := s.standing(key).Snapshot.Find("deals_archive"); granted {
		t.Error("a tool that appeared was granted")
	}
}

// A held-back tool has no tick to post: moving the mode alone is no question, and leaves it out.
func TestMovingTheModeWhileSomethingIsHeldBack(t *testing.T) {
	s := newShop(t)
	b := s.as("admin@harbor.test")
	key := b.installed()
	path := "/connections/" + key.String()
	b.save(key, "read_only", "").goes(t, path)
	s.patch("contacts_get", map[string]any{"description": "Something else."})
	b.post(path+"/test").goes(t, path)
	left := slices.DeleteFunc(slices.Clone(crmReads), func(n string) bool { return n == "contacts_get" })
	b.save(key, "ask_user_on_write", "", left...).goes(t, path)
	got := s.standing(key).Snapshot
	if _, ok := got.Find("contacts_get"); ok || got.Len() != 10 {
		t.Fatalf("granted: %v", got.Tools())
	}
}

func TestAStaleFormChangesNothing(t *testing.T) {
	s := newShop(t)
	b, other := s.as("admin@harbor.test"), s.as("owner@harbor.test")
	key := b.installed()
	path := "/connections/" + key.String()
	seen := b.version(key)
	other.save(key, "read_only", "").goes(t, path)
	b.post(path+"/access", "version", seen, "mode", "autonomous", "tools_supplied", "").is(t, 409, "Somebody else changed this connection while you read", `value="read_only" checked`)
	for _, part := range []string{"/rename", "/disconnect", "/retire"} {
		b.post(path+part, "version", seen, "name", "Mine").is(t, 409)
		b.post(path+part, "version", "-1", "name", "Mine").is(t, 422)
	}
	for _, part := range []string{"/disconnect", "/retire"} {
		b.post(path+part).is(t, 422, "Not ended.")
	}
	s.grants(key, policy.ReadOnly, crmReads...)

	// Mode and tools may be posted without a version: then the connection is meant as it is.
	b.post(path+"/access", "mode", "read_only", "tools_supplied", "1", "tools", "wait").goes(t, path)
	s.grants(key, policy.ReadOnly, "wait")
}
