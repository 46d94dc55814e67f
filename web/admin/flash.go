package admin

import (
	"encoding/json"

	"countersign/views/layout"
	"countersign/views/ui"
)

type storedFlash struct {
	Tone string `json:"tone"`
	Text string `json:"text"`
}

// EncodeFlash is the form in which a session keeps words for its next page.
func EncodeFlash(f layout.Flash) []byte {
	b, _ := json.Marshal(storedFlash{string(f.Tone), f.Text}) // two strings always marshal
	return b
}

func decodeFlash(b []byte) (layout.Flash, bool) {
	var s storedFlash
	if len(b) == 0 || json.Unmarshal(b, &s) != nil || s.Text == "" {
		return layout.Flash{}, false
	}
	return layout.Flash{Tone: ui.Tone(s.Tone), Text: s.Text}, true
}
