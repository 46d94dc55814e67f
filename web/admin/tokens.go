package admin

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"countersign/internal/audit"
	"countersign/internal/fault"
	"countersign/internal/identity"
	"countersign/internal/servicetoken"
	"countersign/views"
	"countersign/views/ui"
)

// Tokens are the pages about what programs get in with.
type Tokens struct {
	Store servicetoken.Store
}

const day = 24 * time.Hour

// List shows every token of the organization; never a value.
func (t *Tokens) List(r *Request) error {
	return t.list(r, http.StatusOK, views.TokensView{Form: blankToken()})
}

func blankToken() views.NewTokenForm {
	return views.NewTokenForm{ID: identity.NewID("tok_"), Scopes: []string{string(servicetoken.RunsWrite)}, Days: strconv.Itoa(int(servicetoken.DefaultLife / day))}
}

func (t *Tokens) list(r *Request, status int, v views.TokensView) error {
	all, err := t.Store.Tokens(r.Ctx(), r.Org())
	if err != nil {
		return err
	}
	v.Tokens, v.Now = all, time.Now()
	return r.Show(status, views.TokensPage(r.Frame("Tokens", "tokens"), v))
}

// Create makes a token and shows its value in this answer alone. The form carries the new token's id: sent twice, it makes one.
func (t *Tokens) Create(r *Request) error {
	form := views.NewTokenForm{ID: r.Posted("id"), Name: r.Posted("name"), Scopes: r.Values("scopes"), Days: r.Posted("days")}
	made, clear, hash, life, err := newToken(r.Person(), form)
	if err == nil {
		e := r.Entry(audit.TokenCreated, "token", made.ID, audit.Fact{Name: "name", Value: made.Name}, audit.Fact{Name: "scopes", Value: strings.Join(form.Scopes, " ")})
		made, err = t.Store.SaveToken(r.Ctx(), made, hash, life, e)
	}
	if fields, whole, again := Problems(err); err != nil && again {
		form.ID = identity.NewID("tok_")
		form.Errors, form.Error, form.Next = fields, what(whole), next(whole)
		return t.list(r, statusOf(err), views.TokensView{Form: form})
	}
	if err != nil {
		return err
	}
	return t.list(r, http.StatusOK, views.TokensView{Form: blankToken(), Made: &made, Clear: clear})
}

var tokenID = regexp.MustCompile(`^tok_[a-z2-7]{26}$`)

func newToken(owner identity.Person, form views.NewTokenForm) (t servicetoken.Token, clear string, hash []byte, life time.Duration, err error) {
	t, clear, hash, err = servicetoken.New(owner, form.Name, form.Scopes)
	faults, _ := err.(fault.List)
	days, dayErr := strconv.Atoi(strings.TrimSpace(form.Days))
	if most := int(servicetoken.MaxLife / day); dayErr != nil || days < 1 || days > most {
		faults = append(faults, fault.Field("days", "A token ends after 1 to "+strconv.Itoa(most)+" days."))
	}
	if !tokenID.MatchString(form.ID) {
		faults = append(faults, fault.New(fault.Invalid, fault.CodeInvalid, "This form did not come from this page.", "Fill it in here."))
	}
	t.ID = form.ID
	return t, clear, hash, time.Duration(days) * day, faults.Err()
}

// Revoke ends a token for good. A token that is revoked already stays so.
func (t *Tokens) Revoke(r *Request) error {
	id := r.Param("id")
	if !tokenID.MatchString(id) {
		return fault.Absent("token")
	}
	if err := t.Store.RevokeToken(r.Ctx(), r.Org(), id, r.Entry(audit.TokenRevoked, "token", id)); err != nil {
		return err
	}
	return r.Done(ui.OK, "Revoked. Programs that use this token are refused from now on.", "/tokens")
}
