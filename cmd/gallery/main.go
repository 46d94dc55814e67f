// Command gallery draws every page in every state (empty, full, failed, hostile) without a database: to files, to a local address,
// or to screenshots. It owns the list of states that its test holds to the rules of accessibility; it never reads real data.
//
//	go run ./cmd/gallery -out gallery-out             every entry as HTML, with an index
//	go run ./cmd/gallery -serve 127.0.0.1:8099        the same, served with the policy of the real pages
//	go run ./cmd/gallery -pictures docs/pictures      the approval card as the README shows it, light and dark
//	go run ./cmd/gallery -shots DIR [-only sign-in]   a PNG of each at 360 and 1280 pixels, light and dark
package main

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"time"
)

func main() {
	out := flag.String("out", "", "write every entry as an HTML file into this folder")
	serve := flag.String("serve", "", "serve the gallery on this address")
	shots := flag.String("shots", "", "write screenshots into this folder")
	pictures := flag.String("pictures", "", "write the README's pictures into this folder")
	only := flag.String("only", "", "take only entries whose file name contains this")
	flag.Parse()
	if *out == "" && *serve == "" && *shots == "" && *pictures == "" {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := run(ctx, *out, *serve, *shots, *only)
	if err == nil && *pictures != "" {
		err = takePictures(*pictures)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gallery: "+err.Error())
		os.Exit(1)
	}
}

func run(ctx context.Context, out, serve, shots, only string) error {
	entries, err := allEntries(only)
	if err != nil {
		return err
	}
	if out != "" {
		if err := writeSite(ctx, out, entries); err != nil {
			return err
		}
	}
	if shots != "" {
		if err := takeShots(shots, entries); err != nil {
			return err
		}
	}
	if serve == "" {
		return nil
	}
	server := &http.Server{Addr: serve, Handler: site(entries), ReadHeaderTimeout: 5 * time.Second}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	fmt.Println("gallery: http://" + serve + "/")
	if err := server.ListenAndServe(); err != http.ErrServerClosed {
		return err
	}
	return nil
}
