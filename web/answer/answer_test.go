package answer

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"countersign/internal/fault"
)

func TestEveryKindHasAStatus(t *testing.T) {
	for kind := fault.Invalid; kind <= fault.Internal; kind++ {
		if _, ok := statusOfKind[kind]; !ok {
			t.Errorf("kind %d has no status", kind)
		}
		f := fault.New(kind, "x", "What.", "Next.")
		if View(f, "req_x").Title == "" {
			t.Errorf("kind %d has no title", kind)
		}
	}
	if got := Status(&fault.Error{}); got != http.StatusInternalServerError {
		t.Errorf("a fault of no kind is %d", got)
	}
}

func TestOf(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
		what string
	}{
		{fault.Absent("run"), 404, "There is no such run."},
		{fmt.Errorf("wrapped: %w", fault.Stale("It changed.")), 409, "It changed."},
		{fault.List{fault.Field("a", "A is wrong."), fault.Field("b", "B is wrong.")}, 422, "A is wrong."},
		{&http.MaxBytesError{Limit: 1}, 413, TooLarge.What},
		{echo.ErrNotFound, 404, NoSuchPage.What},
		{echo.ErrMethodNotAllowed, 405, Method.What},
		{echo.NewHTTPError(418, "from a library"), 500, Broken.What},
		{context.DeadlineExceeded, 503, Slow.What},
		{errors.New("pq: password authentication failed for user x"), 500, Broken.What},
		{MediaType, 415, MediaType.What},
		{Host, 421, Host.What},
		{CrossSite, 403, CrossSite.What},
	} {
		f := Of(c.err)
		if Status(f) != c.want || f.What != c.what {
			t.Errorf("%v: %d %q, want %d %q", c.err, Status(f), f.What, c.want, c.what)
		}
	}
}

func TestJSONShowsNoCause(t *testing.T) {
	w := httptest.NewRecorder()
	JSON(w, httptest.NewRequest(http.MethodGet, "/api/v1/runs", nil), errors.New("a secret cause"))
	if w.Code != 500 || strings.Contains(w.Body.String(), "secret") || !strings.Contains(w.Body.String(), `"code":"internal"`) {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	w = httptest.NewRecorder()
	JSON(w, httptest.NewRequest(http.MethodGet, "/", nil), fault.New(fault.Unauthenticated, fault.CodeUnauthenticated, "No.", ""))
	if w.Code != 401 || w.Header().Get("WWW-Authenticate") == "" || w.Header().Get("Cache-Control") != "no-store" {
		t.Fatalf("%d %v", w.Code, w.Header())
	}
}

func TestBodyNamesEveryField(t *testing.T) {
	status, body := Body(fault.List{fault.Field("task", "Name a task."), fault.Field("profile", "Name a profile."), fault.Field("task", "Again.")})
	want := `{"error":{"code":"invalid","message":"Several fields are wrong.","next":"Correct the fields named here and send it again.","fields":{"profile":"Name a profile.","task":"Name a task."}}}`
	if status != 422 || string(body) != want {
		t.Fatalf("%d %s", status, body)
	}
	status, body = Body(fault.Field("task", "Name a task."))
	if want := `{"error":{"code":"invalid","message":"Name a task.","next":"","fields":{"task":"Name a task."}}}`; status != 422 || string(body) != want {
		t.Fatalf("%d %s", status, body)
	}
}
