package web

import (
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// meter counts requests by route pattern, never by address: an address would be an endless number of series and may hold an id.
type meter struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
}

func newMeter(reg prometheus.Registerer) meter {
	m := meter{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "countersign_http_requests_total", Help: "Requests answered, by route pattern and status."}, []string{"method", "route", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "countersign_http_request_seconds", Help: "Time to answer, by route pattern.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 25},
		}, []string{"method", "route"}),
	}
	reg.MustRegister(m.requests, m.seconds)
	return m
}

func (m meter) observe(method, route string, status int, took time.Duration) {
	m.requests.WithLabelValues(method, route, strconv.Itoa(status)).Inc()
	m.seconds.WithLabelValues(method, route).Observe(took.Seconds())
}

// metrics serves the figures to this machine alone. A proxy on this machine would make the whole world look local, so a request that
// was forwarded is not local either.
func metrics(reg *prometheus.Registry) http.Handler {
	figures := promhttp.HandlerFor(reg, promhttp.HandlerOpts{})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.RemoteAddr)
		ip := net.ParseIP(host)
		if err != nil || ip == nil || !ip.IsLoopback() || forwarded(r) {
			http.Error(w, "Metrics are served to this machine only.", http.StatusForbidden)
			return
		}
		figures.ServeHTTP(w, r)
	})
}

func forwarded(r *http.Request) bool {
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-Ip", "Via"} {
		if r.Header.Get(name) != "" {
			return true
		}
	}
	return false
}

// alive answers that the process runs.
func alive(w http.ResponseWriter, _ *http.Request) { writeText(w, http.StatusOK, "ok\n") }

// ready answers whether the server can do its work now. Why it cannot is in the log, not in an answer anybody may read.
func (s *server) ready(w http.ResponseWriter, r *http.Request) {
	if s.config.Ready != nil {
		if err := s.config.Ready(r.Context()); err != nil {
			writeText(w, http.StatusServiceUnavailable, "not ready\n")
			return
		}
	}
	writeText(w, http.StatusOK, "ready\n")
}

func writeText(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text))
}
