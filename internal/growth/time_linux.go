package growth

import (
	"syscall"
	"time"
)

// thread is RUSAGE_THREAD of getrusage(2), which package syscall does not name.
const thread = 1

// processorTime is what this thread has used since it began.
func processorTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(thread, &used); err != nil {
		panic(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
