package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/playwright-community/playwright-go"
)

// errNoBrowser names the commands that bring what is missing. Nothing is skipped for want of a browser.
var errNoBrowser = errors.New("Chromium or its driver is missing: run `npm ci` and `apt-get install -y --no-install-recommends chromium` (or set CHROMIUM to an executable)")

// chromium is the one browser of this package's tests; every person gets a context of their own in it.
var chromium struct {
	once    sync.Once
	err     error
	dir     string
	driver  *playwright.Playwright
	browser playwright.Browser
}

func openBrowser(t *testing.T) playwright.Browser {
	t.Helper()
	chromium.once.Do(func() { chromium.err = launch() })
	if chromium.err != nil {
		t.Fatal(chromium.err)
	}
	return chromium.browser
}

// launch starts Chromium through the driver in node_modules. The driver folder the library wants (a node and a package beside each
// other) is made of two links; nothing is downloaded.
func launch() (err error) {
	executable, err := chromiumPath()
	if err != nil {
		return err
	}
	node, err := exec.LookPath("node")
	if err != nil {
		return errNoBrowser
	}
	core := filepath.Join(repo, "node_modules", "playwright-core")
	if _, err := os.Stat(filepath.Join(core, "cli.js")); err != nil {
		return errNoBrowser
	}
	if chromium.dir, err = os.MkdirTemp("", "driver"); err != nil {
		return err
	}
	if err = errors.Join(os.Symlink(node, filepath.Join(chromium.dir, "node")), os.Symlink(core, filepath.Join(chromium.dir, "package"))); err != nil {
		return err
	}
	if chromium.driver, err = playwright.Run(&playwright.RunOptions{DriverDirectory: chromium.dir, SkipInstallBrowsers: true}); err != nil {
		return fmt.Errorf("%w (%v)", errNoBrowser, err)
	}
	chromium.browser, err = chromium.driver.Chromium.Launch(playwright.BrowserTypeLaunchOptions{
		ExecutablePath:  &executable,
		ChromiumSandbox: playwright.Bool(os.Geteuid() != 0), // Chromium refuses to sandbox for root
		Args:            []string{"--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"},
	})
	return err
}

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

func closeBrowser() {
	if chromium.browser != nil {
		_ = chromium.browser.Close()
	}
	if chromium.driver != nil {
		_ = chromium.driver.Stop()
	}
	if chromium.dir != "" {
		_ = os.RemoveAll(chromium.dir)
	}
}

// view is one width and one colour scheme.
type view struct {
	name          string
	width, height int
	scheme        *playwright.ColorScheme
	noScript      bool
}

var (
	desk  = view{"1280-light", 1280, 800, playwright.ColorSchemeLight, false}
	views = []view{
		{"360-light", 360, 760, playwright.ColorSchemeLight, false},
		{"360-dark", 360, 760, playwright.ColorSchemeDark, false},
		desk,
		{"1280-dark", 1280, 800, playwright.ColorSchemeDark, false},
	}
)

// person is somebody in front of a browser of their own, which stays open as long as the server runs.
type person struct {
	playwright.Page
	url   string
	heard *complaints
}

// complaints are what a page objected to: a script error, something its own policy refuses, hostile text that ran.
type complaints struct {
	mu   sync.Mutex
	list []string
}

func (c *complaints) add(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append(c.list, fmt.Sprintf(format, args...))
}

// tell fails the test for what was heard since the last time.
func (c *complaints) tell(t *testing.T) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, what := range c.list {
		t.Error(what)
	}
	c.list = nil
}

// visitor opens a browser nobody has signed in with.
func (s *server) visitor(t *testing.T, v view) *person {
	t.Helper()
	c, err := openBrowser(t).NewContext(playwright.BrowserNewContextOptions{
		Viewport: &playwright.Size{Width: v.width, Height: v.height}, ColorScheme: v.scheme, ReducedMotion: playwright.ReducedMotionReduce,
		JavaScriptEnabled: playwright.Bool(!v.noScript),
	})
	must(t, err)
	c.SetDefaultTimeout(20_000)
	s.atEnd = append(s.atEnd, func() { _ = c.Close() })
	page, err := c.NewPage()
	must(t, err)
	heard := &complaints{}
	page.OnConsole(func(m playwright.ConsoleMessage) {
		// A refused form (422, 409) is an answer, though the browser's console calls every such status an error.
		if m.Type() == "error" && !strings.Contains(m.Text(), "Failed to load resource") {
			heard.add("%s: console: %s", page.URL(), m.Text())
		}
	})
	page.OnPageError(func(err error) { heard.add("%s: script error: %v", page.URL(), err) })
	page.OnDialog(func(d playwright.Dialog) {
		heard.add("%s: hostile text ran as a script: %s", page.URL(), d.Message())
		_ = d.Dismiss()
	})
	return &person{page, s.url, heard}
}

// signsIn signs one of the sandbox's people in.
func (s *server) signsIn(t *testing.T, email string, v view) *person {
	t.Helper()
	p := s.visitor(t, v)
	p.signsIn(t, email, s.password(t, email))
	return p
}

func (p *person) signsIn(t *testing.T, email, password string) {
	t.Helper()
	p.opens(t, "/sign-in")
	p.fills(t, "email", email)
	p.fills(t, "password", password)
	p.presses(t, "sign-in")
	p.reads(t, "Sign out")
}

// opens goes to a path and returns the status of the answer.
func (p *person) opens(t *testing.T, path string) int {
	t.Helper()
	res, err := p.Goto(p.url + path)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	p.heard.tell(t)
	return res.Status()
}

// fills types into the visible field of a name.
func (p *person) fills(t *testing.T, name, value string) {
	t.Helper()
	if err := p.Locator(fmt.Sprintf(`main [name=%q]:visible`, name)).First().Fill(value); err != nil {
		p.stuck(t, "filling "+name, err)
	}
}

// ticks sets a check box or chooses a radio button.
func (p *person) ticks(t *testing.T, name, value string, on bool) {
	t.Helper()
	box := p.Locator(fmt.Sprintf(`main input[name=%q][value=%q]`, name, value)).First()
	if err := box.SetChecked(on); err != nil {
		p.stuck(t, fmt.Sprintf("ticking %s=%s", name, value), err)
	}
}

func (p *person) ticked(t *testing.T, name, value string) bool {
	t.Helper()
	on, err := p.Locator(fmt.Sprintf(`main input[name=%q][value=%q]`, name, value)).First().IsChecked()
	if err != nil {
		p.stuck(t, fmt.Sprintf("looking at %s=%s", name, value), err)
	}
	return on
}

// presses clicks the button of a data-test name, and waits for the page that follows.
func (p *person) presses(t *testing.T, test string) {
	t.Helper()
	button := p.Locator(fmt.Sprintf(`[data-test=%q]:visible`, test)).First()
	if err := button.Click(); err != nil {
		p.stuck(t, "pressing "+test, err)
	}
	if err := p.WaitForLoadState(); err != nil {
		p.stuck(t, "after pressing "+test, err)
	}
	p.heard.tell(t)
}

// follows clicks the first link with these words.
func (p *person) follows(t *testing.T, words string) {
	t.Helper()
	if err := p.Locator("main a:visible", playwright.PageLocatorOptions{HasText: words}).First().Click(); err != nil {
		p.stuck(t, "following "+words, err)
	}
	if err := p.WaitForLoadState(); err != nil {
		p.stuck(t, "after following "+words, err)
	}
}

// unfolds opens the first folded part with these words.
func (p *person) unfolds(t *testing.T, words string) {
	t.Helper()
	if err := p.Locator("main summary:visible", playwright.PageLocatorOptions{HasText: words}).First().Click(); err != nil {
		p.stuck(t, "unfolding "+words, err)
	}
}

// reads waits until the page says all of it.
func (p *person) reads(t *testing.T, words ...string) {
	t.Helper()
	for _, w := range words {
		expression := regexp.MustCompile(strings.ReplaceAll(regexp.QuoteMeta(w), " ", `\s+`))
		if err := playwright.NewPlaywrightAssertions(20_000).Locator(p.Locator("body")).ToContainText(expression); err != nil {
			p.stuck(t, "reading “"+w+"”", nil)
		}
	}
}

// readsNot makes sure that neither the page nor its source says any of it.
func (p *person) readsNot(t *testing.T, words ...string) {
	t.Helper()
	source, err := p.Content()
	must(t, err)
	for _, w := range words {
		if strings.Contains(source, w) {
			t.Errorf("%s says “%s”", p.URL(), w)
		}
	}
}

// offers reports whether the page has a button of this name.
func (p *person) offers(t *testing.T, test string) bool {
	t.Helper()
	n, err := p.Locator(fmt.Sprintf(`[data-test=%q]`, test)).Count()
	must(t, err)
	return n > 0
}

// value is the content of an element of a data-test name.
func (p *person) value(t *testing.T, test string) string {
	t.Helper()
	s, err := p.Locator(fmt.Sprintf(`[data-test=%q]`, test)).First().TextContent()
	if err != nil {
		p.stuck(t, "reading "+test, err)
	}
	return strings.TrimSpace(s)
}

// stuck ends the test with what the page says.
func (p *person) stuck(t *testing.T, what string, err error) {
	t.Helper()
	text := ""
	if s, textErr := p.Locator("main").InnerText(); textErr == nil {
		text = strings.Join(strings.Fields(s), " ")
	}
	if file := shotFile("stuck-" + strings.ReplaceAll(t.Name(), "/", "-")); file != "" {
		_, _ = p.Screenshot(playwright.PageScreenshotOptions{Path: &file, FullPage: playwright.Bool(true)})
	}
	t.Fatalf("%s at %s: %v\nThe page says:\n%s", what, p.URL(), err, text)
}

// shotFile is where a screenshot goes: into COUNTERSIGN_E2E_SHOTS, a folder for people to look at; "" without it.
func shotFile(name string) string {
	dir := os.Getenv("COUNTERSIGN_E2E_SHOTS")
	if dir == "" || os.MkdirAll(dir, 0o755) != nil {
		return ""
	}
	return filepath.Join(dir, name+".png")
}
