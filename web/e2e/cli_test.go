package e2e

import (
	"strings"
	"testing"

	"countersign/internal/provider/cli/sentrycli/sentrytest"
	"countersign/internal/provider/direct/directtest"
)

// TestAReleaseIsDeletedByACommand is work with a vendor's real command: an admin connects it, an agent reads, a deletion waits and is
// approved, Sentry applies it and its answer is lost, and a read by the same command settles it without a second deletion. A value that
// would be a flag never reaches a command line.
func TestAReleaseIsDeletedByACommand(t *testing.T) {
	t.Parallel()
	v := sentrytest.New(t)
	s := newServer(t, "COUNTERSIGN_DEMO=1", endpointsFile(t, "sentry_cli.v1/api", v.URL))
	s.start(t)
	_, key := installs(t, s, "sentry-cli", map[string]string{"token": sentrytest.Token})

	a := s.runtime().starts(t, task("engineering", "REL-2")).connects(t, eras[0])
	if seen := a.reads(t, key+"__organizations_list", `{}`); !strings.Contains(seen, "acme") || strings.Contains(seen, sentrytest.Token) {
		t.Errorf("the organizations read %s", seen)
	}
	a.refused(t, "invalid_arguments", key+"__releases_delete", `{"org":"acme","project":"web","version":"--help"}`)
	id := a.stages(t, key+"__releases_delete", `{"org":"acme","project":"web","version":"v1"}`)
	approver := s.signsIn(t, "approver@sandbox.test", desk)
	approver.opens(t, "/actions/"+id)
	approver.reads(t, "Delete release v1 of project web in acme", "gone for good")
	v.Break("releases_delete", directtest.ApplyThenReset)
	approver.presses(t, "approve")
	if done := s.runtime().settles(t, id, "succeeded"); done.Resolution != "reconciler" {
		t.Errorf("settled by %s", done.Resolution)
	}
	if n := len(v.Effects("releases_delete")); n != 1 {
		t.Errorf("%d deletions", n)
	}
}

// A command whose program is not there is said to be so before anybody enters a credential.
func TestACommandThatIsNotInstalledAsksForNoCredential(t *testing.T) {
	t.Parallel()
	s := sharedServer(t)
	admin := s.signsIn(t, "admin@sandbox.test", desk)
	for _, path := range []string{"/catalog/gh", "/connections/new/gh"} {
		admin.opens(t, path)
		admin.reads(t, "It cannot be connected on this server yet.", "is not installed", "go build -trimpath")
	}
}
