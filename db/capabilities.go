package db

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"countersign/internal/capability"
	"countersign/internal/identity"
)

// Bounds of the memory. Weight is counted in pinned tools, which are nearly all of a capability's size.
const (
	rememberedAge    = 30 * time.Second // even what nothing ended is read again after this
	rememberedWeight = 200_000
	listenAgain      = 200 * time.Millisecond
)

// Capabilities answers run tokens from memory while Listen hears from the database, and from the database otherwise. What it answers is
// what the database said at some moment after the last change whose author has been answered: see tell. A capability in memory is
// shared by calls and never changed. Effects are judged again by the database when they are staged and when they are claimed.
type Capabilities struct {
	store Runs
	log   *slog.Logger

	mu      sync.RWMutex
	runs    map[string]remembered // by token hash
	weight  int
	changes uint64    // counts what ended memories
	until   time.Time // memory may answer before this; zero while nobody listens
}

type remembered struct {
	live   capability.Live
	asked  time.Time // local, before the database was asked
	weight int
}

// NewCapabilities makes an empty memory over a store. It remembers nothing until Listen runs.
func NewCapabilities(store Runs, log *slog.Logger) *Capabilities {
	return &Capabilities{store: store, log: log, runs: map[string]remembered{}}
}

// ByToken finds a live run by its token's hash, as capability.Store does.
func (c *Capabilities) ByToken(ctx context.Context, hash []byte) (capability.Live, error) {
	now := time.Now()
	c.mu.RLock()
	r, known := c.runs[string(hash)]
	changes, listening := c.changes, before(now, c.until)
	c.mu.RUnlock()
	if known && listening {
		if live, ok := r.at(now); ok {
			return live, nil
		}
	}
	live, err := c.store.ByToken(ctx, hash)
	if err == nil && listening {
		live.Told = &capability.Told{} // copies share it
		c.keep(string(hash), live, now, changes)
	}
	return live, err
}

// at is the capability at a later moment, unless it is too old or its run is over by then.
func (r remembered) at(now time.Time) (capability.Live, bool) {
	age := now.Sub(r.asked)
	live := r.live
	live.Now = live.Now.Add(age) // never earlier than the database's clock is
	return live, age < rememberedAge && live.Now.Before(live.Run.ExpiresAt)
}

// keep remembers what was read, unless something changed since before it was read: then the reading may be older than the change.
func (c *Capabilities) keep(hash string, live capability.Live, asked time.Time, changes uint64) {
	r := remembered{live: live, asked: asked, weight: 1}
	for _, g := range live.Grants {
		r.weight += g.Minted.Len() + g.Now.Snapshot.Len()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.changes != changes || r.weight > rememberedWeight {
		return
	}
	if c.weight += r.weight - c.runs[hash].weight; c.weight > rememberedWeight {
		clear(c.runs)
		c.weight = r.weight
	}
	c.runs[hash] = r
}

// forget ends what is remembered of an organization; of all with an empty one.
func (c *Capabilities) forget(org identity.OrgID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changes++
	for hash, r := range c.runs {
		if org == "" || r.live.Org.ID == org {
			c.weight -= r.weight
			delete(c.runs, hash)
		}
	}
}

func (c *Capabilities) trustUntil(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.until = t
}

// before compares by both clocks: the monotonic one stands still while a machine is suspended, and the other one can be set.
func before(now, until time.Time) bool {
	return now.Before(until) && now.Round(0).Before(until.Round(0))
}

// Listen keeps the memory true until ctx ends.
func (c *Capabilities) Listen(ctx context.Context) {
	told := false
	for {
		err := c.listen(ctx, func() { told = false })
		c.trustUntil(time.Time{})
		c.forget("")
		if ctx.Err() != nil {
			return
		}
		if !told {
			c.log.WarnContext(ctx, "changes cannot be heard; every call asks the database until they can", "error", err)
			told = true
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(listenAgain):
		}
	}
}

// listen hears changes on a connection of its own until that breaks. Each statement it is answered proves that what was committed before
// the statement was sent has been heard: PostgreSQL delivers notifications before it is ready for the next statement.
func (c *Capabilities) listen(ctx context.Context, heardAgain func()) error {
	ear, err := c.ear(ctx)
	if err != nil {
		return err
	}
	defer ear.close()
	for {
		asked := time.Now()
		if err := ear.prove(ctx); err != nil {
			return err
		}
		c.trustUntil(asked.Add(rememberFor))
		heardAgain()
		if err := ear.wait(ctx); err != nil {
			return err
		}
	}
}

// ear is one listening connection.
type ear struct {
	conn      *pgx.Conn
	number    uint32
	questions []string
}

// ear connects. Who asks for the listeners after this finds it, and it hears every change that is committed after this.
func (c *Capabilities) ear(ctx context.Context) (*ear, error) {
	e := &ear{number: randomNumber()}
	cfg := c.store.pool.Config().ConnConfig
	cfg.OnNotification = func(_ *pgconn.PgConn, n *pgconn.Notification) {
		if nonce, ok := strings.CutPrefix(n.Payload, "?"); ok {
			e.questions = append(e.questions, nonce)
			return
		}
		c.forget(identity.OrgID(n.Payload))
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	var err error
	if e.conn, err = pgx.ConnectConfig(ctx, cfg); err != nil {
		return nil, err
	}
	b := &pgx.Batch{}
	b.Queue("SET synchronous_commit = off") // an answer that a crash loses was for a question that it lost too
	b.Queue("SELECT pg_advisory_lock_shared($1, $2)", lockListener, int32(e.number))
	b.Queue("LISTEN " + changedChannel)
	if err := e.conn.SendBatch(ctx, b).Close(); err != nil {
		e.close()
		return nil, err
	}
	return e, nil
}

func randomNumber() uint32 {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	return binary.LittleEndian.Uint32(b[:])
}

// prove makes the database answer, and answers what others have asked.
func (e *ear) prove(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, rememberFor)
	defer cancel()
	b := &pgx.Batch{}
	b.Queue("SELECT 1")
	for _, q := range e.questions {
		b.Queue("SELECT pg_notify($1, $2)", heardChannel, heard(q, e.number))
	}
	e.questions = nil
	return e.conn.SendBatch(ctx, b).Close()
}

// wait returns with the next notification, or when it is time for a proof.
func (e *ear) wait(ctx context.Context) error {
	if len(e.questions) > 0 {
		return nil
	}
	limit, cancel := context.WithTimeout(ctx, heartbeat)
	defer cancel()
	_, err := e.conn.WaitForNotification(limit)
	if limit.Err() != nil && ctx.Err() == nil && !e.conn.IsClosed() {
		return nil
	}
	return err
}

func (e *ear) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = e.conn.Close(ctx) // whatever it says, the connection is gone
}
