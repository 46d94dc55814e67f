package agent_test

import (
	"strings"
	"testing"

	"countersign/internal/audit"
	"countersign/internal/policy"
)

func TestEveryEraReadsStagesAndIsRefused(t *testing.T) {
	w := newWorld(t)
	c := w.install("sandbox-crm", "CRM", policy.AskUserOnWrite)
	w.profile("engineering", c)
	task, chat := w.start(policy.Task, "engineering"), w.start(policy.Chat, "engineering")
	prefix := c.Key.String() + "__"
	for _, era := range eras {
		t.Run(era, func(t *testing.T) {
			s := w.client(task, era, "")
			if got := s.InitializeResult(); got != nil && got.ProtocolVersion != era {
				t.Errorf("negotiated %s", got.ProtocolVersion)
			}
			list := names(t, s)
			mustHave(t, list, prefix+"contacts_search", prefix+"contacts_create", prefix+"refund_issue", "countersign__actions_wait", "countersign__report_block")

			r := call(t, s, prefix+"contacts_get", `{"contact_id":"c_1001"}`)
			if r.IsError || !strings.Contains(r.text, "c_1001") {
				t.Errorf("read: %s", r.text)
			}
			arguments := `{"email":"ada@` + era + `.test","name":"Ada"}`
			staged := call(t, s, prefix+"contacts_create", arguments)
			if staged.IsError || !strings.HasPrefix(staged.text, "NOT EXECUTED.") || staged.data["status"] != "awaiting_approval" || staged.id() == "" ||
				staged.data["approval_url"] != publicURL+"/actions/"+string(staged.id()) || staged.data["poll_after_ms"] == nil || staged.data["expires_at"] == nil || staged.data["args_digest"] == nil {
				t.Fatalf("staged: %s %v", staged.text, staged.data)
			}
			if again := call(t, s, prefix+"contacts_create", `{ "name":"Ada", "email":"ada@`+era+`.test" }`); again.id() != staged.id() {
				t.Errorf("the same call became %s, first %s", again.id(), staged.id())
			}
			w.Approve(staged.id())
			w.dispatch(staged.id())
			done := call(t, s, prefix+"contacts_create", arguments)
			if done.IsError || !strings.Contains(done.text, "Ada") || strings.Contains(done.text, "NOT EXECUTED") {
				t.Errorf("after the approval: %s", done.text)
			}
			got := call(t, s, "countersign__actions_get", `{"action_id":"`+string(staged.id())+`"}`)
			if got.data["state"] != "succeeded" || got.data["result"] == nil || got.data["on_behalf_of"] != "member@harbor.test" || len(got.data["timeline"].([]any)) < 4 {
				t.Errorf("the action: %v", got.data)
			}

			quiet := w.client(chat, era, "")
			list = names(t, quiet)
			mustHave(t, list, prefix+"contacts_search", "countersign__report_block")
			mustLack(t, list, prefix+"contacts_create", prefix+"notes_add", "countersign__actions_get")
			if r := call(t, quiet, prefix+"contacts_create", arguments); !r.IsError || r.code() != "consequential_in_chat" {
				t.Errorf("chat: %s", r.text)
			}
			if r := call(t, quiet, "countersign__actions_get", `{"action_id":"`+string(staged.id())+`"}`); r.code() != "tool_not_granted" {
				t.Errorf("chat: %s", r.text)
			}
			single := w.client(task, era, c.Key)
			list = names(t, single)
			mustHave(t, list, "contacts_search", "countersign__actions_get")
			if r := call(t, single, "contacts_search", `{"query":"a"}`); r.IsError {
				t.Errorf("on its own endpoint: %s", r.text)
			}
		})
	}
	if got := w.CRM.Did(); len(got) != len(eras) {
		t.Errorf("the CRM did %v", got)
	}
	reads := w.trail(audit.ToolRead)
	if len(reads) == 0 || fact(reads[0], "tool") == "" || reads[0].Digest == "" || fact(reads[0], "arguments") == "" || strings.Contains(fact(reads[0], "arguments"), "c_1001") {
		t.Errorf("reads in the trail: %+v", reads)
	}
}
