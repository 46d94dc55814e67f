package crm

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
)

// largestControl bounds a control request's body, in bytes.
const largestControl = 1 << 20

// serveJournal answers every applied effect, in order.
func (s *Server) serveJournal(w http.ResponseWriter, _ *http.Request) {
	answer(w, s.book.entries())
}

// faultOrder is the body of POST /faults. Times defaults to 1. Seconds (may have a fraction) is the delay of slow and late_apply,
// 2 by default, or the longest time a hang lasts.
type faultOrder struct {
	Tool    string   `json:"tool"`
	Mode    mode     `json:"mode"`
	Times   *int     `json:"times"`
	Seconds *float64 `json:"seconds"`
}

func (s *Server) serveFaults(w http.ResponseWriter, r *http.Request) {
	var in faultOrder
	if !read(w, r, &in) {
		return
	}
	a, problem := in.arming()
	if problem == "" && !s.book.arm(a) {
		problem = "There is no tool of that name."
	}
	if problem != "" {
		sentence(w, http.StatusBadRequest, problem)
		return
	}
	answer(w, map[string]any{"tool": a.tool, "mode": a.mode, "times": a.times, "seconds": a.delay.Seconds()})
}

// arming checks an order; problem is a sentence, empty when there is none.
func (in faultOrder) arming() (a arming, problem string) {
	a = arming{tool: in.Tool, mode: in.Mode, times: 1}
	if !slices.Contains(modes, in.Mode) {
		names := make([]string, len(modes))
		for i, m := range modes {
			names[i] = string(m)
		}
		return a, "There is no such mode; choose one of " + strings.Join(names, ", ") + "."
	}
	if in.Times != nil {
		a.times = *in.Times
	}
	if a.times < 1 || a.times > mostTimes {
		return a, "times is a whole number between 1 and 1000."
	}
	if in.Mode.delayed() {
		a.delay = defaultDelay
	}
	if in.Seconds != nil {
		if *in.Seconds < 0 || *in.Seconds > longestDelay.Seconds() {
			return a, "seconds is a number between 0 and 600."
		}
		a.delay = time.Duration(*in.Seconds * float64(time.Second))
	}
	return a, ""
}

// serveTools changes a definition by a JSON merge patch. It does not ask whether the result makes sense: nonsense is what
// upstreams send.
func (s *Server) serveTools(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Name  string          `json:"name"`
		Patch json.RawMessage `json:"patch"`
	}
	if !read(w, r, &in) {
		return
	}
	if in.Name == "" || len(in.Name) > 256 {
		sentence(w, http.StatusBadRequest, "name is the name of the tool to change or to add, at most 256 bytes.")
		return
	}
	if len(in.Patch) == 0 {
		sentence(w, http.StatusBadRequest, "patch is missing; it is a JSON object, or null to take the tool away.")
		return
	}
	patch, err := decodeAny(in.Patch)
	if _, object := patch.(map[string]any); err != nil || (patch != nil && !object) {
		sentence(w, http.StatusBadRequest, "patch is a JSON object, or null to take the tool away.")
		return
	}
	raw, err := s.book.patch(in.Name, patch)
	if err != nil {
		sentence(w, http.StatusBadRequest, "The patch does not apply: "+err.Error()+".")
		return
	}
	s.log.Info("tool definition changed", "tool", in.Name)
	answer(w, raw)
}

func (s *Server) serveReset(w http.ResponseWriter, _ *http.Request) {
	s.book.restore()
	s.log.Info("sandbox reset")
	answer(w, map[string]any{"reset": true})
}

// read parses the body strictly: a misspelt field would otherwise arm a fault that nobody meant.
func read(w http.ResponseWriter, r *http.Request, into any) bool {
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, largestControl))
	if err != nil {
		if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
			sentence(w, http.StatusRequestEntityTooLarge, "The body is larger than a mebibyte.")
			return false
		}
		sentence(w, http.StatusBadRequest, "The body could not be read.")
		return false
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		sentence(w, http.StatusBadRequest, "The body is not the JSON this endpoint takes: "+strings.TrimPrefix(err.Error(), "json: ")+".")
		return false
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		sentence(w, http.StatusBadRequest, "The body holds more than one JSON value.")
		return false
	}
	return true
}

func answer(w http.ResponseWriter, v any) {
	raw, err := json.Marshal(v)
	if err != nil {
		sentence(w, http.StatusInternalServerError, "The answer could not be written.")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(append(raw, '\n'))
}
