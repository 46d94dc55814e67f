package egress

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
)

// overheard sends a request and returns the bytes that arrived.
func overheard(t *testing.T, build func(Destination, Options) *http.Client, edit func(*http.Request), body io.Reader) (string, Record, error) {
	t.Helper()
	arrived := make(chan string, 1)
	url, _ := visits(t, func(_ int64, c net.Conn, in *bufio.Reader) {
		var all bytes.Buffer
		_ = heard(bufio.NewReader(io.TeeReader(in, &all)))
		arrived <- all.String()
		_, _ = io.WriteString(c, okAnswer)
	})
	ctx, watch := Observe(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/a%20b?c=d", body)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = strings.TrimPrefix(url, "http://")
	edit(req)
	resp, err := build(operator(t, url), Options{}).Do(req)
	if err != nil {
		return "", watch.Record(), err
	}
	_ = resp.Body.Close()
	return strings.ReplaceAll(<-arrived, req.Host, "HOST"), watch.Record(), nil
}

func TestWhatIsSent(t *testing.T) {
	unknown := func(s string) io.Reader { return struct{ io.Reader }{strings.NewReader(s)} }
	for name, test := range map[string]struct {
		body io.Reader
		edit func(*http.Request)
		want string
	}{
		"a body": {
			strings.NewReader("hello"),
			func(r *http.Request) { r.Header.Set("X-A", " b\t") },
			"POST /a%20b?c=d HTTP/1.1\r\nHost: HOST\r\nX-A: b\r\nUser-Agent: Countersign\r\nAccept-Encoding: gzip\r\nCLOSEContent-Length: 5\r\n\r\nhello",
		},
		"a body of unknown length": {
			unknown("hello"),
			func(r *http.Request) { r.Header.Set("User-Agent", "me") },
			"POST /a%20b?c=d HTTP/1.1\r\nHost: HOST\r\nUser-Agent: me\r\nAccept-Encoding: gzip\r\nCLOSEContent-Length: 5\r\n\r\nhello",
		},
		"none": {
			nil,
			func(r *http.Request) { r.Header.Set("Accept-Encoding", "br") },
			"POST /a%20b?c=d HTTP/1.1\r\nHost: HOST\r\nAccept-Encoding: br\r\nUser-Agent: Countersign\r\nCLOSEContent-Length: 0\r\n\r\n",
		},
		"framing by somebody else": {
			nil,
			func(r *http.Request) {
				r.Method = http.MethodDelete
				r.Header = http.Header{"Content-Length": {"9"}, "transfer-encoding": {"chunked"}, "Host": {"other"}, "Connection": {"upgrade"}, "Trailer": {"x"}, "Expect": {"100-continue"}}
			},
			"DELETE /a%20b?c=d HTTP/1.1\r\nHost: HOST\r\nUser-Agent: Countersign\r\nAccept-Encoding: gzip\r\nCLOSE\r\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			for build, last := range map[string]string{"reads": "", "writes": "Connection: close\r\n"} {
				client := Client
				if build == "writes" {
					client = Dispatch
				}
				body := test.body
				if s, ok := body.(io.Seeker); ok {
					_, _ = s.Seek(0, io.SeekStart)
				} else if body != nil {
					body = unknown("hello")
				}
				got, r, err := overheard(t, client, test.edit, body)
				if want := strings.Replace(test.want, "CLOSE", last, 1); err != nil || got != want {
					t.Errorf("%s: %v\n%q, want\n%q", build, err, got, want)
				}
				length := int64(len(got) + len("127.0.0.1:") - len("HOST")) // and the port
				if rest := r.BytesWritten - length; rest < 1 || rest > 5 {
					t.Errorf("%s: %d bytes were recorded of about %d", build, r.BytesWritten, length)
				}
			}
		})
	}
}

func TestWhatIsNoRequestIsNotSent(t *testing.T) {
	broken := errors.New("broken")
	for name, test := range map[string]struct {
		body io.Reader
		edit func(*http.Request)
	}{
		"a line in a value":     {nil, func(r *http.Request) { r.Header["X-A"] = []string{"b\r\nX-B: c"} }},
		"a line in a name":      {nil, func(r *http.Request) { r.Header["X-A: b\r\nX-B"] = []string{"c"} }},
		"a line in the target":  {nil, func(r *http.Request) { r.URL.RawQuery = "a\r\nX-B: c" }},
		"a space in the target": {nil, func(r *http.Request) { r.URL.RawQuery = "a HTTP/1.1" }},
		"a space in the method": {nil, func(r *http.Request) { r.Method = "GET / HTTP/1.1\r\nX:" }},
		"shorter than it says":  {strings.NewReader("x"), func(r *http.Request) { r.ContentLength = 2 }},
		"longer than it says":   {strings.NewReader("xyz"), func(r *http.Request) { r.ContentLength = 2 }},
		"a body that breaks":    {errReader{broken}, func(*http.Request) {}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, build := range []func(Destination, Options) *http.Client{Client, Dispatch} {
				if s, ok := test.body.(io.Seeker); ok {
					_, _ = s.Seek(0, io.SeekStart)
				}
				if got, r, err := overheard(t, build, test.edit, test.body); err == nil || r.BytesWritten != 0 || r.Status != 0 {
					t.Errorf("%q %v %+v", got, err, r)
				}
			}
		})
	}
}

func TestAnAnswerComesCompressedOnlyWhereWeOfferedIt(t *testing.T) {
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, _ = io.WriteString(z, "hello")
	_ = z.Close()
	url, opened := visits(t, func(_ int64, c net.Conn, in *bufio.Reader) {
		for heard(in) {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n")
			w := &chunks{c}
			_, _ = w.Write(zipped.Bytes()[:7])
			_, _ = w.Write(zipped.Bytes()[7:])
			_, _ = io.WriteString(c, "0\r\n\r\n")
		}
	})
	c := Client(operator(t, url), Options{})
	for range 2 {
		if body, r, err := send(t, t.Context(), c, url); err != nil || body != "hello" || r.BytesRead != 5 || opened.Load() != 1 {
			t.Errorf("%q %v %+v on %d connections", body, err, r, opened.Load())
		}
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept-Encoding", "gzip") // the caller's own wish is the caller's to unpack
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); err != nil || !bytes.Equal(body, zipped.Bytes()) || resp.Header.Get("Content-Encoding") != "gzip" {
		t.Errorf("%d bytes, %v", len(body), err)
	}
}

// chunks writes each write as a chunk.
type chunks struct{ io.Writer }

func (c *chunks) Write(b []byte) (int, error) {
	_, err := io.WriteString(c.Writer, strings.ToUpper(strconv.FormatInt(int64(len(b)), 16))+"\r\n"+string(b)+"\r\n")
	return len(b), err
}
