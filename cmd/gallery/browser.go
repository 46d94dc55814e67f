package main

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"countersign/internal/checkout"

	"github.com/playwright-community/playwright-go"
)

// errNoBrowser names the commands that bring what is missing. Nothing is skipped for want of a browser: an unlooked-at page is
// not a page that passed.
var errNoBrowser = errors.New("Chromium or its driver is missing: run `npm ci` and `apt-get install -y --no-install-recommends chromium` (or set CHROMIUM to an executable)")

// browser is headless Chromium with its driver, and what must be cleaned up after it.
type browser struct {
	playwright.Browser
	driver *playwright.Playwright
	dir    string
}

// chromiumPath is $CHROMIUM, or the first known name on the PATH.
func chromiumPath() (string, error) {
	names := []string{"chromium", "chromium-browser", "google-chrome"}
	if c := os.Getenv("CHROMIUM"); c != "" {
		names = []string{c}
	}
	for _, name := range names {
		if p, err := exec.LookPath(name); err == nil {
			return p, nil
		}
	}
	return "", errNoBrowser
}

// openBrowser starts Chromium through the driver in node_modules. The driver folder the library wants (a node and a package
// beside each other) is made of two links; nothing is downloaded.
func openBrowser() (_ *browser, err error) {
	root, err := checkout.Root()
	if err != nil {
		return nil, err
	}
	chromium, err := chromiumPath()
	if err != nil {
		return nil, err
	}
	node, err := exec.LookPath("node")
	if err != nil {
		return nil, errNoBrowser
	}
	core := filepath.Join(root, "node_modules", "playwright-core")
	if _, err := os.Stat(filepath.Join(core, "cli.js")); err != nil {
		return nil, errNoBrowser
	}
	b := &browser{}
	defer func() {
		if err != nil {
			b.close()
		}
	}()
	if b.dir, err = os.MkdirTemp("", "driver"); err != nil {
		return nil, err
	}
	if err = errors.Join(os.Symlink(node, filepath.Join(b.dir, "node")), os.Symlink(core, filepath.Join(b.dir, "package"))); err != nil {
		return nil, err
	}
	if b.driver, err = playwright.Run(&playwright.RunOptions{DriverDirectory: b.dir, SkipInstallBrowsers: true}); err != nil {
		return nil, fmt.Errorf("%w (%v)", errNoBrowser, err)
	}
	b.Browser, err = b.driver.Chromium.Launch(playwright.BrowserTypeLaunchOptions{
		ExecutablePath:  &chromium,
		ChromiumSandbox: playwright.Bool(os.Geteuid() != 0), // Chromium refuses to sandbox for root
		Args:            []string{"--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"},
	})
	if err != nil {
		return nil, fmt.Errorf("%w (%v)", errNoBrowser, err)
	}
	return b, nil
}

func (b *browser) close() {
	if b.Browser != nil {
		_ = b.Browser.Close()
	}
	if b.driver != nil {
		_ = b.driver.Stop()
	}
	_ = os.RemoveAll(b.dir)
}

// view is one width and one colour scheme.
type view struct {
	name   string
	width  int
	height int
	scheme *playwright.ColorScheme
}

// A telephone and a desk, by day and by night: the four ways every entry is looked at.
var (
	telephone        = view{"360-light", 360, 760, playwright.ColorSchemeLight}
	telephoneByNight = view{"360-dark", 360, 760, playwright.ColorSchemeDark}
	desk             = view{"1280-light", 1280, 800, playwright.ColorSchemeLight}
	deskByNight      = view{"1280-dark", 1280, 800, playwright.ColorSchemeDark}
	looks            = []view{telephone, telephoneByNight, desk, deskByNight} // the two of a width beside each other, the lighter first
)

// context opens a fresh browser context for the view. Motion is reduced so that a colour is measured at rest.
func (b *browser) context(v view) (playwright.BrowserContext, error) {
	return b.NewContext(playwright.BrowserNewContextOptions{
		Viewport:      &playwright.Size{Width: v.width, Height: v.height},
		ColorScheme:   v.scheme,
		ReducedMotion: playwright.ReducedMotionReduce,
	})
}

// serveLocal serves the gallery on a free loopback port until stop.
func serveLocal(entries []Entry) (origin string, stop func(), err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	server := &http.Server{Handler: site(entries), ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = server.Serve(listener) }()
	return "http://" + listener.Addr().String(), func() { _ = server.Close() }, nil
}

// takeShots writes a PNG of the whole page of every entry in every view.
func takeShots(dir string, entries []Entry) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	origin, stop, err := serveLocal(entries)
	if err != nil {
		return err
	}
	defer stop()
	b, err := openBrowser()
	if err != nil {
		return err
	}
	defer b.close()
	for _, v := range looks {
		if err := b.shoot(dir, origin, v, entries); err != nil {
			return err
		}
	}
	return nil
}

func (b *browser) shoot(dir, origin string, v view, entries []Entry) error {
	c, err := b.context(v)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	page, err := c.NewPage()
	if err != nil {
		return err
	}
	for _, e := range entries {
		if _, err := page.Goto(origin + "/" + e.file()); err != nil {
			return err
		}
		name := filepath.Join(dir, e.file()[:len(e.file())-len(".html")]+"-"+v.name+".png")
		if _, err := page.Screenshot(playwright.PageScreenshotOptions{Path: &name, FullPage: playwright.Bool(true)}); err != nil {
			return err
		}
	}
	return nil
}
