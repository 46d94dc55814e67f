package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
)

// serveProxy is the least a gateway of net/http can cost: it forwards and looks at nothing. The request's body is read before it is
// forwarded; streamed to a quick upstream, large answers break now and then.
func serveProxy(target string) error {
	to, err := url.Parse(target)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(listener.Addr())
	proxy := &httputil.ReverseProxy{
		Rewrite:    func(r *httputil.ProxyRequest) { r.SetURL(to) },
		Transport:  &http.Transport{MaxIdleConnsPerHost: 256, DisableCompression: true},
		BufferPool: &pool{},
	}
	return http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, "not read", http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		proxy.ServeHTTP(w, r)
	}))
}

type pool struct{ buffers sync.Pool }

// Get implements httputil.BufferPool.
func (p *pool) Get() []byte {
	if b, ok := p.buffers.Get().(*[]byte); ok {
		return *b
	}
	return make([]byte, 32<<10)
}

// Put implements httputil.BufferPool.
func (p *pool) Put(b []byte) { p.buffers.Put(&b) }
