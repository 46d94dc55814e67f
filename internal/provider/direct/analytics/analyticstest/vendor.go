// Package analyticstest owns a Google Analytics for tests: its token endpoint, Admin API and Data API as real HTTP servers with the
// published shapes, errors, pages and quotas, and the faults of directtest. It knows nothing of who asks.
package analyticstest

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"countersign/internal/provider/direct/directtest"
)

// Scope is what a key has to ask for.
const Scope = "https://www.googleapis.com/auth/analytics.readonly"

// Vendor is the three servers. Its properties are 1001 and 1002.
type Vendor struct {
	*directtest.Server // both APIs
	TokenURL           string
	Key                string // the file of a service account's key
	Exchanged          atomic.Int64

	public  *rsa.PublicKey
	left    atomic.Int64
	refuses atomic.Bool
}

var key = sync.OnceValue(func() *rsa.PrivateKey {
	k, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return k
})

// New starts one.
func New(t testing.TB) *Vendor {
	t.Helper()
	v := &Vendor{public: &key().PublicKey}
	v.left.Store(200_000)
	v.Server = (&directtest.Server{Name: operation, Refuse: refuse, Next: v}).Start(t)
	tokens := (&directtest.Server{Name: func(*http.Request) string { return "token" }, Refuse: refuse, Next: http.HandlerFunc(v.exchange)}).Start(t)
	v.TokenURL = tokens.URL + "/token"
	der, err := x509.MarshalPKCS8PrivateKey(key())
	if err != nil {
		t.Fatal(err)
	}
	file, err := json.MarshalIndent(map[string]string{
		"type": "service_account", "client_email": "reports@harbor.example", "private_key_id": "k1", "token_uri": "https://elsewhere.example/token",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
	}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	v.Key = string(file)
	return v
}

// Disable makes the token endpoint refuse the key, as a deleted one is.
func (v *Vendor) Disable() { v.refuses.Store(true) }

func (v *Vendor) exchange(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(r.FormValue("assertion"), ".")
	valid := len(parts) == 3 && !v.refuses.Load()
	if valid {
		sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
		signature, _ := base64.RawURLEncoding.DecodeString(parts[2])
		claims, _ := base64.RawURLEncoding.DecodeString(parts[1])
		valid = rsa.VerifyPKCS1v15(v.public, crypto.SHA256, sum[:], signature) == nil && strings.Contains(string(claims), `"scope":"`+Scope+`"`) &&
			strings.Contains(string(claims), `"aud":"https://oauth2.googleapis.com/token"`)
	}
	if !valid {
		directtest.JSON(w, "application/json", http.StatusBadRequest, map[string]string{"error": "invalid_grant", "error_description": "Invalid JWT Signature."})
		return
	}
	v.Exchanged.Add(1)
	directtest.JSON(w, "application/json", http.StatusOK, map[string]any{"access_token": Token, "expires_in": 3599, "token_type": "Bearer"})
}

// Token is what a key is exchanged for.
const Token = "ya29-access-0123456789abcdefghij"

var paths = regexp.MustCompile(`^/v1beta/(accountSummaries|properties/([0-9]+)(?:[:/]([a-zA-Z]+))?)$`)

var names = map[string]string{
	"": "get_property", "metadata": "get_metadata", "checkCompatibility": "check_compatibility", "runReport": "run_report", "runRealtimeReport": "run_realtime_report",
	"runPivotReport": "run_pivot_report", "batchRunReports": "batch_run_reports", "customDimensions": "list_custom_dimensions", "customMetrics": "list_custom_metrics",
	"keyEvents": "list_key_events", "dataStreams": "list_data_streams",
}

func operation(r *http.Request) string {
	m := paths.FindStringSubmatch(r.URL.Path)
	switch {
	case m == nil:
		return r.URL.Path
	case m[2] == "":
		return "list_account_summaries"
	}
	return names[m[3]]
}

func refuse(w http.ResponseWriter, status int) {
	if status == http.StatusUnprocessableEntity {
		status = http.StatusBadRequest
	}
	fail(w, status, map[int]string{400: "INVALID_ARGUMENT", 429: "RESOURCE_EXHAUSTED"}[status], "The request was refused.")
}

func fail(w http.ResponseWriter, code int, status, message string) {
	directtest.JSON(w, "application/json", code, map[string]any{"error": map[string]any{"code": code, "message": message, "status": status}})
}

// ServeHTTP does the vendor's work.
func (v *Vendor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m := paths.FindStringSubmatch(r.URL.Path)
	switch {
	case r.Header.Get("Authorization") != "Bearer "+Token:
		fail(w, http.StatusUnauthorized, "UNAUTHENTICATED", "Request had invalid authentication credentials.")
	case m == nil:
		http.NotFound(w, r)
	case m[2] == "":
		v.summaries(w, r)
	case m[2] != "1001" && m[2] != "1002":
		fail(w, http.StatusForbidden, "PERMISSION_DENIED", "User does not have sufficient permissions for this property.")
	case r.Method == http.MethodPost:
		v.report(w, r, m[3])
	case m[3] == "":
		answer(w, map[string]any{"name": "properties/" + m[2], "displayName": "Harbor " + m[2], "timeZone": "Europe/Berlin", "currencyCode": "EUR"})
	case m[3] == "metadata":
		answer(w, map[string]any{
			"dimensions": []any{map[string]any{"apiName": "country", "uiName": "Country", "description": "Where the activity comes from.", "category": "Geography"}},
			"metrics":    []any{map[string]any{"apiName": "activeUsers", "uiName": "Active users", "description": "How many people.", "type": "TYPE_INTEGER"}},
		})
	default:
		answer(w, map[string]any{m[3]: []any{map[string]any{"name": r.URL.Path + "/1", "displayName": "One"}}})
	}
}

func answer(w http.ResponseWriter, v any) {
	directtest.JSON(w, "application/json; charset=UTF-8", http.StatusOK, v)
}

func (v *Vendor) summaries(w http.ResponseWriter, r *http.Request) {
	one := func(account, property string) map[string]any {
		return map[string]any{"name": "accountSummaries/" + account, "account": "accounts/" + account, "displayName": "Account " + account, "propertySummaries": []any{map[string]any{"property": "properties/" + property, "displayName": "Harbor " + property}}}
	}
	out := map[string]any{"accountSummaries": []any{one("1", "1001"), one("2", "1002")}}
	if r.URL.Query().Get("pageSize") == "1" {
		out["accountSummaries"], out["nextPageToken"] = []any{one("1", "1001")}, "second"
		if r.URL.Query().Get("pageToken") == "second" {
			out = map[string]any{"accountSummaries": []any{one("2", "1002")}}
		}
	}
	answer(w, out)
}

type asked struct {
	Dimensions, Metrics []struct{ Name string }
	Limit, Offset       string
	ReturnPropertyQuota bool
	Requests            []asked
}

// rowCount is how many countries there are.
const rowCount = 400

func (v *Vendor) report(w http.ResponseWriter, r *http.Request, verb string) {
	var q asked
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		fail(w, http.StatusBadRequest, "INVALID_ARGUMENT", err.Error())
		return
	}
	for _, one := range append(q.Requests, q) {
		for _, m := range one.Metrics {
			if m.Name == "noSuchMetric" {
				fail(w, http.StatusBadRequest, "INVALID_ARGUMENT", "Field noSuchMetric is not a valid metric.")
				return
			}
		}
	}
	switch verb {
	case "checkCompatibility":
		answer(w, map[string]any{"dimensionCompatibilities": []any{map[string]any{"compatibility": "COMPATIBLE"}}})
	case "batchRunReports":
		reports := []any{}
		for _, one := range q.Requests {
			reports = append(reports, v.rows(one))
		}
		answer(w, map[string]any{"kind": "analyticsData#batchRunReports", "reports": reports})
	default:
		answer(w, v.rows(q))
	}
}

func (v *Vendor) rows(q asked) map[string]any {
	heads := func(names []struct{ Name string }) []any {
		out := []any{}
		for _, n := range names {
			out = append(out, map[string]string{"name": n.Name})
		}
		return out
	}
	limit, _ := strconv.Atoi(q.Limit)
	offset, _ := strconv.Atoi(q.Offset)
	if limit == 0 {
		limit = 10_000
	}
	rows := []any{}
	for i := offset; i < min(rowCount, offset+limit); i++ {
		rows = append(rows, map[string]any{
			"dimensionValues": []any{map[string]string{"value": fmt.Sprintf("Country number %d with a long name", i)}}, "metricValues": []any{map[string]string{"value": strconv.Itoa(rowCount - i)}},
		})
	}
	out := map[string]any{
		"dimensionHeaders": heads(q.Dimensions), "metricHeaders": heads(q.Metrics), "rows": rows, "rowCount": rowCount, "kind": "analyticsData#runReport",
		"metadata": map[string]any{
			"currencyCode": "EUR", "timeZone": "Europe/Berlin", "subjectToThresholding": true, "samplingMetadatas": []any{map[string]string{"samplesReadCount": "500", "samplingSpaceSize": "1000"}},
		},
	}
	if q.ReturnPropertyQuota {
		out["propertyQuota"] = map[string]any{"tokensPerDay": map[string]int64{"consumed": 10, "remaining": v.left.Add(-10)}}
	}
	return out
}
