package e2e

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestUpstreamsNobodyHereWrote connects two reference servers of the protocol's own project through the operator's endpoints file:
// server-everything over streamable HTTP, and server-memory, which only speaks over pipes, behind a bridge made of the official SDK.
// Trusted runtimes of the catalog are pointed at them; the product cannot tell.
func TestUpstreamsNobodyHereWrote(t *testing.T) {
	t.Parallel()
	everything, memory := startEverything(t), startMemory(t)
	s := newServer(t, "COUNTERSIGN_DEMO=1", endpointsFile(t, "microsoft_learn.v1", everything, "deepwiki.v1", memory))
	s.start(t)
	for _, moved := range []string{everything, memory} {
		if !strings.Contains(s.output.String(), moved) {
			t.Errorf("the log does not say loudly that a runtime was moved to %s", moved)
		}
	}

	admin := s.signsIn(t, "admin@sandbox.test", desk)
	learn := connects(t, admin, "microsoft-learn", "Everything")
	wiki := connects(t, admin, "deepwiki", "Memory")
	admin.opens(t, "/profiles/engineering")
	for _, key := range []string{learn, wiki} {
		admin.ticks(t, "use", key, true)
	}
	admin.presses(t, "save-profile")

	run := s.runtime().starts(t, task("engineering", "ENG-12"))
	for _, era := range eras {
		a := run.connects(t, era)
		names := a.tools(t)
		for _, want := range []string{learn + "__echo", learn + "__get-sum", wiki + createEntities, wiki + "__read_graph"} {
			if !slices.Contains(names, want) {
				t.Fatalf("a %s client misses %s among %v", era, want, names)
			}
		}
	}
	a := run.connects(t, eras[0])
	t.Run("an effect on server-memory waits, is approved, and a read finds it", func(t *testing.T) { s.remembers(t, a, wiki) })
	t.Run("a dead upstream hides nothing of the others", func(t *testing.T) { outlives(t, a, wiki) })
}

// createEntities is server-memory's create_entities: its name ends as a shortened one would, so it is closed with its hash.
const createEntities = "__create_entities_rnfzdtks"

// connects installs an integration that asks for nothing, whose probe these servers do not know, and grants what it can.
func connects(t *testing.T, admin *person, integration, name string) (key string) {
	t.Helper()
	admin.opens(t, "/connections/new/"+integration)
	admin.fills(t, "name", name)
	admin.presses(t, "install")
	admin.reads(t, name)
	key = lastPart(admin.URL())
	admin.ticks(t, "mode", "ask_user_on_write", true)
	admin.presses(t, "save-access")
	return key
}

func (s *server) remembers(t *testing.T, a agent, key string) {
	id := a.stages(t, key+createEntities, `{"entities":[{"name":"Harbor","entityType":"place","observations":["has a pine"]}]}`)
	approver := s.signsIn(t, "approver@sandbox.test", desk)
	approver.opens(t, "/actions/"+id)
	approver.reads(t, "create_entities", "has a pine") // no reviewed sentence: the name and every argument
	approver.presses(t, "approve")
	s.runtime().settles(t, id, "succeeded")
	if text := a.calls(t, "countersign__actions_get", `{"action_id":"`+id+`"}`).text; !strings.Contains(text, "Harbor") {
		t.Errorf("the result of it reads %s", text)
	}
}

// outlives closes nothing of ours: it asks a tool that is not there, and then goes on with one that is.
func outlives(t *testing.T, a agent, key string) {
	a.refused(t, "tool_not_granted", key+"__no_such_tool", `{}`)
	if len(a.tools(t)) == 0 {
		t.Error("nothing is listed")
	}
}

// startEverything runs server-everything and returns its address.
func startEverything(t *testing.T) string {
	t.Helper()
	_, port, err := net.SplitHostPort(freeAddress(t))
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	cmd := counterpart(t, ctx, "mcp-server-everything", "streamableHttp")
	cmd.Env = append(cmd.Env, "PORT="+port)
	out, err := cmd.StderrPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() { cancel(); _ = cmd.Wait() })
	go func() { // drained, or the child blocks
		for lines := bufio.NewScanner(out); lines.Scan(); {
		}
		_, _ = io.Copy(io.Discard, out)
	}()
	eventually(t, "server-everything listens", func() bool {
		conn, err := net.DialTimeout("tcp", "127.0.0.1:"+port, time.Second)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
	return "http://127.0.0.1:" + port + "/mcp"
}

// startMemory runs server-memory behind a bridge: each of its tools is served over HTTP as it defines it.
func startMemory(t *testing.T) string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	cmd := counterpart(t, ctx, "mcp-server-memory")
	cmd.Env = append(cmd.Env, "MEMORY_FILE_PATH="+filepath.Join(t.TempDir(), "memory.jsonl"))
	client := mcp.NewClient(&mcp.Implementation{Name: "bridge", Version: "1"}, nil)
	session, err := client.Connect(ctx, &mcp.CommandTransport{Command: cmd}, nil)
	must(t, err)
	t.Cleanup(func() { _ = session.Close() })
	bridge := mcp.NewServer(&mcp.Implementation{Name: "memory", Version: "1"}, nil)
	for tool, err := range session.Tools(ctx, nil) {
		must(t, err)
		bridge.AddTool(tool, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return session.CallTool(ctx, &mcp.CallToolParams{Name: r.Params.Name, Arguments: r.Params.Arguments})
		})
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	server := &http.Server{Handler: mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return bridge }, nil), ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return "http://" + listener.Addr().String() + "/mcp"
}
