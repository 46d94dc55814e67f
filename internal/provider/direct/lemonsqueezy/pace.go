package lemonsqueezy

import (
	"context"
	"strconv"
	"sync"
	"time"

	"countersign/internal/fault"
	"countersign/internal/policy"
	"countersign/internal/provider"
	"countersign/internal/provider/direct"
)

// The vendor takes 300 requests a minute from one key, and says with each answer how many are left. All calls of a connection in this
// process share one count; what other replicas and programs use of the key shows in the vendor's own figure.
const (
	limit    = 300
	window   = time.Minute
	kept     = 20               // for effects and the looks before them: reads must not use up what an approved action needs
	maxPause = 20 * time.Second // an effect waits at most so long, well inside the time it may be sent in
)

// meter counts the requests of the present window.
type meter struct {
	mu    sync.Mutex
	began time.Time
	left  int
}

func newMeter() *meter { return &meter{} }

// take takes one request, or says how long until the next window.
func (m *meter) take(now time.Time, reserve int) (wait time.Duration, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if now.Sub(m.began) >= window {
		m.began, m.left = now, limit
	}
	if m.left <= reserve {
		return window - now.Sub(m.began), false
	}
	m.left--
	return 0, true
}

// learn takes the vendor's figure where it is lower than ours.
func (m *meter) learn(remaining int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.left = min(m.left, remaining)
}

// pace refuses a read at once where nothing is left: an agent can wait better than we can. An effect waits.
func pace(ctx context.Context, l *direct.Link, e policy.Effect) error {
	m, reserve := provider.Remember(l.Conn, newMeter), kept
	if e == policy.Consequential || l.Action != "" {
		reserve = 0
	}
	wait, ok := m.take(time.Now(), reserve)
	if ok {
		return nil
	}
	if reserve > 0 || wait > maxPause {
		return limited(wait)
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return provider.TimedOut(ctx.Err())
	}
	if wait, ok = m.take(time.Now(), reserve); !ok {
		return limited(wait)
	}
	return nil
}

func limited(wait time.Duration) error {
	return fault.New(fault.Limited, fault.UpstreamError, "The 300 requests a minute that Lemon Squeezy allows are used up.",
		"Wait "+strconv.Itoa(int(wait.Seconds())+1)+" seconds and call less often.")
}

func paced(l *direct.Link, r direct.Reply) {
	m := provider.Remember(l.Conn, newMeter)
	if n, err := strconv.Atoi(r.Header.Get("X-Ratelimit-Remaining")); err == nil && n >= 0 {
		m.learn(n)
	}
	if r.Status == 429 {
		m.learn(0)
	}
}
