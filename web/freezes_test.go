package web_test

import (
	"net/http"
	"strings"
	"testing"

	"countersign/internal/action"
)

func TestTheSwitchIsPressedAndLifted(t *testing.T) {
	d := newDesk(t)
	a := d.refund()
	admin := d.as("admin@harbor.test")
	admin.get("/settings").is(t, http.StatusOK, `data-test="freeze"`, "Reads go on")
	admin.post("/freezes", "scope", "organization", "key", "", "reason", " ").is(t, http.StatusUnprocessableEntity, "Nothing was frozen.")
	admin.post("/freezes", "scope", "organization", "key", "", "reason", "A <b>wrong</b> refund").goes(t, "/settings")
	admin.get("/settings").is(t, http.StatusOK, `data-test="lift"`, "A &lt;b&gt;wrong&lt;/b&gt; refund").lacks(t, `data-test="freeze"`)

	in := d.as("approver@harbor.test")
	in.get("/actions").is(t, http.StatusOK, "Everything consequential is stopped.", "Frozen, ")
	in.get("/actions/"+string(a.ID)).is(t, http.StatusOK, "nothing is sent and the clock stands still", "Nobody approves while this is frozen.")
	in.presses(a, "approve").is(t, http.StatusConflict, "frozen since")
	d.isIn(a.ID, action.StateStaged)
	in.post("/freezes", "scope", "organization", "key", "", "reason", "me too").is(t, http.StatusForbidden)

	standing, err := d.Actions.Freezes(t.Context(), a.Org)
	d.Must(err)
	if len(standing) != 1 || !strings.HasPrefix(string(standing[0].ID), "frz_") {
		t.Fatalf("%+v", standing)
	}
	path := "/freezes/" + string(standing[0].ID) + "/lift"
	in.post(path).is(t, http.StatusForbidden)
	admin.post(path).goes(t, "/settings")
	admin.post(path).goes(t, "/settings") // pressed twice
	admin.get("/settings").is(t, http.StatusOK, "had lifted it already", `data-test="freeze"`)
	admin.post("/freezes/frz_none/lift").is(t, http.StatusNotFound)
	admin.post("/freezes", "scope", "connection", "key", "none-aaaaaa", "reason", "x").is(t, http.StatusNotFound)
	in.presses(a, "approve").goes(t, "/actions/"+string(a.ID))
	d.isIn(a.ID, action.StateApproved)
}

func TestAConnectionAndAProfileHaveTheirOwnSwitch(t *testing.T) {
	d := newDesk(t)
	a := d.refund()
	admin := d.as("admin@harbor.test")
	for _, path := range []string{"/connections/" + a.Connection.String(), "/profiles/" + a.Profile} {
		scope, key := "connection", a.Connection.String()
		if strings.HasPrefix(path, "/profiles") {
			scope, key = "profile", a.Profile
		}
		admin.get(path).is(t, http.StatusOK, `data-test="freeze"`, `name="scope" value="`+scope+`"`, `name="key" value="`+key+`"`)
		admin.post("/freezes", "scope", scope, "key", key, "reason", "looking into it").goes(t, path)
		admin.get(path).is(t, http.StatusOK, `data-test="lift"`, "looking into it")
		admin.get("/settings").is(t, http.StatusOK, `data-test="lift-other"`)
		d.as("approver@harbor.test").get("/actions/"+string(a.ID)).is(t, http.StatusOK, "Nobody approves while this is frozen.")
		standing, err := d.Actions.Freezes(t.Context(), a.Org)
		d.Must(err)
		admin.post("/freezes/"+string(standing[0].ID)+"/lift").goes(t, path)
	}
}
