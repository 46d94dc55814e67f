package release

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"countersign/internal/manifest"
	"countersign/internal/policy"
)

// diffManifest lists the fields that differ, sorted by field. A tool that came or went is one line, not one for each of its fields.
func diffManifest(a, b manifest.Manifest) []Line {
	var out []Line
	for _, t := range b.Tools {
		if old, was := a.Policy(t.Name); was {
			out = append(out, diffFields("tools."+t.Name+".", flat(old), flat(t), toolWidens)...)
		} else {
			out = append(out, Line{
				Field: "tools." + t.Name, After: effect(t), Widens: t.Effect == policy.Read,
				Text: "“" + t.Name + "” is now reviewed: " + effect(t) + ".",
			})
		}
	}
	for _, t := range a.Tools {
		if _, is := b.Policy(t.Name); !is {
			out = append(out, Line{
				Field: "tools." + t.Name, Before: effect(t), Widens: t.Effect == policy.Consequential,
				Text: "“" + t.Name + "” is no longer reviewed (it was " + effect(t) + "); what the service says of it counts from now on.",
			})
		}
	}
	a.Tools, b.Tools = nil, nil
	out = append(out, diffFields("", flat(a), flat(b), manifestWidens)...)
	slices.SortFunc(out, func(x, y Line) int { return strings.Compare(x.Field, y.Field) })
	return out
}

// diffFields compares two flattened values; widens is asked with the field's name without prefix and what it says afterwards.
func diffFields(prefix string, before, after map[string]string, widens func(field, after string) bool) []Line {
	var out []Line
	for f, x := range before {
		if y := after[f]; x != y {
			out = append(out, Line{Field: prefix + f, Before: x, After: y, Text: said(prefix+f, x, y), Widens: widens(f, y)})
		}
	}
	for f, y := range after {
		if _, was := before[f]; !was && y != "" {
			out = append(out, Line{Field: prefix + f, After: y, Text: said(prefix+f, "", y), Widens: widens(f, y)})
		}
	}
	return out
}

// manifestWidens: another runtime is another address, another auth contract another way to carry the credential; a grant more is a
// permission more.
func manifestWidens(field, after string) bool {
	return field == "runtime" || strings.HasPrefix(field, "auth[") || strings.HasPrefix(field, "grants[") && strings.Contains(field, "scopes") && after != ""
}

// toolWidens: a read asks nobody, a destructive mark that goes takes its warning along, an error pattern can turn “may have happened” into “did not
// happen” and another settle window does it sooner, and a resource bound that goes or moves reaches more.
func toolWidens(field, after string) bool {
	switch {
	case field == "effect":
		return after == string(policy.Read)
	case field == "destructive":
		return after == ""
	case field == "settle_seconds":
		return true
	}
	return strings.HasPrefix(field, "definite_errors") && after != "" || strings.HasPrefix(field, "resource.")
}

func effect(t manifest.ToolPolicy) string {
	if t.Destructive {
		return "destructive"
	}
	return string(t.Effect)
}

func said(field, before, after string) string {
	switch {
	case before == "":
		return field + " is now “" + after + "”."
	case after == "":
		return field + " is gone; it was “" + before + "”."
	}
	return field + " was “" + before + "” and is now “" + after + "”."
}

// flat is a value as "path" → text, by its json names.
func flat(v any) map[string]string {
	b, err := json.Marshal(v)
	if err != nil {
		panic("release: a manifest that passed the check does not marshal: " + err.Error())
	}
	d := json.NewDecoder(strings.NewReader(string(b)))
	d.UseNumber()
	var tree any
	if err := d.Decode(&tree); err != nil {
		panic("release: our own JSON does not decode: " + err.Error())
	}
	out := map[string]string{}
	flatten(out, "", tree)
	return out
}

func flatten(out map[string]string, path string, v any) {
	switch x := v.(type) {
	case map[string]any:
		for k, e := range x {
			flatten(out, strings.TrimPrefix(path+"."+k, "."), e)
		}
	case []any:
		for i, e := range x {
			flatten(out, fmt.Sprintf("%s[%d]", path, i), e)
		}
	case nil:
	default:
		out[path] = fmt.Sprint(x)
	}
}
