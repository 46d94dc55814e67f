package main

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// report is what is printed and kept. Gates come last.
type report struct {
	options
	text   strings.Builder
	gates  []string
	memory struct{ idle, busy float64 }
}

func (r *report) line(format string, args ...any) {
	s := fmt.Sprintf(format, args...)
	fmt.Println(s)
	r.text.WriteString(s + "\n")
}

// table is one comparison; the first target is what the others are compared with.
func (r *report) table(what string, at int, figures ...*figure) {
	r.line("\n%s, C=%d\n", what, at)
	r.line("| target | calls/s | over %s | p50 ms | p99 ms | CPU µs per call |", figures[0].name)
	r.line("|---|---|---|---|---|---|")
	for _, f := range figures {
		cpu := ""
		if f.cpu > 0 {
			cpu = fmt.Sprintf("%.0f", f.cpuPerCall())
		}
		r.line("| %s | %.0f | %.2f | %.3f | %.2f | %s |", f.name, f.rate(), f.over(figures[0]), micros(f.quantile(.5))/1000, micros(f.quantile(.99))/1000, cpu)
	}
	r.line("")
}

func (r *report) gate(name string, met bool, figure, wanted string) {
	word := "missed"
	if met {
		word = "met"
	}
	r.gates = append(r.gates, fmt.Sprintf("gate: %s: %s (%s, wanted %s)", name, word, figure, wanted))
}

// most is a gate that a figure must not pass.
func (r *report) most(name string, figure, limit float64, unit string) {
	r.gate(name, figure <= limit, fmt.Sprintf("%.4g %s", figure, unit), fmt.Sprintf("<= %g %s", limit, unit))
}

// least is a gate that a ratio must reach.
func (r *report) least(name string, figure, limit float64) {
	r.gate(name, figure >= limit, fmt.Sprintf("%.2f", figure), fmt.Sprintf(">= %.2f", limit))
}

func (r *report) exactly(name string, figure, wanted float64) {
	r.gate(name, figure == wanted, fmt.Sprintf("%g", figure), fmt.Sprintf("%g", wanted))
}

func (r *report) write() error {
	load, _ := os.ReadFile("/proc/loadavg") // absent elsewhere than on Linux
	head := fmt.Sprintf("# Benchmark\n\nMade by `make bench` at %s with %s on %d CPUs; load at the end %s. Client, server, upstream, proxy and PostgreSQL share them. "+
		"Every table was measured in %d turns of %v that alternate between its targets; ratios are medians over the turns. CPU is of the server's process tree, without PostgreSQL.\n",
		time.Now().UTC().Format(time.RFC3339), runtime.Version(), runtime.NumCPU(), strings.TrimSpace(string(load)), r.rounds, r.slice)
	gates := strings.Join(r.gates, "\n")
	fmt.Println("\n" + gates)
	return os.WriteFile(r.options.report, []byte(head+r.text.String()+"\n```\n"+gates+"\n```\n"), 0o644)
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

func median(all []time.Duration) time.Duration { return quantile(all, .5) }

func quantile(all []time.Duration, q float64) time.Duration {
	sorted := slices.Sorted(slices.Values(all))
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

func rounded(all []time.Duration) []time.Duration {
	out := make([]time.Duration, len(all))
	for i, d := range all {
		out[i] = d.Round(time.Millisecond)
	}
	return out
}
