package admin

import (
	"slices"
	"strconv"
	"strings"

	"countersign/internal/fault"
	"countersign/internal/installation"
	"countersign/internal/manifest"
	"countersign/internal/people"
	"countersign/internal/policy"
	"countersign/internal/profile"
	"countersign/internal/release"
	"countersign/views"
	"countersign/web/answer"
)

// readLimits reads the limits of one use. Everything that is empty adds none.
func (p *Profiles) readLimits(r *Request, use *profile.Use, c installation.Connection, groups []people.Group) *fault.Error {
	key := c.Key.String()
	wrong := func(what string) *fault.Error { return fault.Field("uses", "“"+c.Name+"”: "+what) }
	if text := strings.TrimSpace(r.Posted("actions." + key)); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || n > profile.MostDaily {
			return wrong("The actions of a day are a whole number, 0 to 1,000,000.")
		}
		use.DailyActions = n
	}
	var err error
	if use.DailyAmount, err = manifest.ParseAmount(r.Posted("amount."+key), r.Posted("currency."+key)); err != nil {
		return wrong(fault.Of(err).What)
	}
	if text := r.Posted("signatures." + key); text != "" && text != "1" {
		use.Signatures = atoi(text)
		if use.Signatures < 1 || use.Signatures > profile.MostSignatures {
			return wrong("1 to 5 people sign.")
		}
	}
	if f := readQuorum(r, use, c); f != nil {
		return f
	}
	for _, s := range p.settings(r, c) {
		if lines := linesOf(r.Posted("resource." + key + "." + s.Name)); len(lines) > 0 {
			if use.Resources == nil {
				use.Resources = map[string][]string{}
			}
			use.Resources[s.Name] = lines
		}
	}
	use.Approvers = r.Posted("approvers." + key)
	return enough(*use, c, groups)
}

// enough refuses a group that can never give the signatures that are asked of it.
func enough(use profile.Use, c installation.Connection, groups []people.Group) *fault.Error {
	if use.Approvers == "" {
		return nil
	}
	i := slices.IndexFunc(groups, func(g people.Group) bool { return g.Name == use.Approvers })
	if i < 0 {
		return fault.Field("uses", "“"+c.Name+"”: There is no group “"+use.Approvers+"” any more.")
	}
	most := max(1, use.Signatures)
	for _, n := range use.Quorum {
		most = max(most, n)
	}
	if most > len(groups[i].Members) {
		return fault.Field("uses", "“"+c.Name+"”: "+strconv.Itoa(most)+" people of the group “"+use.Approvers+"” would have to sign, and it has "+strconv.Itoa(len(groups[i].Members))+".")
	}
	return nil
}

// readQuorum reads the answers tool by tool: each is "2 tool_name", and only a tool that the connection grants can be named.
func readQuorum(r *Request, use *profile.Use, c installation.Connection) *fault.Error {
	for _, v := range r.Values("quorum." + c.Key.String()) {
		number, tool, ok := strings.Cut(v, " ")
		if !ok {
			continue
		}
		n := atoi(number)
		if n < 1 || n > profile.MostSignatures {
			return fault.Field("uses", "“"+c.Name+"”: 1 to 5 people sign.")
		}
		if pin, granted := c.Standing.Snapshot.Find(tool); granted && pin.Effect == policy.Consequential {
			if use.Quorum == nil {
				use.Quorum = map[string]int{}
			}
			use.Quorum[tool] = n
		}
	}
	return nil
}

func linesOf(text string) (out []string) {
	for line := range strings.SplitSeq(text, "\n") {
		if line = strings.TrimSpace(line); line != "" && !slices.Contains(out, line) {
			out = append(out, line)
		}
	}
	return out
}

// settings are the resource settings that a reviewed tool of the connection must stay within. Without its release there are none to
// show; what was saved before stays as it was only if the page could show it, so that is logged.
func (p *Profiles) settings(r *Request, c installation.Connection) (out []views.ProfileSetting) {
	rel, err := p.Releases.ByDigest(r.Ctx(), release.Digest(c.Release))
	if err != nil {
		answer.Log(r.Ctx(), answer.Of(err), r.Response().Header().Get("X-Request-Id"))
		return nil
	}
	m, ok := rel.Manifest(c.Integration)
	if !ok {
		return nil
	}
	for _, s := range m.Resources {
		if slices.ContainsFunc(m.Tools, func(t manifest.ToolPolicy) bool { return t.Resource != nil && t.Resource.Setting == s.Name }) {
			out = append(out, views.ProfileSetting{Name: s.Name, Label: s.Label, Bound: c.Settings[s.Name]})
		}
	}
	return out
}

// limitsOf is how a use is shown.
func (p *Profiles) limitsOf(r *Request, use profile.Use, c installation.Connection) views.ProfileLimits {
	l := views.ProfileLimits{Amount: use.DailyAmount.String(), Currency: use.DailyAmount.Currency, Approvers: use.Approvers, Signatures: use.Signatures, Quorum: use.Quorum, Settings: p.settings(r, c)}
	if use.DailyActions > 0 {
		l.Actions = strconv.Itoa(use.DailyActions)
	}
	for i, s := range l.Settings {
		l.Settings[i].Allowed = strings.Join(use.Resources[s.Name], "\n")
	}
	return l
}

// typedLimits is limitsOf for a form that came back: numbers stay as they were typed.
func (p *Profiles) typedLimits(r *Request, l views.ProfileLimits, key string) views.ProfileLimits {
	if r.Request().Method != "POST" {
		return l
	}
	l.Actions, l.Amount, l.Currency = r.Posted("actions."+key), r.Posted("amount."+key), r.Posted("currency."+key)
	l.Approvers, l.Signatures = r.Posted("approvers."+key), atoi(r.Posted("signatures."+key))
	for i, s := range l.Settings {
		l.Settings[i].Allowed = r.Posted("resource." + key + "." + s.Name)
	}
	return l
}
