package e2e

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"countersign/internal/crm/crmtest"
)

// vendor is a Sandbox CRM in a process that is nobody's child but the test's: it can die, and stays dead until it is started again.
type vendor struct {
	address string
	dir     string // of its credentials
	cmd     *exec.Cmd
	log     *transcript
	exited  chan struct{}
}

// newVendorCRM starts one with the credentials of a data directory, so that a server in it can connect to it.
func newVendorCRM(t *testing.T, dir string) *vendor {
	t.Helper()
	v := &vendor{address: freeAddress(t), dir: dir}
	v.start(t)
	t.Cleanup(func() {
		_ = v.cmd.Process.Kill()
		<-v.exited
	})
	return v
}

// start starts it, empty as a restarted CRM is, and waits until it answers.
func (v *vendor) start(t *testing.T) {
	t.Helper()
	v.log, v.exited = &transcript{}, make(chan struct{})
	v.cmd = exec.Command(binary, "sandbox-crm", "--data-dir", v.dir, "--listen", v.address)
	v.cmd.Env, v.cmd.Stderr = environment(), v.log
	must(t, v.cmd.Start())
	go func() {
		defer close(v.exited)
		_ = v.cmd.Wait()
	}()
	eventually(t, "the vendor answers", func() bool {
		res, err := http.Get("http://" + v.address + "/healthz")
		if err != nil {
			return false
		}
		defer res.Body.Close()
		return res.StatusCode == http.StatusOK
	})
}

// dies is kill -9.
func (v *vendor) dies(t *testing.T) {
	t.Helper()
	must(t, v.cmd.Process.Kill())
	<-v.exited
}

// holds arms a fault that takes the next call of a tool and gives no answer. The returned function waits until a call is caught in it.
func (v *vendor) holds(t *testing.T, s *server, tool, mode string) (caught func()) {
	t.Helper()
	v.crm(t, s).BreaksFor(tool, mode, 1, 0)
	line := `"tool":"` + tool + `","mode":"` + mode + `"`
	return func() {
		t.Helper()
		eventually(t, "the vendor holds a call of "+tool, func() bool { return strings.Contains(v.log.String(), line) })
	}
}

// crm is its control side.
func (v *vendor) crm(t *testing.T, s *server) crmtest.CRM {
	t.Helper()
	return crmtest.CRM{T: t, URL: "http://" + v.address, Token: s.sandbox.CRM.Control}
}

// endpointsFile is an operator's file that moves runtimes: name and address in turn.
func endpointsFile(t *testing.T, moved ...string) string {
	t.Helper()
	text := "[endpoints]\n"
	for i := 0; i < len(moved); i += 2 {
		text += `"` + moved[i] + `" = "` + moved[i+1] + "\"\n"
	}
	file := filepath.Join(t.TempDir(), "endpoints.toml")
	must(t, os.WriteFile(file, []byte(text), 0o600))
	return "COUNTERSIGN_ENDPOINTS_FILE=" + file
}
