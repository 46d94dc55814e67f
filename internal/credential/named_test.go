package credential_test

import (
	"strings"
	"testing"

	"countersign/internal/credential"
	"countersign/internal/fault"
)

func TestAHeaderThatAPersonNames(t *testing.T) {
	for _, name := range []string{"X-Api-Key", "x-api-key", "Api-Key", "X_TOKEN", "Private-Token"} {
		if err := credential.CheckNamed(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, words := range map[string]string{
		"": "has no name", "X Api Key": "not the name of a header", "X-Key:": "not the name of a header", "X-Key\r\nHost": "not the name of a header", strings.Repeat("x", 65): "at most 64",
		"authorization": "bearer token", "AUTHORIZATION": "bearer token", "Cookie": "cookie", "set-cookie": "cookie",
		"Mcp-Name": "belong to the protocol", "mcp-session-id": "belong to the protocol", "MCP-Anything": "belong to the protocol",
		"Host": "decides where", "Connection": "decides where", "keep-alive": "decides where", "TE": "decides where", "Trailer": "decides where", "Transfer-Encoding": "decides where",
		"Upgrade": "decides where", "Proxy-Authorization": "decides where", "Proxy-Connection": "decides where", "Content-Type": "decides where", "Content-Length": "decides where",
		"Accept": "decides where", "Accept-Encoding": "decides where", "Origin": "decides where", "Referer": "decides where", "User-Agent": "decides where", "Expect": "decides where",
		"X-Forwarded-For": "decides where", "Forwarded": "decides where", "Via": "decides where", "Sec-Fetch-Mode": "decides where", "Last-Event-ID": "decides where", "Range": "decides where",
	} {
		err := credential.CheckNamed(name)
		if f, ok := fault.As(err); !ok || f.Field != "header" || !strings.Contains(f.What, words) {
			t.Errorf("%q: %v, want %q", name, err, words)
		}
	}
	// A catalog may not choose them either, but for the bearer's own.
	for _, name := range []string{"Cookie", "Mcp-Param-X", "X-Forwarded-Host", "Host"} {
		if _, err := credential.Token(name, "{secret}"); err == nil {
			t.Errorf("a manifest may name %s", name)
		}
	}
}
