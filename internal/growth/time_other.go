//go:build !linux

package growth

import "time"

var start = time.Now()

// processorTime is the clock where a system does not tell what one thread has used.
func processorTime() time.Duration { return time.Since(start) }
