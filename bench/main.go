// Command bench measures the product where it is used: calls of agents, staging, approvals, pages, start-up. The server under test is the
// built binary in a process of its own, on a PostgreSQL of its own; upstream and bare proxy are processes of this program. What is compared
// is measured in slices that take turns within one run, so that a noisy machine slows all of them. It prints the report and one gate line
// per target, and writes REPORT.md. It measures what exists and changes nothing outside its temporary folder.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	switch role(os.Args) {
	case "upstream":
		err = serveUpstream()
	case "proxy":
		err = serveProxy(os.Args[2])
	default:
		err = measure(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func role(args []string) string {
	if len(args) < 2 {
		return ""
	}
	return args[1]
}

// options of one run.
type options struct {
	binary    string
	report    string
	rounds    int
	slice     time.Duration
	auditRows int
	profile   string
}

func measure(ctx context.Context) error {
	var o options
	flag.StringVar(&o.binary, "binary", "bin/countersign", "the server under test")
	flag.StringVar(&o.report, "report", "bench/REPORT.md", "where the report is written")
	flag.IntVar(&o.rounds, "rounds", 6, "how often each slice takes its turn")
	flag.DurationVar(&o.slice, "slice", 400*time.Millisecond, "how long a slice is")
	flag.IntVar(&o.auditRows, "audit-rows", 1_000_000, "entries in the trail for the audit page")
	flag.StringVar(&o.profile, "only", "", "only this part: reads, lists, actions, pages, start")
	flag.Parse()
	w, err := newWorld(ctx, o)
	if w != nil {
		defer w.close()
	}
	if err != nil {
		return err
	}
	r := &report{options: o}
	for _, part := range []struct {
		name string
		run  func(context.Context, *report) error
	}{
		{"start", w.startUp}, {"pages", w.pages}, {"reads", w.reads}, {"lists", w.lists}, {"actions", w.actions},
	} {
		if o.profile != "" && o.profile != part.name {
			continue
		}
		if err := part.run(ctx, r); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	return r.write()
}
