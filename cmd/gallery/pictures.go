package main

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/playwright-community/playwright-go"
)

// pictured is the entry the README shows: what the product is judged by.
const pictured = "action--full"

// takePictures writes the first screen of the approval card at a desk, as approval-light.png and approval-dark.png.
func takePictures(dir string) error {
	entries, err := allEntries(pictured)
	if err != nil {
		return err
	}
	if len(entries) == 0 {
		return errors.New("the gallery has no entry " + pictured)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	origin, stop, err := serveLocal(entries[:1])
	if err != nil {
		return err
	}
	defer stop()
	b, err := openBrowser()
	if err != nil {
		return err
	}
	defer b.close()
	for name, scheme := range map[string]*playwright.ColorScheme{"light": playwright.ColorSchemeLight, "dark": playwright.ColorSchemeDark} {
		if err := b.picture(origin+"/"+entries[0].file(), filepath.Join(dir, "approval-"+name+".png"), scheme); err != nil {
			return err
		}
	}
	return nil
}

func (b *browser) picture(address, file string, scheme *playwright.ColorScheme) error {
	c, err := b.context(view{width: 1280, height: 800, scheme: scheme})
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	page, err := c.NewPage()
	if err != nil {
		return err
	}
	if _, err := page.Goto(address); err != nil {
		return err
	}
	_, err = page.Screenshot(playwright.PageScreenshotOptions{Path: &file})
	return err
}
