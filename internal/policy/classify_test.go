package policy_test

import (
	"testing"

	"countersign/internal/policy"
)

func TestClassifyFailsClosed(t *testing.T) {
	yes, no, absent, odd := policy.HintTrue, policy.HintFalse, policy.HintAbsent, policy.HintMalformed
	read, write := &policy.Review{Effect: policy.Read}, &policy.Review{Effect: policy.Consequential, Destructive: true}
	for _, c := range []struct {
		sentence string
		in       policy.Evidence
		want     policy.Class
	}{
		{"a vendor's read-only hint is trusted", policy.Evidence{Annotations: policy.Annotations{ReadOnly: yes}, Origin: policy.CatalogVendor}, policy.Class{Effect: policy.Read, Reason: policy.VendorSaysSo}},
		{"read only and explicitly not destructive is a read", policy.Evidence{Annotations: policy.Annotations{ReadOnly: yes, Destructive: no}, Origin: policy.CatalogVendor}, policy.Class{Effect: policy.Read, Reason: policy.VendorSaysSo}},
		{"a missing hint is consequential", policy.Evidence{Annotations: policy.Annotations{ReadOnly: absent}, Origin: policy.CatalogVendor}, policy.Class{Effect: policy.Consequential, Reason: policy.VendorSilent}},
		{"a false hint is consequential", policy.Evidence{Annotations: policy.Annotations{ReadOnly: no}, Origin: policy.CatalogVendor}, policy.Class{Effect: policy.Consequential, Reason: policy.VendorWrites}},
		{"text instead of a boolean is consequential", policy.Evidence{Annotations: policy.Annotations{ReadOnly: odd}, Origin: policy.CatalogVendor}, policy.Class{Effect: policy.Consequential, Reason: policy.Unreadable}},
		{"an unreadable destructive hint spoils a read-only one", policy.Evidence{Annotations: policy.Annotations{ReadOnly: yes, Destructive: odd}, Origin: policy.CatalogVendor}, policy.Class{Effect: policy.Consequential, Reason: policy.Unreadable}},
		{"read only and destructive at once is consequential", policy.Evidence{Annotations: policy.Annotations{ReadOnly: yes, Destructive: yes}, Origin: policy.CatalogVendor}, policy.Class{Effect: policy.Consequential, Destructive: true, Reason: policy.Contradictory}},
		{"a custom remote's hint alone counts for nothing", policy.Evidence{Annotations: policy.Annotations{ReadOnly: yes}, Origin: policy.CustomRemote}, policy.Class{Effect: policy.Consequential, Reason: policy.Unconfirmed}},
		{"a confirmed custom remote's hint counts", policy.Evidence{Annotations: policy.Annotations{ReadOnly: yes}, Origin: policy.CustomRemote, ConfirmedRead: true}, policy.Class{Effect: policy.Read, Reason: policy.AdminSaysSo}},
		{"confirming a tool without a hint changes nothing", policy.Evidence{Origin: policy.CustomRemote, ConfirmedRead: true}, policy.Class{Effect: policy.Consequential, Reason: policy.VendorSilent}},
		{"an origin nobody named is not trusted", policy.Evidence{Annotations: policy.Annotations{ReadOnly: yes}}, policy.Class{Effect: policy.Consequential, Reason: policy.VendorSilent}},
		{"a review outranks a hint, to read", policy.Evidence{Review: read, Annotations: policy.Annotations{ReadOnly: no, Destructive: yes}, Origin: policy.CatalogVendor}, policy.Class{Effect: policy.Read, Reason: policy.Reviewed}},
		{"a review outranks a hint, to consequential", policy.Evidence{Review: write, Annotations: policy.Annotations{ReadOnly: yes}, Origin: policy.CatalogVendor}, policy.Class{Effect: policy.Consequential, Destructive: true, Reason: policy.Reviewed}},
		{"a review of an unknown effect is consequential", policy.Evidence{Review: &policy.Review{Effect: "maybe"}, Origin: policy.CatalogVendor}, policy.Class{Effect: policy.Consequential, Reason: policy.Reviewed}},
	} {
		t.Run(c.sentence, func(t *testing.T) {
			if got := policy.Classify(c.in); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
			if policy.Classify(c.in).Reason.Sentence() == "" {
				t.Error("the reason has no sentence")
			}
		})
	}
}
