package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// figure is what was measured of one target at one concurrency, over all its slices.
type figure struct {
	name    string
	at      int
	calls   int
	time    time.Duration
	cpu     time.Duration
	took    []time.Duration // sorted when complete
	perTurn []float64       // calls a second, slice by slice
}

func (f *figure) rate() float64 { return float64(f.calls) / f.time.Seconds() }

func (f *figure) quantile(q float64) time.Duration {
	if len(f.took) == 0 {
		return 0
	}
	return f.took[min(len(f.took)-1, int(q*float64(len(f.took))))]
}

// cpuPerCall is in microseconds.
func (f *figure) cpuPerCall() float64 {
	return float64(f.cpu.Microseconds()) / float64(max(1, f.calls))
}

// over is the median, over the turns, of how f compares to another that took the same turns.
func (f *figure) over(base *figure) float64 {
	var ratios []float64
	for i := range f.perTurn {
		ratios = append(ratios, f.perTurn[i]/base.perTurn[i])
	}
	slices.Sort(ratios)
	return ratios[len(ratios)/2]
}

// interleave lets targets take turns at one concurrency, each warmed by one turn that does not count.
func interleave(ctx context.Context, o options, at int, targets ...target) ([]*figure, error) {
	out := make([]*figure, len(targets))
	for i, t := range targets {
		out[i] = &figure{name: t.name, at: at}
	}
	for round := -1; round < o.rounds; round++ {
		for i, t := range targets {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			f, length := out[i], o.slice
			if round < 0 {
				f, length = &figure{}, o.slice/2
			}
			if err := f.turn(t, at, length); err != nil {
				return nil, fmt.Errorf("%s at %d: %w", t.name, at, err)
			}
		}
	}
	for _, f := range out {
		slices.Sort(f.took)
	}
	return out, nil
}

// turn is one slice. Connections are opened before it and do not count.
func (f *figure) turn(t target, at int, length time.Duration) error {
	asks := make([]func(int) error, at)
	for i := range asks {
		ask, end, err := t.begin(i)
		if err != nil {
			return err
		}
		defer end()
		asks[i] = ask
	}
	took, failed := make([][]time.Duration, at), make([]error, at)
	var all sync.WaitGroup
	cpu, began := cpuOf(t.pid), time.Now()
	for i, ask := range asks {
		all.Go(func() {
			for n := 0; ; n++ {
				start := time.Now()
				if start.Sub(began) >= length {
					return
				}
				if failed[i] = ask(n); failed[i] != nil {
					return
				}
				took[i] = append(took[i], time.Since(start))
			}
		})
	}
	all.Wait()
	lasted, calls := time.Since(began), 0
	f.cpu += cpuOf(t.pid) - cpu
	for i := range took {
		if failed[i] != nil {
			return failed[i]
		}
		calls += len(took[i])
		f.took = append(f.took, took[i]...)
	}
	f.calls, f.time = f.calls+calls, f.time+lasted
	f.perTurn = append(f.perTurn, float64(calls)/lasted.Seconds())
	return nil
}

// cpuOf is the time a process and everything below it has used, in user and kernel.
func cpuOf(pid int) time.Duration {
	if pid == 0 {
		return 0
	}
	const tick = 10 * time.Millisecond // USER_HZ is 100 on every Linux
	var sum time.Duration
	for _, p := range family(pid) {
		fields := statOf(p)
		if len(fields) > 12 {
			user, _ := strconv.Atoi(fields[11])
			system, _ := strconv.Atoi(fields[12])
			sum += time.Duration(user+system) * tick
		}
	}
	return sum
}

// statOf is /proc/<pid>/stat from the state on: state, parent, …
func statOf(pid int) []string {
	raw, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return nil // it has ended
	}
	_, rest, _ := strings.Cut(string(raw), ") ")
	return strings.Fields(rest)
}

// family is a process and its descendants.
func family(pid int) []int {
	out := []int{pid}
	for i := 0; i < len(out); i++ {
		tasks, _ := filepath.Glob(filepath.Join("/proc", strconv.Itoa(out[i]), "task", "*", "children"))
		for _, file := range tasks {
			raw, _ := os.ReadFile(file) // absent: it has ended
			for _, child := range strings.Fields(string(raw)) {
				if n, err := strconv.Atoi(child); err == nil {
					out = append(out, n)
				}
			}
		}
	}
	return out
}

// memoryOf is the resident memory of a process and its descendants, in MB.
func memoryOf(pid int) float64 {
	sum := 0.0
	for _, p := range family(pid) {
		raw, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p), "status"))
		for line := range strings.Lines(string(raw)) {
			if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
				kb, _ := strconv.Atoi(strings.Fields(rest)[0])
				sum += float64(kb) / 1024
			}
		}
	}
	return sum
}
