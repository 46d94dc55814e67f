// Package growth owns how a test judges that work grows with its input and not with its square. It compares the processor time of one
// thread for two sizes in one run, and never says how long anything may take: that is the machine's affair. It never serves the product.
package growth

import (
	"runtime"
	"testing"
	"time"
)

// times larger is the second input; work in the square of it costs sixteen times as much, and half of that is too much already.
const times, tooMuch = 4, 8

// unmeasurable is added to the first measure, so that work of no length is not compared with noise.
const unmeasurable = 4 * time.Millisecond

// Linear fails the test when the work prepared for 4 × size costs eight times that for size. Each is the cheapest of three.
func Linear(t testing.TB, what string, size int, prepare func(size int) (work func())) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	small, large := cheapest(prepare(size)), cheapest(prepare(times*size))
	if large > tooMuch*(small+unmeasurable) {
		t.Errorf("%s: %d times the input costs %v of a processor where one costs %v", what, times, large, small)
	}
}

func cheapest(work func()) time.Duration {
	least := time.Duration(1<<63 - 1)
	for range 3 {
		began := processorTime()
		work()
		least = min(least, processorTime()-began)
	}
	return least
}
