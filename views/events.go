package views

import (
	"net/url"
	"strings"

	"countersign/internal/audit"
)

// event is something that happens, in the words of the ledger: a verb in the past.
type event struct {
	name  audit.Event
	words string
}

// events lists every event by noun, as the filter offers them. A test holds it against the constants of the audit package.
var events = []event{
	{audit.OrgCreated, "Organization made"},
	{audit.SignedIn, "Signed in"},
	{audit.SignInRefused, "Sign-in refused"},
	{audit.SignedOut, "Signed out"},
	{audit.PersonAdded, "Person added"},
	{audit.PersonInvited, "Link handed out"},
	{audit.PersonJoined, "Joined"},
	{audit.PersonRoles, "Roles changed"},
	{audit.PersonDeactivated, "Person deactivated"},
	{audit.PersonReactivated, "Person reactivated"},
	{audit.PasswordSet, "Password set"},
	{audit.TokenCreated, "Token made"},
	{audit.TokenRevoked, "Token revoked"},
	{audit.ReleasePublished, "Catalog published"},
	{audit.ConnectionInstalled, "Connection installed"},
	{audit.ConnectionTested, "Connection tested"},
	{audit.ConnectionRenamed, "Connection renamed"},
	{audit.ReadRecording, "Recording of reads chosen"},
	{audit.CredentialReplaced, "Credential replaced"},
	{audit.ConnectionDisconnect, "Connection disconnected"},
	{audit.ConnectionRetired, "Connection retired"},
	{audit.AccessSaved, "Mode and tools saved"},
	{audit.RepositoryRenamed, "Repository renamed on GitHub"},
	{audit.DefinitionHeld, "Tool held back"},
	{audit.DefinitionAccepted, "Tool change accepted"},
	{audit.ReadConfirmed, "Tool confirmed as a read"},
	{audit.ConsentGiven, "Consent given"},
	{audit.ConsentLost, "Consent over"},
	{audit.ScopeRefused, "Refused as beyond the consent"},
	{audit.ProfileSaved, "Profile saved"},
	{audit.ProfileRemoved, "Profile removed"},
	{audit.ContextSaved, "Context saved"},
	{audit.GroupSaved, "Group saved"},
	{audit.GroupRemoved, "Group removed"},
	{audit.RunStarted, "Run started"},
	{audit.RunEnded, "Run ended"},
	{audit.ToolRead, "Read with a tool"},
	{audit.ToolRefused, "Call refused"},
	{audit.BlockReported, "Agent reported a block"},
	{audit.ActionStaged, "Asked for approval"},
	{audit.SignatureGiven, "Signed, others still asked"},
	{audit.ActionApproved, "Approved"},
	{audit.ActionDenied, "Denied"},
	{audit.ActionExpired, "Expired undecided"},
	{audit.ActionCancelled, "Cancelled"},
	{audit.ActionExecuting, "Sent once"},
	{audit.ActionSucceeded, "Done"},
	{audit.ActionFailed, "Not done"},
	{audit.ActionUncertain, "Outcome unknown"},
	{audit.ActionResolved, "Outcome settled"},
	{audit.LookedUp, "Looked up at the provider"},
	{audit.FreezeOn, "Everything consequential stopped"},
	{audit.FreezeOff, "Everything consequential let go on"},
}

var eventWords = func() map[audit.Event]string {
	m := map[audit.Event]string{}
	for _, e := range events {
		m[e.name] = e.words
	}
	return m
}()

// EventWords is an event as people read it. One this server does not know keeps its own name: an auditor must not miss it.
func EventWords(e audit.Event) string {
	if w, ok := eventWords[e]; ok {
		return w
	}
	return string(e)
}

func nounOf(e audit.Event) string {
	noun, _, _ := strings.Cut(string(e), ".")
	return noun
}

func actorKind(k audit.ActorKind) string {
	words := map[audit.ActorKind]string{audit.ByPerson: "person", audit.ByAgent: "agent", audit.ByService: "service token", audit.ByPolicy: "policy", audit.BySystem: "Countersign itself", audit.ByOperator: "operator's shell"}
	if w, ok := words[k]; ok {
		return w
	}
	return string(k)
}

// objectHref is the page of what an entry is about; empty where there is none that this viewer may open.
func objectHref(o audit.Object, manages bool) string {
	if o.Kind == "person" && !manages {
		return ""
	}
	at := map[string]string{"person": "/people/", "connection": "/connections/", "action": "/actions/", "run": "/runs/", "profile": "/profiles/", "release": "/releases/"}
	if p, ok := at[o.Kind]; ok && o.ID != "" {
		return p + url.PathEscape(o.ID)
	}
	return ""
}
