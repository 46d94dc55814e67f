package crm

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const noteCall = `{"name":"notes_add","arguments":{"contact_id":"c_1001","text":"hello"}}`

// note sends one notes_add by hand and answers what the connection gave.
func (c *running) note(ctx context.Context, era string) (status int, body string, err error) {
	c.t.Helper()
	return send(c.request(ctx, era, "tools/call", noteCall))
}

func TestFaultsOnTheWire(t *testing.T) {
	for _, tc := range []struct {
		mode    mode
		applied bool
		seen    func(status int, body string, err error) bool
	}{
		{applyThenReset, true, func(_ int, _ string, err error) bool { return errors.Is(err, syscall.ECONNRESET) }},
		{reset, false, func(_ int, _ string, err error) bool { return errors.Is(err, syscall.ECONNRESET) }},
		{applyThen500, true, func(status int, _ string, err error) bool { return err == nil && status == 500 }},
		{applyThenTruncate, true, func(status int, body string, err error) bool {
			return status == 200 && errors.Is(err, io.ErrUnexpectedEOF) && strings.HasPrefix(body, `{"jsonrpc"`)
		}},
		{reject, false, func(status int, body string, err error) bool {
			return err == nil && status == 200 && strings.Contains(body, `"isError":true`)
		}},
	} {
		for _, era := range eras {
			t.Run(string(tc.mode)+" "+era, func(t *testing.T) {
				c := start(t)
				c.order("/faults", `{"tool":"notes_add","mode":"`+string(tc.mode)+`","times":2}`)
				for range 2 {
					if status, body, err := c.note(t.Context(), era); !tc.seen(status, body, err) {
						t.Errorf("the caller saw %d %q %v", status, body, err)
					}
				}
				want := []string{}
				if tc.applied {
					want = []string{"notes_add", "notes_add"}
				}
				c.applied(want...)
				if status, body, err := c.note(t.Context(), era); err != nil || status != 200 || strings.Contains(body, "isError") {
					t.Errorf("the fault outlived its times: %d %s %v", status, body, err)
				}
				c.applied(append(want, "notes_add")...)
			})
		}
	}
}

func TestFaultsAsARealClientSeesThem(t *testing.T) {
	for _, era := range eras {
		for _, m := range []mode{applyThenReset, applyThen500, applyThenTruncate, reset} {
			t.Run(string(m)+" "+era, func(t *testing.T) {
				c := start(t)
				cs := c.client(era)
				c.order("/faults", `{"tool":"refund_issue","mode":"`+string(m)+`","times":1}`)
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				res, err := cs.CallTool(ctx, &mcp.CallToolParams{Name: "refund_issue", Arguments: json.RawMessage(`{"contact_id":"c_1001","amount_cents":500}`)})
				if err == nil || ctx.Err() != nil {
					t.Errorf("answered %v, %v", res, err)
				}
				if m == reset {
					c.applied()
				} else {
					c.applied("refund_issue")
				}
			})
		}
	}
}

func TestHangsGiveNotAByte(t *testing.T) {
	for _, era := range eras {
		for m, want := range map[mode][]string{hang: {}, applyThenHang: {"notes_add"}} {
			t.Run(string(m)+" "+era, func(t *testing.T) {
				c := start(t)
				c.order("/faults", `{"tool":"notes_add","mode":"`+string(m)+`"}`)
				ctx, cancel := context.WithCancel(t.Context())
				answered := make(chan error, 1)
				go func() {
					_, _, err := c.note(ctx, era)
					answered <- err
				}()
				c.eventually("the fault is used up", func() bool { return strings.Contains(c.log.String(), "mode="+string(m)) })
				c.eventually("the journal is as it must be", func() bool { return len(c.journal()) == len(want) })
				select {
				case err := <-answered:
					t.Fatalf("answered: %v", err)
				default:
				}
				cancel()
				if err := <-answered; !errors.Is(err, context.Canceled) {
					t.Errorf("the caller saw %v", err)
				}
				c.applied(want...)
			})
		}
	}
}

func TestAHangEnds(t *testing.T) {
	for how, end := range map[string]func(*running){
		"when the sandbox is reset": func(c *running) { c.order("/reset", "") },
		"when the server stops": func(c *running) {
			began := time.Now()
			if err := c.stop(); err != nil || time.Since(began) >= stopGrace {
				c.t.Errorf("stopping took %s: %v", time.Since(began), err)
			}
		},
		"after its seconds": func(*running) {},
	} {
		t.Run(how, func(t *testing.T) {
			c := start(t)
			seconds := `,"seconds":600`
			if how == "after its seconds" {
				seconds = `,"seconds":0.05`
			}
			c.order("/faults", `{"tool":"notes_add","mode":"apply_then_hang"`+seconds+`}`)
			answered := make(chan error, 1)
			go func() {
				_, _, err := c.note(t.Context(), eras[0])
				answered <- err
			}()
			c.eventually("the effect", func() bool { return len(c.journal()) == 1 })
			end(c)
			select {
			case err := <-answered:
				if !errors.Is(err, io.EOF) {
					t.Errorf("the caller saw %v", err)
				}
			case <-time.After(patience):
				t.Error("still hanging")
			}
		})
	}
}

func TestSlowAppliesLaterAndThenAnswers(t *testing.T) {
	c := start(t)
	c.order("/faults", `{"tool":"notes_add","mode":"slow","seconds":0.3,"times":2}`)
	began := time.Now()
	status, body, err := c.note(t.Context(), eras[0])
	if took := time.Since(began); err != nil || status != 200 || strings.Contains(body, "isError") || took < 300*time.Millisecond {
		t.Errorf("%d %s %v after %s", status, body, err, took)
	}
	c.applied("notes_add")

	// A caller that has left does not stop what it began.
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan struct{})
	go func() { defer close(gone); _, _, _ = c.note(ctx, eras[2]) }()
	c.eventually("the second fault is used up", func() bool { return strings.Count(c.log.String(), "mode=slow") == 2 })
	cancel()
	<-gone
	c.eventually("the second effect", func() bool { return len(c.journal()) == 2 })
}

func TestLateApplyHappensAfterTheConnectionIsGone(t *testing.T) {
	for _, era := range eras {
		t.Run(era, func(t *testing.T) {
			c := start(t)
			c.order("/faults", `{"tool":"notes_add","mode":"late_apply","seconds":1}`)
			began := time.Now()
			if _, _, err := c.note(t.Context(), era); !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("the caller saw %v", err)
			}
			if early := c.journal(); len(early) != 0 && time.Since(began) < time.Second {
				t.Errorf("applied too early: %v", early)
			}
			c.eventually("the effect", func() bool { return len(c.journal()) == 1 })
			if at := c.journal()[0].At; at.Sub(began) < time.Second {
				t.Errorf("applied after %s", at.Sub(began))
			}
		})
	}
}

func TestAResetDropsWhatIsUnderWay(t *testing.T) {
	c := start(t)
	late := func(seconds string) {
		c.order("/faults", `{"tool":"notes_add","mode":"late_apply","seconds":`+seconds+`}`)
		if _, _, err := c.note(t.Context(), eras[0]); err == nil {
			t.Error("late_apply answered")
		}
	}
	c.order("/faults", `{"tool":"notes_add","mode":"slow","seconds":600}`)
	slowly := make(chan string, 1)
	go func() {
		_, body, _ := c.note(t.Context(), eras[0])
		slowly <- body
	}()
	c.eventually("the slow call is under way", func() bool { return strings.Contains(c.log.String(), "mode=slow") })
	late("0.1")
	c.order("/reset", "")
	if body := <-slowly; !strings.Contains(body, `"isError":true`) || !strings.Contains(body, "nothing was applied") {
		t.Errorf("the slow call answered %s", body)
	}
	// A second effect, due after the first would have been, shows that the first never came.
	late("0.3")
	c.eventually("the effect of the new epoch", func() bool { return len(c.journal()) > 0 })
	c.applied("notes_add")
}

func TestFaultsQueueUpPerTool(t *testing.T) {
	c := start(t)
	c.order("/faults", `{"tool":"notes_add","mode":"apply_then_500","times":1}`)
	c.order("/faults", `{"tool":"notes_add","mode":"reject","times":1}`)
	c.order("/faults", `{"tool":"contacts_list","mode":"apply_then_500","times":1}`)
	if status, _, _ := c.note(t.Context(), eras[0]); status != 500 {
		t.Errorf("first: %d", status)
	}
	if status, body, _ := c.note(t.Context(), eras[0]); status != 200 || !strings.Contains(body, "rejected") {
		t.Errorf("second: %d %s", status, body)
	}
	if status, body, _ := c.note(t.Context(), eras[0]); status != 200 || strings.Contains(body, "isError") {
		t.Errorf("third: %d %s", status, body)
	}
	if status, _, _ := send(c.request(t.Context(), eras[0], "tools/call", `{"name":"contacts_list","arguments":{}}`)); status != 500 {
		t.Errorf("a read: %d", status)
	}
	c.applied("notes_add", "notes_add")
}

func TestAMalformedRequestUsesUpNoFault(t *testing.T) {
	c := start(t)
	c.order("/faults", `{"tool":"notes_add","mode":"apply_then_500","times":1}`)
	r := c.request(t.Context(), eras[0], "tools/call", noteCall)
	r.Header.Set("Mcp-Name", "contacts_get") // contradicts the body
	if status, body, _ := send(r); status != http.StatusBadRequest {
		t.Errorf("%d %s", status, body)
	}
	c.applied()
	if status, _, _ := c.note(t.Context(), eras[0]); status != 500 {
		t.Errorf("the fault was gone: %d", status)
	}
}

func TestWaitEndsWithItsCaller(t *testing.T) {
	s := New(Config{})
	gone := make(chan struct{})
	close(gone)
	if res := s.wait(&exchange{gone: gone}, json.RawMessage(`{"seconds":120}`)); !res.IsError {
		t.Error("it waited")
	}
}
