//go:build linux

package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// network says that this process is inside the network it was given.
const network = "COUNTERSIGN_E2E_NETWORK"

// TestTheServerInANetworkOfItsOwn runs the whole server as it is released, with no address vouched for: in a network where public
// addresses, private ones, the names and the certificate authority are the test's. The rule for what goes out has no switch that turns it
// off, so this is the only way to see it work on a vendor's real entry.
func TestTheServerInANetworkOfItsOwn(t *testing.T) {
	if os.Getenv(network) != "" {
		insideTheNetwork(t)
		return
	}
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestTheServerInANetworkOfItsOwn$", "-test.count=1")
	if testing.Verbose() {
		cmd.Args = append(cmd.Args, "-test.v")
	}
	cmd.Env = append(os.Environ(), network+"=1", "COUNTERSIGN_E2E_BINARY="+binary, "COUNTERSIGN_E2E_AGENT_BINARY="+agentBinary)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET | syscall.CLONE_NEWNS,
		UidMappings: sameIDs(t, "uid", os.Getuid()), GidMappings: sameIDs(t, "gid", os.Getgid()), GidMappingsEnableSetgroups: os.Geteuid() == 0,
		AmbientCaps: []uintptr{unix.CAP_NET_ADMIN, unix.CAP_NET_BIND_SERVICE, unix.CAP_SYS_ADMIN}, // which an unprivileged user has in there
		Pdeathsig:   syscall.SIGKILL,
	}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		t.Fatalf("inside: %v\n%s", err, out)
	case err != nil:
		t.Fatalf("This machine gives no program a network of its own: %v. Allow user namespaces: user.max_user_namespaces above 0, and where they "+
			"exist kernel.unprivileged_userns_clone=1 and kernel.apparmor_restrict_unprivileged_userns=0.", err)
	case testing.Verbose():
		t.Logf("inside:\n%s", out)
	}
	if !bytes.Contains(out, []byte("PASS")) {
		t.Errorf("nothing ran inside:\n%s", out)
	}
}

// sameIDs keeps every user as they are, so that PostgreSQL finds its own in there: all of them for root, one for anybody else.
func sameIDs(t *testing.T, kind string, self int) (out []syscall.SysProcIDMap) {
	t.Helper()
	if os.Geteuid() != 0 {
		return []syscall.SysProcIDMap{{ContainerID: self, HostID: self, Size: 1}}
	}
	raw, err := os.ReadFile("/proc/self/" + kind + "_map")
	must(t, err)
	for line := range strings.Lines(string(raw)) {
		var from, outer, size int
		_, err := fmt.Sscan(line, &from, &outer, &size)
		must(t, err)
		out = append(out, syscall.SysProcIDMap{ContainerID: from, HostID: from, Size: size})
	}
	return out
}

// insideTheNetwork starts the server once; each group changes the world around it.
func insideTheNetwork(t *testing.T) {
	n := newInternet(t)
	o := newOutside(t, n)
	dripping := o.drips(t)
	t.Run("a vendor's entry works", o.works)
	t.Run("by consent", o.worksByConsent)
	t.Run("a server of the organization's own", o.ownServer)
	t.Run("a server of the organization's own, signed in to", o.ownServerByConsent)
	t.Run("an address is refused", o.addresses)
	t.Run("a name changes its mind", o.rebinds)
	t.Run("certificates", o.certificates)
	t.Run("redirects", o.redirects)
	t.Run("answers without end", o.bombs)
	t.Run("what comes back", o.reflects)
	t.Run("what a document names", o.documents)
	t.Run("a token endpoint that turns", o.tokenEndpoint)
	t.Run("a drip", dripping)
	n.nothingInward(t)
	o.keptSecrets(t)
}

// bound mounts a file of ours over one of the machine's, for this process and its children.
func bound(t *testing.T, over, text string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), filepath.Base(over))
	must(t, os.WriteFile(file, []byte(text), 0o644))
	real, err := filepath.EvalSymlinks(over)
	must(t, err)
	must(t, unix.Mount(file, real, "", unix.MS_BIND, ""))
}
