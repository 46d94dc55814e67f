package agent

import (
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"strings"
	"time"

	"countersign/internal/capability"
	"countersign/internal/connector"
	"countersign/internal/fault"
	"countersign/internal/gateway"
	"countersign/internal/gitgateway"
	"countersign/web/answer"
)

// GitPrefix is where repositories are.
const GitPrefix = "/gateway/git/"

// pushWithin is how long one push may take to arrive: pushes are bounded in bytes, and a slow line is no attack.
const pushWithin = 30 * time.Minute

type git struct {
	runs    Runs
	gateway *gateway.Gateway
}

// NewGit answers git's smart HTTP protocol under GitPrefix with the token of a live run, as a bearer or as the password of any user.
func NewGit(runs Runs, g *gateway.Gateway) http.Handler { return &git{runs, g} }

// ServeHTTP implements http.Handler.
func (h *git) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	live, err := authenticateToken(r.Context(), h.runs, gitToken(r))
	if err != nil {
		if fault.Of(err).Kind == fault.Unauthenticated {
			w.Header().Set("WWW-Authenticate", `Basic realm="Countersign"`)
		}
		plainly(w, err)
		return
	}
	address, err := gitgateway.ReadAddress(strings.TrimPrefix(r.URL.EscapedPath(), GitPrefix), r.URL.RawQuery)
	if err == nil {
		err = fits(r, address)
	}
	if err != nil {
		plainly(w, err)
		return
	}
	w.Header().Set("Cache-Control", "no-cache, max-age=0, must-revalidate")
	switch {
	case address.Advertises:
		h.advertise(w, r, live, address)
	case address.Service == gitgateway.UploadPack:
		h.fetch(w, r, live, address)
	default:
		h.push(w, r, live, address)
	}
}

// gitToken is the run token of a request of git: git itself sends it as the password of a user that means nothing.
func gitToken(r *http.Request) string {
	if token, ok := bearer(r); ok {
		return token
	}
	if _, password, ok := r.BasicAuth(); ok && len(r.Header.Values("Authorization")) == 1 {
		return password
	}
	return ""
}

// fits judges method and media type.
func fits(r *http.Request, a gitgateway.Address) error {
	method := http.MethodPost
	if a.Advertises {
		method = http.MethodGet
	}
	kind := "application/x-" + string(a.Service) + "-request"
	encoding := r.Header.Get("Content-Encoding")
	switch {
	case r.Method != method:
		return fault.New(fault.Invalid, fault.InvalidArguments, "This address takes "+method+" only.", "Use an unmodified git.")
	case a.Advertises:
		return nil
	case r.Header.Get("Content-Type") != kind:
		return fault.New(fault.Invalid, answer.CodeMediaType, "The body is sent as "+kind+".", "Use an unmodified git.")
	case encoding != "" && (a.Service != gitgateway.UploadPack || encoding != "gzip" && encoding != "x-gzip"):
		return fault.New(fault.Invalid, answer.CodeMediaType, "The body is sent without content encoding.", "Use an unmodified git.")
	}
	return nil
}

// plainly answers in the form whose lines git shows to its user.
func plainly(w http.ResponseWriter, err error) {
	f := answer.Of(err)
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(answer.Status(f))
	_, _ = io.WriteString(w, f.What+"\n"+f.Next+"\n")
}

func version2(r *http.Request) bool { return r.Header.Get("Git-Protocol") == "version=2" }

// stream is an answer that is sent as it is written. Its headers leave with the first byte, so that what fails before it still is an error.
type stream struct {
	http.ResponseWriter
	kind    string
	started bool
}

// Write implements io.Writer.
func (s *stream) Write(b []byte) (int, error) {
	if !s.started {
		s.started = true
		s.Header().Set("Content-Type", s.kind)
	}
	n, err := s.ResponseWriter.Write(b)
	if err == nil {
		err = http.NewResponseController(s.ResponseWriter).Flush()
	}
	return n, err
}

func (h *git) open(ctx context.Context, l capability.Live, a gitgateway.Address) (*gateway.Repository, error) {
	return h.gateway.OpenRepository(ctx, l, connector.Key(a.Connection), a.Repository, a.Service == gitgateway.ReceivePack)
}

func (h *git) advertise(w http.ResponseWriter, r *http.Request, l capability.Live, a gitgateway.Address) {
	repository, err := h.open(r.Context(), l, a)
	if err != nil {
		plainly(w, err)
		return
	}
	out := &stream{ResponseWriter: w, kind: "application/x-" + string(a.Service) + "-advertisement"}
	err = repository.Advertise(r.Context(), out, a.Service, a.Service == gitgateway.UploadPack && version2(r))
	h.end(w, out, err)
}

// end answers an error as one where nothing was sent yet; else the connection is dropped, so that what arrived does not look whole.
func (h *git) end(w http.ResponseWriter, out *stream, err error) {
	switch {
	case err == nil:
	case !out.started:
		plainly(w, err)
	default:
		panic(http.ErrAbortHandler)
	}
}

func (h *git) fetch(w http.ResponseWriter, r *http.Request, l capability.Live, a gitgateway.Address) {
	out := &stream{ResponseWriter: w, kind: "application/x-git-upload-pack-result"}
	body, err := fetchBody(w, r)
	if err != nil {
		plainly(w, err)
		return
	}
	repository, err := h.open(r.Context(), l, a)
	if err == nil {
		err = repository.Fetch(r.Context(), out, version2(r), body)
	}
	if f, ok := fault.As(err); ok && !out.started && f.Kind != fault.Internal {
		_, _ = out.Write(gitgateway.Fail(f.Error()))
		return
	}
	h.end(w, out, err)
}

func fetchBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	var in io.Reader = http.MaxBytesReader(w, r.Body, gitgateway.MaxFetchRequest)
	if r.Header.Get("Content-Encoding") != "" {
		unzipped, err := gzip.NewReader(in)
		if err != nil {
			return nil, fault.New(fault.Invalid, fault.InvalidArguments, "The body is not compressed as it says.", "Use an unmodified git.").Wrap(err)
		}
		in = unzipped
	}
	body, err := io.ReadAll(io.LimitReader(in, gitgateway.MaxFetchRequest+1))
	if err == nil && len(body) > gitgateway.MaxFetchRequest {
		return nil, answer.TooLarge
	}
	return body, err
}

func (h *git) push(w http.ResponseWriter, r *http.Request, l capability.Live, a gitgateway.Address) {
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(pushWithin)) // where the connection cannot, the server's own bound stays
	_ = control.EnableFullDuplex()                          // git is told what happens while its pack is still being read
	out := &stream{ResponseWriter: w, kind: "application/x-git-receive-pack-result"}
	body := http.MaxBytesReader(w, r.Body, gitgateway.DefaultPackLimits.Bytes+gitgateway.MaxFetchRequest)
	asked, err := gitgateway.ReadPush(body)
	switch {
	case err == nil && asked.Probe:
		w.Header().Set("Content-Type", out.kind)
		w.WriteHeader(http.StatusOK)
		return
	case err != nil:
		h.refuse(w, out, body, asked, err)
		return
	}
	repository, err := h.open(r.Context(), l, a)
	if err != nil {
		h.refuse(w, out, body, asked, err)
		return
	}
	said, err := repository.Push(r.Context(), asked, body, func(line string) {
		if asked.SideBand {
			_, _ = out.Write(gitgateway.Say(line))
		}
	})
	if err != nil {
		h.refuse(w, out, body, asked, err)
		return
	}
	_ = said.Write(out, asked)
}

// refuse answers a push in the form that its client reads, after taking the rest of it: a client that still writes reads no answer.
func (h *git) refuse(w http.ResponseWriter, out *stream, body io.Reader, asked gitgateway.Push, why error) {
	_, _ = io.Copy(io.Discard, body)
	f := answer.Of(why)
	if len(asked.Asked) == 0 || !asked.Reports {
		h.end(w, out, f)
		return
	}
	_ = gitgateway.Refused(f).Write(out, asked)
}
