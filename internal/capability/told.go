package capability

import (
	"sync"

	"countersign/internal/connector"
)

// Told keeps what a run is told when a client connects, made when it is first asked for. It lives exactly as long as the Live it belongs
// to: whoever remembers that ends this with it, so whatever it is made of must end remembered capabilities when it changes.
type Told struct {
	mu    sync.Mutex
	texts map[connector.Key][]byte
}

// Once answers what make made for an address: a connection's, or the gateway's own with an empty key. What is answered must not be
// changed. Two who ask at once may both make it; an error is not kept. A nil Told makes it each time.
func (t *Told) Once(address connector.Key, make func() ([]byte, error)) ([]byte, error) {
	if text, ok := t.of(address); ok {
		return text, nil
	}
	text, err := make()
	if err == nil && t != nil {
		t.keep(address, text)
	}
	return text, err
}

func (t *Told) of(address connector.Key) ([]byte, bool) {
	if t == nil {
		return nil, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	text, ok := t.texts[address]
	return text, ok
}

func (t *Told) keep(address connector.Key, text []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.texts == nil {
		t.texts = map[connector.Key][]byte{}
	}
	t.texts[address] = text
}
