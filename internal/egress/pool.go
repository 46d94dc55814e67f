package egress

import (
	"context"
	"sync"
	"time"
)

// pool keeps the connections of one client between its exchanges. There is one pool a client, and one client a connection of an
// organization, so that none is ever shared.
type pool struct {
	slots chan struct{} // one for each exchange under way

	mu    sync.Mutex
	idle  []*pipe // the last one served last
	epoch int     // connections of an earlier one are not kept any more
	timer *time.Timer
}

func newPool() *pool { return &pool{slots: make(chan struct{}, maxConns)} }

// enter waits for one of the places.
func (l *pool) enter(ctx context.Context, deadline time.Time) error {
	select {
	case l.slots <- struct{}{}:
		return nil
	default:
	}
	late := time.NewTimer(time.Until(deadline))
	defer late.Stop()
	select {
	case l.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-late.C:
		return context.DeadlineExceeded
	}
}

func (l *pool) leave() { <-l.slots }

func (l *pool) now() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.epoch
}

// take gives out a kept connection that is still good, or none.
func (l *pool) take(deadline time.Time, fresh bool) *pipe {
	for !fresh {
		p := l.last()
		if p == nil {
			break
		}
		if time.Since(p.idle) < idleTimeout && p.quiet(deadline) {
			p.reused = true
			return p
		}
		_ = p.Close() // closed by the other side, or of no use
	}
	return nil
}

func (l *pool) last() *pipe {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.idle)
	if n == 0 {
		return nil
	}
	p := l.idle[n-1]
	l.idle[n-1] = nil
	l.idle = l.idle[:n-1]
	return p
}

// put keeps a connection whose answer has ended.
func (l *pool) put(p *pipe) {
	p.watch, p.idle = nil, time.Now()
	l.mu.Lock()
	kept := p.epoch == l.epoch && len(l.idle) < maxIdle
	if kept {
		if l.idle = append(l.idle, p); l.timer == nil {
			l.timer = time.AfterFunc(idleTimeout, l.expire)
		}
	}
	l.mu.Unlock()
	if !kept {
		_ = p.Close()
	}
}

// expire closes what nobody used for long. The oldest are in front.
func (l *pool) expire() {
	l.mu.Lock()
	n := 0
	for n < len(l.idle) && time.Since(l.idle[n].idle) >= idleTimeout {
		n++
	}
	old := append([]*pipe(nil), l.idle[:n]...)
	l.idle = append(l.idle[:0], l.idle[n:]...)
	if l.timer = nil; len(l.idle) > 0 {
		l.timer = time.AfterFunc(idleTimeout-time.Since(l.idle[0].idle), l.expire)
	}
	l.mu.Unlock()
	closeAll(old)
}

// clear closes what is kept; what is in use is not kept after it.
func (l *pool) clear() {
	l.mu.Lock()
	old := l.idle
	l.idle = nil
	l.epoch++
	if l.timer != nil {
		l.timer.Stop()
		l.timer = nil
	}
	l.mu.Unlock()
	closeAll(old)
}

func closeAll(pipes []*pipe) {
	for _, p := range pipes {
		_ = p.Close()
	}
}
