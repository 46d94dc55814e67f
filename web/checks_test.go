package web_test

import (
	"testing"

	"countersign/internal/crm/crmtest"
)

// The way to a service is taken step by step, and the page says where it ends.
func TestAConnectionIsCheckedStepByStep(t *testing.T) {
	s := newShop(t)
	b := s.as("admin@harbor.test")
	key := b.installed()
	path := "/connections/" + key.String()
	b.get(path).is(t, 200, `data-test="check"`).lacks(t, "Step by step")
	b.post(path+"/check").is(t, 200, "Step by step to Sandbox CRM", "“127.0.0.1” has an address", "The operator of this server vouches for it", "over plain HTTP",
		"nothing to discover", "opens for this address alone", "It offers 11 tools.", "An authenticated call succeeded.").lacks(t, crmtest.Bearer, "Not tried")
	b.get(path).is(t, 200, "part by part").lacks(t, "Step by step to")

	b.post(path+"/credential", "version", b.version(key), "api_key", "not-the-key-0123456789")
	b.post(path+"/check").is(t, 200, "opens for this address alone", "Not tried: what comes before it failed.", "Not working").lacks(t, "not-the-key", "An authenticated call succeeded.")
	b.post(path+"/disconnect", "version", b.version(key)).goes(t, path)
	b.post(path+"/check").is(t, 200, "The connection is not active.").lacks(t, "It offers")
	b.post(path+"/retire", "version", b.version(key)).goes(t, path)
	b.post(path+"/check").is(t, 409)
}
