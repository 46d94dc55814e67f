package db

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"countersign/internal/identity"
)

// What a run may do is remembered by every replica (Capabilities). So a change of it is not done when it is committed, but when nobody
// remembers what was before: whoever was answered "retired" must find it retired on the next call, at whichever replica it arrives.
//
// A trigger on each table a capability follows from notifies changedChannel, and tells the changing session by a notice that it did.
// After the commit that session asks on the same channel, where order is kept: a replica that answers has heard the change before the
// question. Listeners are known by an advisory lock, which ends with their connection. One that does not answer is waited for no longer
// than rememberFor, after which it has stopped to remember by its own clock.
const (
	changedChannel = "countersign_capability" // an organization, or a question: "?" and its nonce
	heardChannel   = "countersign_heard"      // an answer: the nonce, a space, the listener's number
	changedNotice  = "CS001"                  // SQLSTATE of the notice

	// rememberFor is how long a replica trusts its memory after it last heard from the database.
	rememberFor = time.Second
	// heartbeat is how often it makes sure that it would hear.
	heartbeat = 250 * time.Millisecond
)

type noticed struct{} // key of a connection's custom data

// notice keeps what a trigger told the session.
func notice(c *pgconn.PgConn, n *pgconn.Notice) {
	if n.Code == changedNotice {
		c.CustomData()[noticedKey] = noticed{}
	}
}

const noticedKey = "countersign: a capability changed"

// changedCapability says, once, whether the present transaction of a connection changed what a capability follows from.
func changedCapability(tx pgx.Tx) bool {
	data := tx.Conn().PgConn().CustomData()
	_, changed := data[noticedKey]
	delete(data, noticedKey)
	return changed
}

// tell returns when no replica remembers what was before the last commit. It cannot fail: who cannot be asked is waited out.
func (d *DB) tell(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rememberFor)
	defer cancel()
	if err := d.ask(ctx); err != nil {
		<-ctx.Done()
	}
}

// ask waits until every listener has answered one question.
func (d *DB) ask(ctx context.Context) error {
	conn, err := d.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	waiting, err := listeners(ctx, conn.Conn())
	if err != nil || len(waiting) == 0 {
		return err
	}
	defer deafen(conn.Conn())
	nonce := identity.NewID("")
	b := &pgx.Batch{} // one transaction: listening begins with the question
	b.Queue("SET LOCAL synchronous_commit = off")
	b.Queue("LISTEN " + heardChannel)
	b.Queue("SELECT pg_notify($1, $2)", changedChannel, "?"+nonce)
	if err := conn.SendBatch(ctx, b).Close(); err != nil {
		return err
	}
	for len(waiting) > 0 {
		n, err := conn.Conn().WaitForNotification(ctx)
		if err != nil {
			return err
		}
		if who, ok := strings.CutPrefix(n.Payload, nonce+" "); ok {
			delete(waiting, who)
		}
	}
	return nil
}

// listeners are the numbers of the replicas that remember. Locks, unlike the list of sessions, are shown to every role.
func listeners(ctx context.Context, conn *pgx.Conn) (map[string]bool, error) {
	found, err := conn.Query(ctx, `SELECT objid::text FROM pg_locks WHERE locktype = 'advisory' AND classid = $1 AND objsubid = 2
		AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`, lockListener)
	if err != nil {
		return nil, err
	}
	numbers, err := pgx.CollectRows(found, pgx.RowTo[string])
	out := make(map[string]bool, len(numbers))
	for _, n := range numbers {
		out[n] = true
	}
	return out, err
}

// deafen lets a pooled connection be an ordinary one again, or ends it.
func deafen(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), rememberFor)
	defer cancel()
	if _, err := conn.Exec(ctx, "UNLISTEN *"); err != nil {
		_ = conn.Close(ctx)
		return
	}
	for { // what arrived meanwhile is for nobody
		over, cancel := context.WithCancel(context.Background())
		cancel()
		if _, err := conn.WaitForNotification(over); err != nil {
			return
		}
	}
}

func listenerNumber(n uint32) string { return strconv.FormatUint(uint64(n), 10) }

func heard(question string, n uint32) string {
	return fmt.Sprintf("%s %s", question, listenerNumber(n))
}
