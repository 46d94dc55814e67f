// Command ferret is the MongoDB of tests: FerretDB over an empty PostgreSQL database, with the login that mongotest uses. Its module is
// named below FerretDB's, because only such a module may build the server with logins by SCRAM; FerretDB's reports of its use are not
// compiled in. It prints where it listens, and ends with its standard input.
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/FerretDB/FerretDB/internal/clientconn"
	"github.com/FerretDB/FerretDB/internal/clientconn/connmetrics"
	"github.com/FerretDB/FerretDB/internal/handler/registry"
	"github.com/FerretDB/FerretDB/internal/util/password"
	"github.com/FerretDB/FerretDB/internal/util/state"
)

func main() {
	if err := serve(os.Getenv("FERRET_POSTGRES"), os.Getenv("FERRET_USER"), os.Getenv("FERRET_PASSWORD")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve(postgres, user, secret string) error {
	kept, err := state.NewProvider("")
	if err != nil {
		return err
	}
	if err := kept.Update(func(s *state.State) { s.DisableTelemetry(); s.TelemetryLocked = true }); err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	metrics := connmetrics.NewListenerMetrics()
	handler, closeBackend, err := registry.NewHandler("postgresql", &registry.NewHandlerOpts{
		Logger: log, ConnMetrics: metrics.ConnMetrics, StateProvider: kept, TCPHost: "127.0.0.1:0", PostgreSQLURL: postgres,
		SetupDatabase: "admin", SetupUsername: user, SetupPassword: password.WrapPassword(secret),
		TestOpts: registry.TestOpts{EnableNewAuth: true, CappedCleanupPercentage: 10, BatchSize: 100, MaxBsonObjectSizeBytes: 16 << 20},
	})
	if err != nil {
		return err
	}
	defer closeBackend()
	listener, err := clientconn.Listen(&clientconn.NewListenerOpts{TCP: "127.0.0.1:0", Mode: clientconn.NormalMode, Metrics: metrics, Handler: handler, Logger: log})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() { _, _ = io.Copy(io.Discard, os.Stdin); cancel() }()
	fmt.Println(listener.TCPAddr())
	listener.Run(ctx)
	return nil
}
