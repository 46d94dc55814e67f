package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"countersign/db/embedded"
)

// balancer is the plainest there is: it gives connections to replicas in turn, and to the next one where one refuses. It knows no HTTP.
type balancer struct {
	url      string
	replicas []string
	turn     atomic.Int64
	listener net.Listener
	heard    transcript // what clients sent
}

func newBalancer(t *testing.T, address string, replicas ...string) *balancer {
	t.Helper()
	b := &balancer{url: "http://" + address, replicas: replicas}
	b.opens(t)
	t.Cleanup(b.shut)
	return b
}

// opens lets clients connect.
func (b *balancer) opens(t *testing.T) {
	t.Helper()
	listener, err := net.Listen("tcp", strings.TrimPrefix(b.url, "http://"))
	must(t, err)
	b.listener = listener
	go func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			go b.carry(from)
		}
	}()
}

// shut refuses new connections; those that are open go on.
func (b *balancer) shut() { _ = b.listener.Close() }

func (b *balancer) carry(from net.Conn) {
	defer from.Close()
	first := b.turn.Add(1)
	for i := range b.replicas {
		to, err := net.DialTimeout("tcp", b.replicas[(int(first)+i)%len(b.replicas)], time.Second)
		if err != nil {
			continue
		}
		defer to.Close()
		go func() {
			_, _ = io.Copy(to, io.TeeReader(from, &b.heard))
			_ = to.(*net.TCPConn).CloseWrite()
		}()
		_, _ = io.Copy(from, to)
		return
	}
}

// cluster is two replicas behind a balancer on the database and the CRM of a third server, which answers nobody here.
type cluster struct {
	home     *server
	replicas [2]*server
	front    *balancer
	pool     *pgxpool.Pool
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{home: newServer(t, "COUNTERSIGN_DEMO=1")}
	c.home.start(t)
	access, ok := embedded.Attach(t.Context(), c.home.dir)
	if !ok {
		t.Fatal("the embedded database does not answer")
	}
	var err error
	c.pool, err = pgxpool.New(t.Context(), access.SuperDSN(embedded.Database))
	must(t, err)
	t.Cleanup(c.pool.Close)
	file := endpointsFile(t, "sandbox_crm.v1", c.home.sandbox.CRM.URL+"/mcp")
	front := freeAddress(t)
	var addresses []string
	for i := range c.replicas {
		c.replicas[i] = newServer(t, "DATABASE_URL="+access.DSN(embedded.Database), "COUNTERSIGN_PUBLIC_URL=http://"+front,
			"COUNTERSIGN_KEYSET_FILE="+filepath.Join(c.home.dir, "keyset.json"), file)
		c.replicas[i].start(t)
		addresses = append(addresses, strings.TrimPrefix(c.replicas[i].url, "http://"))
	}
	c.front = newBalancer(t, front, addresses...)
	return c
}

// throughFront sends a request on a connection of its own, so that each may meet another replica; again and again while a replica that is
// dying cuts it off. What is sent here may be sent twice: that is the product's promise.
func (c *cluster) throughFront(client *http.Client, make func() *http.Request) (int, string, error) {
	var status int
	var body []byte
	var last error
	answered := poll(context.Background(), func() bool {
		res, err := client.Do(make())
		if err != nil {
			last = err
			return false
		}
		defer res.Body.Close()
		body, err = io.ReadAll(res.Body)
		status, last = res.StatusCode, errors.Join(err, fmt.Errorf("%d %s", res.StatusCode, body))
		return err == nil && status < 500
	})
	if !answered {
		return 0, "", last
	}
	return status, string(body), nil
}

func oneByOne() *http.Client {
	jar, _ := cookiejar.New(nil) // never fails without options
	return &http.Client{
		Jar: jar, Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 20 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func request(method, address, contentType, body, bearer string) *http.Request {
	r, err := http.NewRequest(method, address, strings.NewReader(body))
	if err != nil {
		panic(err) // of an address made here
	}
	r.Header.Set("Content-Type", contentType)
	r.Header.Set("Accept", "application/json, text/event-stream")
	if bearer != "" {
		r.Header.Set("Authorization", "Bearer "+bearer)
	}
	return r
}

func toolCall(tool, arguments string) string {
	return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + arguments + `}}`
}

// TestTwoReplicas is two servers on one database: what one was told, the next call at the other knows; and when one is killed in the
// middle of its work, nothing that was asked for is lost, and nothing is done twice.
func TestTwoReplicas(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	key := c.home.sandbox.Connections[0].Key
	t.Run("a run that was ended at one is unknown at the other", func(t *testing.T) {
		one, other := agentRuntime{c.replicas[0].url, c.home.sandbox.Token}, c.replicas[1]
		ask := func(token string) int {
			t.Helper()
			r := request(http.MethodPost, other.url+"/gateway/mcp", "application/json", toolCall(key+"__contacts_list", `{"limit":1}`), token)
			res, err := http.DefaultClient.Do(r)
			must(t, err)
			defer res.Body.Close()
			_, err = io.Copy(io.Discard, res.Body)
			must(t, err)
			return res.StatusCode
		}
		for i := range 20 {
			run := one.starts(t, task("engineering", fmt.Sprint("END-", i)))
			for range 3 {
				if got := ask(run.Token); got != http.StatusOK {
					t.Fatalf("a read answers %d", got)
				}
			}
			if got := one.asks(t, http.MethodPost, "/api/v1/runs/"+run.ID+"/end", nil, nil); got != http.StatusOK {
				t.Fatalf("ending answers %d", got)
			}
			if got := ask(run.Token); got != http.StatusUnauthorized {
				t.Fatalf("run %d was ended at one replica, and the other answers its next call with %d", i, got)
			}
		}
	})
	t.Run("one is killed under load", func(t *testing.T) { c.oneIsKilled(t, key) })
}

func (c *cluster) oneIsKilled(t *testing.T, key string) {
	const agents, each = 6, 15
	front := agentRuntime{c.front.url, c.home.sandbox.Token}
	approver := oneByOne()
	form := url.Values{"email": {"approver@sandbox.test"}, "password": {c.home.password(t, "approver@sandbox.test")}}
	status, _, err := c.throughFront(approver, func() *http.Request {
		return request(http.MethodPost, front.url+"/sign-in", formType, form.Encode(), "")
	})
	if err != nil || status != http.StatusSeeOther {
		t.Fatal("the approver cannot sign in", status, err)
	}
	runs := make([]started, agents)
	for i := range runs {
		runs[i] = front.starts(t, task("engineering", fmt.Sprint("KILL-", i)))
	}
	// Each effect takes a moment, so that the killed replica has some under way.
	c.home.crm(t).BreaksFor("contacts_create", "slow", 1000, 0.2)
	ids := make(chan string, agents*each)
	var staged atomic.Int64
	failed := make(chan error, agents+1)
	var work sync.WaitGroup
	for i, run := range runs {
		work.Go(func() {
			client := oneByOne()
			for n := range each {
				id, err := c.stages(client, run, key, fmt.Sprintf("replica %d %d", i, n))
				if err != nil {
					failed <- err
					return
				}
				staged.Add(1)
				ids <- id
			}
		})
	}
	var approving sync.WaitGroup
	approving.Go(func() {
		for id := range ids {
			if err := c.approves(approver, id); err != nil {
				failed <- err
				return
			}
		}
	})
	eventually(t, "half is asked for", func() bool { return staged.Load() >= agents*each/2 || len(failed) > 0 })
	must(t, c.replicas[0].cmd.Process.Kill())
	work.Wait()
	close(ids)
	approving.Wait()
	select {
	case err := <-failed:
		t.Fatal(err)
	default:
	}
	c.accounts(t, agents*each)
}

// stages asks until it is answered, which may be twice: a cut-off call may have been staged, and the same call is the same action.
func (c *cluster) stages(client *http.Client, run started, key, name string) (string, error) {
	body := toolCall(key+"__contacts_create", `{"name":"`+name+`","email":"`+strings.ReplaceAll(name, " ", ".")+`@example.com"}`)
	status, answer, err := c.throughFront(client, func() *http.Request {
		return request(http.MethodPost, c.front.url+"/gateway/mcp", "application/json", body, run.Token)
	})
	if err != nil {
		return "", err
	}
	var got struct {
		Result struct {
			Structured struct {
				ID string `json:"action_id"`
			} `json:"structuredContent"`
		} `json:"result"`
	}
	if err := json.Unmarshal([]byte(answer), &got); err != nil || status != http.StatusOK || got.Result.Structured.ID == "" {
		return "", fmt.Errorf("staging answers %d %s", status, answer)
	}
	return got.Result.Structured.ID, nil
}

// approves presses the button until some replica answers. An answer that was cut off may have been a yes: then the page says that it is
// decided, which is as good.
func (c *cluster) approves(client *http.Client, id string) error {
	var digest string
	var version int
	if err := c.pool.QueryRow(context.Background(), `SELECT args_digest, version FROM actions WHERE id = $1`, id).Scan(&digest, &version); err != nil {
		return err
	}
	form := url.Values{"args_digest": {digest}, "version": {strconv.Itoa(version)}, "reason": {""}}
	status, page, err := c.throughFront(client, func() *http.Request {
		return request(http.MethodPost, c.front.url+"/actions/"+id+"/approve", formType, form.Encode(), "")
	})
	if err == nil && status != http.StatusSeeOther && status != http.StatusConflict {
		err = fmt.Errorf("approving %s answers %d %s", id, status, plainText(page))
	}
	return err
}

// accounts compares what the database says with what the CRM did. An action that the killed replica was sending stays executing until the
// end of its lease, and becomes uncertain then; whether it was applied, the journal knows, and nobody sends it again.
func (c *cluster) accounts(t *testing.T, asked int) {
	t.Helper()
	state := map[string]string{} // by the name of the contact
	eventually(t, "the surviving replica has sent what waited", func() bool {
		clear(state)
		rows, err := c.pool.Query(t.Context(), `SELECT convert_from(arguments, 'UTF8')::jsonb ->> 'name', state FROM actions WHERE tool = 'contacts_create'`)
		must(t, err)
		var name, is string
		waiting := 0
		_, err = pgx.ForEachRow(rows, []any{&name, &is}, func() error {
			if _, twice := state[name]; twice {
				t.Errorf("%q was staged twice", name)
			}
			if state[name] = is; is == "staged" || is == "approved" {
				waiting++
			}
			return nil
		})
		must(t, err)
		return waiting == 0 && t.Context().Err() == nil && !c.moving(t)
	})
	applied := map[string]int{}
	for _, e := range c.home.crm(t).Effects("contacts_create") {
		var a struct{ Name string }
		must(t, json.Unmarshal(e.Arguments, &a))
		applied[a.Name]++
	}
	cutOff := 0
	for name, is := range state {
		switch n := applied[name]; {
		case n > 1:
			t.Errorf("%q was applied %d times", name, n)
		case is == "succeeded" && n != 1:
			t.Errorf("%q is said to have succeeded and was never applied", name)
		case is == "executing" || is == "uncertain":
			cutOff++
		case is != "succeeded":
			t.Errorf("%q is %s", name, is)
		}
	}
	for name := range applied {
		if state[name] == "" {
			t.Errorf("%q was applied and nobody asked for it", name)
		}
	}
	if len(state) != asked {
		t.Errorf("%d actions were asked for, %d are there", asked, len(state))
	}
	t.Logf("%d actions, %d of them cut off by the kill", len(state), cutOff)
	c.balanced(t)
}

// moving reports whether a living replica still sends: its dispatches are done a moment later, those of the dead one are not.
func (c *cluster) moving(t *testing.T) bool {
	t.Helper()
	var n int
	must(t, c.pool.QueryRow(t.Context(), `SELECT count(*) FROM actions WHERE state = 'executing' AND claimed_at > clock_timestamp() - interval '3 seconds'`).Scan(&n))
	return n > 0
}

// balanced asks the database for what must never be.
func (c *cluster) balanced(t *testing.T) {
	t.Helper()
	for what, query := range map[string]string{
		"a transition without its line in the trail": `SELECT count(*) FROM actions a WHERE a.version <> (SELECT count(*) FROM audit_entries e WHERE e.object_kind = 'action' AND e.object_id = a.id AND e.event LIKE 'action.%')`,
		"something sent without an approval":         `SELECT count(*) FROM dispatches d JOIN actions a ON a.id = d.action_id WHERE a.approved_digest IS DISTINCT FROM d.args_digest`,
		"a budget that counts wrong":                 `SELECT count(*) FROM runs r WHERE r.consequential_used <> (SELECT count(*) FROM actions a WHERE a.run_id = r.id AND a.budget_held)`,
	} {
		var n int
		must(t, c.pool.QueryRow(t.Context(), query).Scan(&n))
		if n > 0 {
			t.Errorf("the database holds %s (%d)", what, n)
		}
	}
}
